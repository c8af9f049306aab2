//! `catamount weights` as a script would call it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use assert_cmd::Command;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::RowAccessor;
use parquet::schema::parser::parse_message_type;

fn catamount(arguments: &str, input: &str) -> std::process::Output {
    let mut command = Command::cargo_bin("catamount").unwrap();
    command.args(arguments.split_whitespace()).write_stdin(input).output().unwrap()
}

fn error(arguments: &str, input: &str) -> String {
    let output = catamount(arguments, input);
    assert_eq!(output.status.code(), Some(2), "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn weighs_in_input_order() {
    let input: String = (0..10_000)
        .map(|i| format!("{{\"name\": \"t{i}\", \"logp\": [-0.5, -{}]}}\n", 1 + i % 7))
        .collect();
    let output = catamount("weights --objective bfs --budget 16", &input);
    assert!(output.status.success());
    let lines: Vec<serde_json::Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 10_000);
    assert!(lines.iter().enumerate().all(|(i, line)| line["name"] == format!("t{i}")));
    assert!(
        lines[6]["weights"][1].as_f64() > lines[0]["weights"][1].as_f64(),
        "the unlikelier tactic weighs more"
    );
}

#[test]
fn infeasible_traces_are_marked_and_counted() {
    let output = catamount(
        "weights --objective bfs --budget 2",
        "{\"name\":\"a\",\"logp\":[-1,-1,-1]}\n{\"name\":\"b\",\"logp\":[-1]}\n",
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.lines().next().unwrap().contains("\"weights\":[1.0,1.0,1.0],\"infeasible\":true"),
        "{text}"
    );
    assert!(!text.lines().nth(1).unwrap().contains("infeasible"));
    assert!(String::from_utf8(output.stderr).unwrap().contains("1 of 2 traces"));
}

#[test]
fn errors_name_the_line_and_keep_what_came_before() {
    let output = catamount(
        "weights --objective ua --budget 8",
        "{\"name\":\"a\",\"logp\":[-1]}\n{\"name\": \n",
    );
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("standard input:2") && message.contains("broken JSON"), "{message}");

    assert!(error("weights --objective ua --budget 8", "{\"logp\":[0.5]}").contains("positive"));
    assert!(
        error("weights --objective ua --budget 8", "{\"logp\":[NaN]}").contains("not a number")
    );
    assert!(error("weights --objective ua --budget 8", "{\"logp\":[]}").contains("no steps"));
    assert!(error("weights --objective ua --budget -8", "").contains("at least 0"));
    assert!(error("weights --objective bfs", "").contains("--budget"));
    assert!(
        error("weights --objective foo --budget 8", "")
            .contains("ce, ua, pass, bfs, dfs, rdfs, vdfs, mcts")
    );
    assert!(error("weights --objective pass --budget 8 --kappa 2", "").contains("rollouts"));
    for missing in ["missing.jsonl", "missing.parquet --out out.parquet"] {
        let message = error(&format!("weights --objective ua --budget 8 {missing}"), "");
        assert!(message.contains("missing."), "{message}");
    }
    for (files, part) in
        [("in.parquet", "--out weights.parquet"), ("in.jsonl --out out.parquet", "are printed")]
    {
        let message = error(&format!("weights --objective ua --budget 8 {files}"), "");
        assert!(message.contains(part), "{message}");
    }
}

/// A file of traces, a row each.
fn write_parquet(path: &Path, traces: &[(&str, &[f64])]) {
    let schema = "message m { required binary name (UTF8); required group logp (LIST) { repeated \
                  group list { required double element; } } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let names: Vec<ByteArray> = traces.iter().map(|(name, _)| ByteArray::from(*name)).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&names, None, None).unwrap();
    column.close().unwrap();
    let numbers: Vec<f64> = traces.iter().flat_map(|(_, logp)| *logp).copied().collect();
    let repeats = traces.iter().flat_map(|(_, logp)| (0..logp.len()).map(|at| i16::from(at > 0)));
    let (present, repeats) = (vec![1; numbers.len()], repeats.collect::<Vec<_>>());
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&numbers, Some(&present), Some(&repeats)).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn a_parquet_file_is_weighed_as_the_same_json_lines_are() {
    let folder = tempfile::tempdir().unwrap();
    let [traces, weights] = ["in.parquet", "out.parquet"].map(|name| folder.path().join(name));
    let all: [(&str, &[f64]); 4] =
        [("a", &[-0.25, -3.5]), ("b", &[-1.0]), ("c", &[-0.5; 9]), ("d", &[-4.0, -0.125])];
    write_parquet(&traces, &all);
    let arguments = "weights --objective bfs --budget 8";
    let command = format!("{arguments} {} --out {}", traces.display(), weights.display());
    let output = catamount(&command, "");
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(String::from_utf8(output.stderr).unwrap().contains("1 of 4 traces"));

    let line =
        |(name, logp): (&str, &[f64])| format!("{{\"name\":\"{name}\",\"logp\":{logp:?}}}\n");
    let lines = catamount(arguments, &all.map(line).concat()).stdout;
    let lines = String::from_utf8(lines).unwrap();
    let reader = SerializedFileReader::new(File::open(&weights).unwrap()).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!((rows.len(), lines.lines().count()), (4, 4));
    for (row, line) in rows.iter().zip(lines.lines()) {
        let numbers = row.get_list(2).unwrap().elements().iter().map(ToString::to_string);
        let weights: Vec<f64> = numbers.map(|number| number.parse().unwrap()).collect();
        let mark = if row.get_bool(3).unwrap() { ",\"infeasible\":true" } else { "" };
        // As text: every number is written with as many digits as it takes to tell it apart.
        let [success, weights] =
            [serde_json::json!(row.get_double(1).unwrap()), serde_json::json!(weights)];
        let name = row.get_string(0).unwrap();
        let same = format!(
            "{{\"name\":\"{name}\",\"log_success\":{success},\"weights\":{weights}{mark}}}"
        );
        assert_eq!(same, line);
    }
}

#[test]
fn small_weights_are_raised_and_ce_needs_no_budget() {
    let output = catamount(
        "weights --objective bfs --budget 256 --min-weight 0.25",
        "{\"logp\":[-0.1,-9]}\n",
    );
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["weights"][0], 0.25);
    assert!(line["weights"][1].as_f64().unwrap() > 0.25);
    assert!(catamount("weights --objective ce", "{\"logp\":[-1]}\n").status.success());
}

#[test]
fn a_temperature_out_of_range_is_refused_before_the_model_is_opened() {
    for temperature in ["0", "-1", "80", "nan"] {
        let message = error(&format!("score --model none --temperature {temperature} none"), "");
        assert!(message.contains("above 0 and at most 10"), "{message}");
    }
}
