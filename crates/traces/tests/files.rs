//! Every format's round trip, and what is said about files that are wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::data_type::{ByteArray, ByteArrayType};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use catamount_traces::leandojo::{self, Entry};
use catamount_traces::parquet::{self, Shape};
use catamount_traces::{
    Format, Manifest, Origin, Step, Theorem, Trace, detect, jsonl, read_any, validate, write_any,
};
use proptest::prelude::*;
use tempfile::TempDir;

fn put(folder: &TempDir, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn any_trace() -> impl Strategy<Value = Trace> {
    let text = "[ -~α-ωⱯ⊢\n\"\\\\]{0,20}";
    let step = (text, "[a-z⟨⟩]{1,8}", proptest::option::of(text));
    let theorem = (
        text,
        proptest::option::of(text),
        proptest::option::of("[a-z/]{1,9}"),
        proptest::option::of(any::<[u32; 4]>()),
        proptest::option::of("[a-z:/]{1,9}"),
        proptest::option::of("[0-9a-f]{1,9}"),
    );
    (theorem, proptest::collection::vec(step, 1..6)).prop_map(
        |((statement, header, file, place, url, commit), steps)| Trace {
            theorem: Theorem {
                name: String::new(),
                statement,
                header,
                file,
                line: place.map(|[line, ..]| line),
                column: place.map(|[_, column, ..]| column),
                end_line: place.map(|[_, _, line, _]| line),
                end_column: place.map(|[.., column]| column),
                url,
                commit,
            },
            steps: steps
                .into_iter()
                .map(|(state, tactic, next)| Step { state, tactic, next, annotated: None })
                .collect(),
        },
    )
}

fn any_traces() -> impl Strategy<Value = Vec<Trace>> {
    proptest::collection::vec(any_trace(), 0..12).prop_map(|mut traces| {
        traces
            .iter_mut()
            .enumerate()
            .for_each(|(at, trace)| trace.theorem.name = format!("t{at}.é"));
        traces
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn own_format_and_parquet_lose_nothing(traces in any_traces()) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("own.jsonl");
        jsonl::write(&path, &traces).unwrap();
        prop_assert_eq!(&jsonl::read(&path).unwrap(), &traces);
        for shape in [Shape::Nested, Shape::Flat] {
            let path = folder.path().join("columns.parquet");
            parquet::write(&path, &traces, shape).unwrap();
            prop_assert_eq!(&parquet::read(&path).unwrap(), &traces);
        }
        prop_assert_eq!(names(folder.path()), ["columns.parquet", "own.jsonl"], "no temporary \
         file stays behind");
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..900,
    ) {
        let folder = TempDir::new().unwrap();
        for name in ["x.jsonl", "x.json", "x.parquet", "x"] {
            let _ = validate(&put(&folder, name, &bytes));
        }
        // A real file, cut short or with a byte changed.
        let path = folder.path().join("y.parquet");
        parquet::write(&path, &[sample("a"), sample("b")], Shape::Nested).unwrap();
        let mut real = fs::read(&path).unwrap();
        let at = cut % real.len();
        real[at] ^= bytes.first().copied().unwrap_or(1);
        let _ = read_any(&put(&folder, "z.parquet", &real));
        prop_assert!(read_any(&put(&folder, "w.parquet", &real[..at])).is_err());
    }
}

fn sample(name: &str) -> Trace {
    Trace {
        theorem: Theorem {
            name: name.into(),
            statement: "p ∧ q → q".into(),
            file: Some("A.lean".into()),
            line: Some(3),
            ..Theorem::default()
        },
        steps: vec![
            Step {
                state: "⊢ p ∧ q → q".into(),
                tactic: "intro h".into(),
                next: Some("h : p ∧ q\n⊢ q".into()),
                ..Step::default()
            },
            Step {
                state: "h : p ∧ q\n⊢ q".into(),
                tactic: "exact h.2".into(),
                next: Some(String::new()),
                ..Step::default()
            },
        ],
    }
}

const LEANDOJO: &str = r#"[
  {"file_path": "A.lean", "full_name": "A.one", "start": [3, 1], "end": [5, 9], "commit": "c0ffee",
      "url": "https://example.org/a",
   "traced_tactics": [
     {"tactic": "constructor", "annotated_tactic": ["<a>constructor</a>", [{"full_name": "C.d",
       "def_path": "C.lean", "def_pos": [4, 9], "def_end_pos": [4, 12]}]],
      "state_before": "⊢ p ∧ q",
      "state_after": "case left\n⊢ p\n\ncase right\n⊢ q"},
     {"tactic": "all_goals assumption", "state_before": "case left\n⊢ p\n\ncase right\n⊢ q",
         "state_after": "no goals"}]},
  {"file_path": "A.lean", "full_name": "A.two", "start": [7, 1], "end": [7, 30], "commit": "c0ffee",
      "url": "https://example.org/a",
   "traced_tactics": []},
  {"file_path": "B.lean", "full_name": "A.one", "start": [1, 1], "end": [2, 2], "commit": "c0ffee",
      "url": "https://example.org/a",
   "traced_tactics": [{"tactic": "rfl", "state_before": "⊢ 1 = 1", "state_after": "no goals"}]}
]"#;

#[test]
fn leandojo_keeps_what_it_does_not_know() {
    let folder = TempDir::new().unwrap();
    let entries = leandojo::read(&put(&folder, "in.json", LEANDOJO)).unwrap();
    let out = folder.path().join("out.json");
    leandojo::write(&out, &entries).unwrap();
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(value(&fs::read_to_string(&out).unwrap()), value(LEANDOJO));

    let trace = entries[0].trace();
    assert_eq!(trace.steps[0].next.as_deref(), Some("case left\n⊢ p\n\ncase right\n⊢ q"));
    assert_eq!(trace.steps[1].next.as_deref(), Some(""));
    assert_eq!((trace.theorem.file.as_deref(), trace.theorem.line), (Some("A.lean"), Some(3)));
    let premise = &trace.steps[0].annotated.as_ref().unwrap().1[0];
    assert_eq!((premise.full_name.as_str(), premise.def_pos), ("C.d", Some([4, 9])));
    assert_eq!(trace.steps[1].annotated, None);
    let again = Entry::new(&trace);
    assert_eq!(again.traced_tactics, entries[0].traced_tactics);
    assert_eq!(again.traced_tactics[1].state_after, "no goals");
    assert_eq!(again.trace(), trace);
}

#[test]
fn premises_go_from_leandojo_to_lines_and_back() {
    let folder = TempDir::new().unwrap();
    let traces = read_any(&put(&folder, "in.json", LEANDOJO)).unwrap().traces;
    for name in ["out.jsonl", "out.json"] {
        let path = folder.path().join(name);
        write_any(&path, &traces).unwrap();
        assert_eq!(read_any(&path).unwrap().traces, traces, "{name}");
    }
    // What is there under the same name and is something else is no reason to refuse a file.
    let line = r#"{"name":"a","steps":[{"state":"s","tactic":"t","annotated_tactic":"t"}]}"#;
    let odd = read_any(&put(&folder, "odd.jsonl", line)).unwrap().traces;
    assert_eq!(odd[0].steps[0].annotated, None);
}

#[test]
fn leandojo_without_tactics_or_with_a_repeated_name_is_left_out_and_said() {
    let folder = TempDir::new().unwrap();
    let loaded = read_any(&put(&folder, "in.json", LEANDOJO)).unwrap();
    assert_eq!((loaded.format, loaded.traces.len()), (Format::LeanDojo, 1));
    let skipped: Vec<(&str, &str)> =
        loaded.skipped.iter().map(|s| (s.name.as_str(), s.reason.as_str())).collect();
    assert_eq!(
        skipped,
        [("A.two", "its proof has no tactics"), ("A.one", "its name occurred before")]
    );
    let origin = Origin { url: "https://example.org/a".into(), commit: "c0ffee".into() };
    assert_eq!(loaded.origins.iter().collect::<Vec<_>>(), [&origin]);
    // The same entries, one a line.
    let lines: Vec<String> = leandojo::read(&folder.path().join("in.json"))
        .unwrap()
        .iter()
        .map(|entry| serde_json::to_string(entry).unwrap())
        .collect();
    assert_eq!(read_any(&put(&folder, "in.jsonl", lines.join("\n"))).unwrap(), loaded);
}

#[test]
fn states_after_are_filled_in_for_leandojo() {
    let mut trace = sample("a");
    trace.steps.iter_mut().for_each(|step| step.next = None);
    let entry = Entry::new(&trace);
    assert_eq!(entry.trace(), sample("a"));
}

#[test]
fn errors_name_file_and_line() {
    let folder = TempDir::new().unwrap();
    let good = r#"{"name":"a","steps":[{"state":"s","tactic":"t"}]}"#;
    let cases: [(&[u8], &str); 6] = [
        (br#"{"name":"b","steps":[{"state""#, "bad.jsonl:3: not a trace"),
        (br#"{"name":"b","steps":[]}"#, "bad.jsonl:3: \"b\" has no steps"),
        (
            br#"{"name":"b","steps":[{"state":"s","tactic":"  "}]}"#,
            "bad.jsonl:3: step 1 of \"b\" has an empty tactic",
        ),
        (good.as_bytes(), "bad.jsonl:3: the name \"a\" occurs twice"),
        (b"{\"name\":\"\xff\"}", "bad.jsonl:3: not a trace"),
        (
            br#"{"name":" ","steps":[{"state":"s","tactic":"t"}]}"#,
            "bad.jsonl:3: the theorem has an empty name",
        ),
    ];
    for (line, expected) in cases {
        let path = put(&folder, "bad.jsonl", [good.as_bytes(), b"\n\n", line, b"\n"].concat());
        let error = jsonl::read(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let mut reader =
        jsonl::Reader::open(&put(&folder, "bad.jsonl", format!("{good}\nx\n{good}"))).unwrap();
    assert!(
        reader.next().unwrap().is_ok()
            && reader.next().unwrap().is_err()
            && reader.next().is_none()
    );
    let deep = format!("{{\"name\":\"a\",\"x\":{}", "[".repeat(100_000));
    let error = jsonl::read(&put(&folder, "deep.jsonl", deep)).unwrap_err().to_string();
    assert!(error.contains("recursion"), "{error}");
    let error = jsonl::read(&folder.path().join("none.jsonl")).unwrap_err().to_string();
    assert!(error.contains("none.jsonl: "), "{error}");
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.parquet");
    parquet::write(&path, &[sample("a")], Shape::Nested).unwrap();
    let empty = Trace { steps: vec![], ..sample("b") };
    let error = parquet::write(&path, &[sample("a"), empty], Shape::Flat).unwrap_err().to_string();
    assert!(error.contains("t.parquet: record 2: \"b\" has no steps"), "{error}");
    assert_eq!(parquet::read(&path).unwrap(), [sample("a")]);
    assert!(jsonl::write(&folder.path().join("no/such/t.jsonl"), &[sample("a")]).is_err());
}

#[test]
fn formats_are_told_apart() {
    let folder = TempDir::new().unwrap();
    for name in ["t.jsonl", "t.json", "t.parquet", "t.jsonl.gz", "t.json.gz"] {
        let path = folder.path().join(name);
        let written = write_any(&path, &[sample("a")]).unwrap();
        assert_eq!(detect(&path).unwrap(), written);
        assert_eq!(read_any(&path).unwrap().traces, [sample("a")]);
        // The content decides where the name does not say.
        let bare = put(&folder, "bare", fs::read(&path).unwrap());
        assert_eq!(detect(&bare).unwrap(), written);
    }
    assert!(fs::read(folder.path().join("t.jsonl.gz")).unwrap().starts_with(b"\x1f\x8b"));
    assert!(write_any(&folder.path().join("t.parquet.gz"), &[sample("a")]).is_err());
    for (name, text, expected) in [
        ("t.csv", "name,tactic\n", "not a format we know"),
        ("t.json", "{\"a\": 1}", "not a format we know"),
        ("t.parquet", "version https://example.org/lfs", "does not begin as one"),
    ] {
        let error = read_any(&put(&folder, name, text)).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }
    assert!(detect(folder.path()).unwrap_err().to_string().contains("is a folder"));
    assert!(write_any(&folder.path().join("t.csv"), &[]).is_err());
}

#[test]
fn validation_lists_everything() {
    let folder = TempDir::new().unwrap();
    let text = concat!(
        r#"{"name":"a","steps":[{"state":"s","tactic":"t","next":"x"},"#,
        r#"{"state":"y","tactic":"u","next":"z"}]}"#,
        "\n",
        "nonsense\n\n",
        r#"{"name":"a","steps":[{"state":"s","tactic":"t"}]}"#,
        "\n",
        r#"{"name":"b","steps":[{"state":"s","tactic":"t"}]}"#,
        "\n",
    );
    let report = validate(&put(&folder, "v.jsonl", text)).unwrap();
    assert!(!report.is_valid());
    assert_eq!(report.errors.iter().map(|p| p.line).collect::<Vec<_>>(), [2, 4]);
    assert!(report.errors[1].message.contains("occurs on line 1 already"));
    assert_eq!(report.warnings.len(), 2, "{:?}", report.warnings);
    assert_eq!(
        (report.statistics.traces, report.statistics.steps, report.statistics.duplicate_steps),
        (2, 3, 1)
    );
    let text = report.to_string();
    assert!(text.contains("error: line 2") && text.contains("2 traces, 3 steps"), "{text}");
    let path = folder.path().join("good.jsonl");
    jsonl::write(&path, &[sample("a")]).unwrap();
    let report = validate(&path).unwrap();
    assert!(report.is_valid() && report.warnings.is_empty());
}

#[test]
fn a_manifest_notices_a_changed_file() {
    let folder = TempDir::new().unwrap();
    let traces = [sample("a"), sample("b")];
    jsonl::write(&folder.path().join("train.jsonl"), &traces).unwrap();
    let mut manifest = Manifest::new("made by hand", Some(7));
    let steps = traces.iter().map(|trace| trace.steps.len()).sum();
    manifest.add(folder.path(), "train.jsonl", traces.len(), steps).unwrap();
    manifest.write(folder.path()).unwrap();
    let back = Manifest::read(folder.path()).unwrap();
    assert_eq!(back, manifest);
    assert_eq!((back.files["train.jsonl"].traces, back.files["train.jsonl"].steps), (2, 4));
    back.verify(folder.path()).unwrap();
    jsonl::write(&folder.path().join("train.jsonl"), &traces[..1]).unwrap();
    let error = back.verify(folder.path()).unwrap_err().to_string();
    assert!(error.contains("train.jsonl: has changed"), "{error}");
    put(&folder, "manifest.json", "{\n\"source\": 3}");
    let error = Manifest::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("manifest.json:2: not a manifest"), "{error}");
}

/// Files from another implementation, the one that the hub's own tools use: CATAMOUNT_PYARROW names
/// a Python that has pyarrow.
#[test]
#[ignore = "needs a Python with pyarrow (CATAMOUNT_PYARROW)"]
fn parquet_from_pyarrow_is_read() {
    let python = std::env::var_os("CATAMOUNT_PYARROW").expect("CATAMOUNT_PYARROW");
    let folder = TempDir::new().unwrap();
    parquet::write(&folder.path().join("ours.parquet"), &[sample("a"), sample("b")], Shape::Nested)
        .unwrap();
    let script = r#"
import sys, os, pyarrow as pa, pyarrow.parquet as pq
os.chdir(sys.argv[1])
ours = pq.read_table("ours.parquet").to_pylist()
assert ours[1]["steps"][1]["tactic"] == "exact h.2" and ours[0]["line"] == 3, ours
pq.write_table(pa.Table.from_pylist(ours), "nested.parquet", compression="zstd")
flat = [dict(full_name=r["name"], theorem_statement=r["statement"], file_path=r["file"],
    line=r["line"], step=i, state_before=s["state"],
        tactic=s["tactic"], state_after=s["next"]) for r in ours for i, s in enumerate(r["steps"])]
pq.write_table(pa.Table.from_pylist(flat[::-1]), "flat.parquet")
dojo = [dict(full_name=r["name"], file_path=r["file"], start=[r["line"], 1],
    theorem_statement=r["statement"], traced_tactics=[
        dict(state_before=s["state"], tactic=s["tactic"],
            state_after=s["next"] or "no goals") for s in r["steps"]]) for r in ours]
pq.write_table(pa.Table.from_pylist(dojo), "dojo.parquet")
"#;
    let ran = std::process::Command::new(python)
        .args(["-c", script])
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(ran.success());
    // LeanDojo's own shape says the column, too.
    for (name, column) in [("nested.parquet", None), ("dojo.parquet", Some(1))] {
        let mut expected = [sample("a"), sample("b")];
        expected.iter_mut().for_each(|trace| trace.theorem.column = column);
        assert_eq!(read_any(&folder.path().join(name)).unwrap().traces, expected, "{name}");
    }
    let flat = read_any(&folder.path().join("flat.parquet")).unwrap().traces;
    assert_eq!(flat, [sample("b"), sample("a")]);
}

#[test]
fn compressed_files_are_read_as_what_they_hold() {
    let folder = TempDir::new().unwrap();
    let compressed = |text: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut out, text).unwrap();
        out.finish().unwrap()
    };
    let mut lines = Vec::new();
    jsonl::write_to(&mut lines, [&sample("a"), &sample("b")]).unwrap();
    let path = put(&folder, "t.jsonl.gz", compressed(&lines));
    assert_eq!(read_any(&path).unwrap().traces, [sample("a"), sample("b")]);
    assert!(validate(&path).unwrap().is_valid());
    let dojo = put(&folder, "t.json.gz", compressed(LEANDOJO.as_bytes()));
    assert_eq!(detect(&dojo).unwrap(), Format::LeanDojo);
    assert_eq!(read_any(&dojo).unwrap().traces.len(), 1);
    // Cut short, it is an error; and it may not unpack to whatever it likes.
    let whole = compressed(&lines);
    assert!(read_any(&put(&folder, "cut.jsonl.gz", &whole[..whole.len() / 2])).is_err());
    let bomb = compressed(&vec![b' '; 100 << 20]);
    let error = read_any(&put(&folder, "bomb.jsonl.gz", bomb)).unwrap_err().to_string();
    assert!(error.contains("times its size"), "{error}");
}

#[test]
fn shards_are_read_in_the_order_of_their_names() {
    let folder = TempDir::new().unwrap();
    for (name, theorem) in [("t-2.jsonl", "c"), ("t-1.jsonl", "b"), ("t-0.jsonl", "a")] {
        jsonl::write(&folder.path().join(name), [&sample(theorem)]).unwrap();
    }
    let pattern = folder.path().join("t-*.jsonl");
    let loaded = read_any(&pattern).unwrap();
    assert_eq!(loaded.traces, [sample("a"), sample("b"), sample("c")]);
    jsonl::write(&folder.path().join("t-3.jsonl"), [&sample("a")]).unwrap();
    let error = read_any(&pattern).unwrap_err().to_string();
    assert!(error.contains("t-3.jsonl") && error.contains("occurred before"), "{error}");
    let error = read_any(&folder.path().join("u-*.jsonl")).unwrap_err().to_string();
    assert!(error.contains("matches no file"), "{error}");
}

#[test]
fn repository_commit_and_places_survive_every_conversion() {
    let folder = TempDir::new().unwrap();
    let first = read_any(&put(&folder, "in.json", LEANDOJO)).unwrap();
    assert_eq!(first.traces[0].theorem.commit.as_deref(), Some("c0ffee"));
    let mut from = first.clone();
    for name in ["a.jsonl", "b.parquet", "c.json"] {
        let path = folder.path().join(name);
        write_any(&path, &from.traces).unwrap();
        from = read_any(&path).unwrap();
        assert_eq!(from.traces[0].theorem.origin(), first.traces[0].theorem.origin(), "{name}");
        assert_eq!(from.origins, first.origins, "{name}");
    }
    let last = leandojo::read(&folder.path().join("c.json")).unwrap();
    assert_eq!((&*last[0].url, &*last[0].commit), ("https://example.org/a", "c0ffee"));
    let before = leandojo::read(&folder.path().join("in.json")).unwrap();
    for (before, after) in before.iter().filter(|e| !e.traced_tactics.is_empty()).zip(&last) {
        assert_eq!((before.start, before.end), (after.start, after.end), "{}", before.full_name);
    }
}

/// A Parquet file of the same step many times, whose tactic is this text.
fn repeated(path: &Path, text: &str, times: usize) {
    let schema = "message steps { required binary name (UTF8); required binary state (UTF8);
        required binary tactic (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let packed = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
    let file = fs::File::create(path).unwrap();
    let mut file = SerializedFileWriter::new(file, schema, packed.build().into()).unwrap();
    let mut group = file.next_row_group().unwrap();
    for text in ["t", "s", text] {
        let texts = vec![ByteArray::from(text); times];
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    file.close().unwrap();
}

/// Few bytes may say that they unpack to very many, and be right.
#[test]
fn a_parquet_file_is_not_unpacked_to_more_than_a_file_of_its_size_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.parquet");
    // Compressed; in a dictionary that has it once; and so short that only their number counts.
    for (text, times) in [(66 << 20, 1), (1 << 14, 10_000), (0, 1_000_000)] {
        repeated(&path, &"a".repeat(text), times);
        assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
        let said = parquet::read(&path).unwrap_err().to_string();
        assert!(said.contains("unpacks to more than 200 times its size"), "{text}: {said}");
        let said = parquet::read_scores(&path).unwrap_err().to_string();
        assert!(said.contains("unpacks to more than 200 times its size"), "{text}: {said}");
    }
    repeated(&path, "exact rfl", 1);
    assert_eq!(parquet::read(&path).unwrap().len(), 1);
}
