//! Which runs a log belongs to, at the command line, and what `verify` finds; on Debian's quantum
//! logic database.

mod common;

use std::fs;

use common::{DATABASE, printed, refused};

fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(DATABASE, folder.path().join("ql.mm")).expect("Debian's package metamath-databases");
    printed(
        folder.path(),
        "data metamath --database ql.mm --first 300 --out data --split 0.7,0.1,0.2",
    );
    folder
}

fn eval(rest: &str) -> String {
    format!(
        "eval --database ql.mm --theorems data/test.jsonl --steps 1-4 --limit 20 --policy \
         ngram:data/train.jsonl --budget 16 --strategy bfs --out cells/bfs.jsonl {rest}"
    )
}

#[test]
fn a_log_is_resumed_by_content_whatever_things_are_called() {
    let temporary = prepared();
    let folder = temporary.path();
    printed(folder, &eval(""));
    let log = || fs::read(folder.join("cells/bfs.jsonl")).unwrap();
    let before = log();
    // The same things under other names, and other machines.
    fs::copy(folder.join("data/train.jsonl"), folder.join("copy.jsonl")).unwrap();
    fs::copy(folder.join("data/test.jsonl"), folder.join("pool.jsonl")).unwrap();
    fs::create_dir(folder.join("elsewhere")).unwrap();
    fs::copy(DATABASE, folder.join("elsewhere/other.mm")).unwrap();
    let moved = eval("--threads 1 --concurrency 3")
        .replace("ngram:data/train", "ngram:copy")
        .replace("data/test", "pool")
        .replace("--database ql.mm", "--database elsewhere/other.mm");
    printed(folder, &moved);
    assert_eq!(log(), before);
    // Other things under the same names.
    for (rest, named) in [
        ("--temperature 0.9", "temperature was 0.8 and is now 0.9"),
        ("--max-tokens 64", "max_tokens was 128 and is now 64"),
        ("--time-limit 60", "the time limit was none and is now 60 s"),
        ("--seed 3", "the seed was 42 and is now 3"),
        ("--set bfs_beam=3", "bfs_beam was 2 and is now 3"),
        ("--distinct", "distinct was false and is now true"),
        ("--allow-unproved", "the environment's unproved theorems allowed was false"),
    ] {
        let said = refused(folder, &eval(rest));
        assert!(said.contains(named) && said.contains("choose another place"), "{rest}: {said}");
    }
    let train = fs::read_to_string(folder.join("data/train.jsonl")).unwrap();
    fs::write(
        folder.join("data/train.jsonl"),
        train.lines().skip(1).collect::<Vec<_>>().join("\n"),
    )
    .unwrap();
    assert!(refused(folder, &eval("--no-verify")).contains("the policy's demonstrations was"));
    fs::write(folder.join("data/train.jsonl"), train).unwrap();
    let database = fs::read_to_string(folder.join("ql.mm")).unwrap();
    fs::write(folder.join("ql.mm"), format!("{database}\n$( One comment more. $)\n")).unwrap();
    assert!(refused(folder, &eval("")).contains("the environment's database was"));
    fs::write(folder.join("ql.mm"), database).unwrap();
    let pool = fs::read_to_string(folder.join("data/test.jsonl")).unwrap();
    fs::write(
        folder.join("data/test.jsonl"),
        pool.replacen("\"steps\"", "\"line\":7,\"steps\"", 99),
    )
    .unwrap();
    assert!(refused(folder, &eval("--no-verify")).contains("the pool's content was"));
    assert_eq!(log(), before);
}

#[test]
fn what_cannot_be_searched_is_refused_before_anything_is_done() {
    let temporary = prepared();
    let folder = temporary.path();
    for (rest, named) in [
        ("--set max_depth=", "max_depth is ``; it must be a whole number"),
        ("--set max_depth", "max_depth"),
        ("--set pass_batch=18446744073709551615", "from 1 to 65536"),
        ("--set bfs_beam=0", "bfs_beam is 0"),
        ("--set mcts_exploration=nan", "mcts_exploration is NaN"),
        ("--set bfs_beem=3", "did you mean `bfs_beam`"),
        ("--temperature -1", "temperature is -1"),
        ("--temperature inf", "temperature is inf"),
        ("--max-tokens 0", "max_tokens is 0"),
        ("--time-limit -1", "--time-limit is a positive number"),
        ("--time-limit inf", "--time-limit is a positive number"),
        ("--time-limit 1e19", "--time-limit is a positive number of seconds up to 320000000"),
        ("--tactic-limit 1e19 --env lean", "--tactic-limit is a positive number"),
        ("--check-limit 1e19 --env lean", "--check-limit is a positive number"),
        ("--max-tokens 20000", "a whole number from 1 to 16384"),
        ("--threads 0", "0 is not in 1..=4096"),
        ("--threads 1000000", "1000000 is not in 1..=4096"),
        ("--concurrency 0", "0 is not in 1..=131072"),
        ("--batch 0", "0 is not in 1..=16384"),
    ] {
        let said = refused(folder, &eval(rest));
        assert!(said.contains(named), "{rest}: {said}");
        assert!(!folder.join("cells").exists(), "{rest}");
    }
    let endless = refused(folder, &eval("").replace("--budget 16", "--budget 1048577"));
    assert!(endless.contains("a whole number from 1 to 1048576"), "{endless}");
    let wide = eval("--batch 16384 --max-tokens 1024").replace("ngram:data/train.jsonl", "model:x");
    assert!(refused(folder, &wide).contains("16777216 tokens at once"));
    let twice = eval("").replace("--strategy bfs", "--strategy bfs,bfs");
    assert!(refused(folder, &twice).contains("twice"));
}

/// Wherever a file of traces is read, the manifest beside it is believed rather than the file.
#[test]
fn traces_that_have_changed_since_they_were_written_are_refused() {
    let temporary = prepared();
    let folder = temporary.path();
    let study = r#"
name = "files"
model = { hidden = 16, layers = 1, vocab = 300, positions = 64, tokenizer = "symbols" }
objectives = [{ objective = "ce" }]
[data]
environment = "metamath"
database = "ql.mm"
train = "data/train.jsonl"
valid = "data/valid.jsonl"
test = "data/test.jsonl"
"#;
    fs::write(folder.join("files.toml"), study).unwrap();
    let other = eval("").replace("ngram:data/train", "ngram:data/valid");
    for (file, commands) in [
        ("data/train.jsonl", vec![eval(""), "run files.toml".into(), "train files.toml".into()]),
        (
            "data/test.jsonl",
            vec![
                other,
                "score --model none data/test.jsonl".into(),
                "data split data/test.jsonl --out parts".into(),
            ],
        ),
    ] {
        let path = folder.join(file);
        let kept = fs::read_to_string(&path).unwrap();
        let cut: String = kept.lines().skip(1).map(|line| format!("{line}\n")).collect();
        fs::write(&path, cut).unwrap();
        for command in &commands {
            let said = refused(folder, command);
            assert!(said.contains(&format!("{file}: has changed since")), "{command}: {said}");
            assert!(said.contains("--no-verify"), "{command}: {said}");
            assert!(!folder.join("cells").exists() && !folder.join("runs").exists(), "{command}");
        }
        let said = refused(folder, "score --no-verify --model none data/test.jsonl");
        assert!(!said.contains("has changed"), "{said}");
        fs::write(&path, kept).unwrap();
    }
    printed(folder, &eval(""));
}

/// The same seed gives the same trees, in the pool's order, each once; also where a kill between a
/// tree and its record had a theorem searched twice.
#[test]
fn trees_are_the_same_bytes_however_searches_ended() {
    let temporary = prepared();
    let folder = temporary.path();
    let log = folder.join("cells/bfs.jsonl");
    let trees = folder.join("cells/bfs.trees.jsonl");
    printed(folder, &eval("--trees --concurrency 1 --threads 1"));
    let settled = (fs::read(&log).unwrap(), fs::read(&trees).unwrap());
    fs::remove_dir_all(folder.join("cells")).unwrap();
    printed(folder, &eval("--trees --concurrency 16 --threads 4"));
    assert!(settled == (fs::read(&log).unwrap(), fs::read(&trees).unwrap()));
    let text = String::from_utf8(settled.0.clone()).unwrap();
    let rest: String = text.lines().skip(1).map(|line| format!("{line}\n")).collect();
    fs::write(&log, rest).unwrap();
    printed(folder, &eval("--trees"));
    assert!(settled == (fs::read(&log).unwrap(), fs::read(&trees).unwrap()));
}

#[test]
fn an_evaluation_of_nothing_but_errors_says_so() {
    let temporary = prepared();
    let folder = temporary.path();
    let line = r#"{"name":"no-such-theorem","steps":[{"state":"|- x","tactic":"y"}]}"#;
    fs::write(folder.join("data/test.jsonl"), format!("{line}\n")).unwrap();
    let said = refused(folder, &eval("--no-verify"));
    assert!(said.contains("every theorem ended in an error"), "{said}");
}

#[test]
fn verify_replays_proofs_and_compares_hashes() {
    let temporary = prepared();
    let folder = temporary.path();
    printed(
        folder,
        &eval("").replace("--strategy bfs", "--strategy bfs,mcts").replace("/bfs.jsonl", ""),
    );
    let verify = "verify .";
    let table = printed(folder, verify);
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(printed(elsewhere.path(), &format!("verify {}", folder.display())), table);
    assert!(table.contains("ngram under mcts") && table.contains("data"), "{table}");
    let all = table.lines().last().unwrap().split_whitespace().collect::<Vec<_>>();
    assert!(all[0] == "all" && all[2] == "0" && all[1].parse::<u32>().unwrap() > 40, "{table}");

    // A proof that is none.
    let path = folder.join("cells/bfs.jsonl");
    let log = fs::read_to_string(&path).unwrap();
    let proved = log.lines().find(|line| line.contains("\"proved\"")).expect("something is proved");
    let start = proved.find("\"tactics\":[\"").unwrap() + 12;
    let end = start + proved[start..].find('"').unwrap();
    let forged = format!("{}no-such-tactic{}", &proved[..start], &proved[end..]);
    fs::write(&path, log.replace(proved, &forged)).unwrap();
    let said = refused(folder, verify);
    assert!(said.contains("no proof:"), "{said}");
    fs::write(&path, &log).unwrap();

    // A held-out file that is not what it was.
    let data = folder.join("data/train.jsonl");
    let text = fs::read_to_string(&data).unwrap();
    fs::write(&data, text.replacen('a', "b", 1)).unwrap();
    assert!(refused(folder, verify).contains("train.jsonl: has changed"));
    fs::write(&data, &text).unwrap();

    // A database that is not the one searched.
    let database = fs::read_to_string(folder.join("ql.mm")).unwrap();
    fs::write(folder.join("ql.mm"), format!("{database}\n$( More. $)\n")).unwrap();
    assert!(refused(folder, verify).contains("another database"));
    // One that is somewhere else.
    fs::rename(folder.join("ql.mm"), elsewhere.path().join("other.mm")).unwrap();
    fs::write(elsewhere.path().join("other.mm"), database).unwrap();
    let there = elsewhere.path().join("other.mm");
    assert_eq!(printed(folder, &format!("verify . --database {}", there.display())), table);
    assert!(printed(folder, "verify . --hashes-only").contains("data"));
}
