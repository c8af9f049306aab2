//! Examples, for the help of every command.

use clap::Command;

/// Command by command: what one might want, and the line that does it.
const EXAMPLES: [(&str, &[(&str, &str)]); 33] = [
    (
        "weights",
        &[
            (
                "weights of scored traces for best-first search with 256 expansions",
                "catamount weights --objective bfs --budget 256 scored.jsonl",
            ),
            (
                "a Parquet file with a column `logp`, into one with a column `weights`",
                "catamount weights --objective bfs --budget 256 scored.parquet --out w.parquet",
            ),
            (
                "straight from a model",
                "catamount score --model M t.jsonl | catamount weights --objective ua --budget 256",
            ),
        ],
    ),
    ("theory", &[("figures and tables of the paper's analysis", "catamount theory --out theory")]),
    (
        "data",
        &[("traces of Metamath's set.mm", "catamount data metamath --database set.mm --out data")],
    ),
    (
        "data metamath",
        &[
            ("all of set.mm, split", "catamount data metamath --out data"),
            (
                "its first 2,000 theorems, 100 held out for each part",
                "catamount data metamath --first 2000 --split rest,100,100 --out small",
            ),
        ],
    ),
    (
        "data split",
        &[(
            "shards of a download into three parts",
            "catamount data split 'hub/train-*.parquet' --split 0.9,0.05,0.05 --out data",
        )],
    ),
    (
        "data trace-lean",
        &[(
            "the theorems of a folder of a Lake project",
            "catamount data trace-lean Mathlib/Order --project . --out traces.jsonl",
        )],
    ),
    (
        "data found",
        &[(
            "what searches of the training theorems found, behind the demonstrations",
            "catamount data found --theorems train.jsonl --with-demonstrated --out m.jsonl c.jsonl",
        )],
    ),
    (
        "data convert",
        &[
            ("LeanDojo to our format", "catamount data convert random/train.json train.jsonl"),
            (
                "and to Parquet, from a compressed file",
                "catamount data convert t.jsonl.gz t.parquet",
            ),
        ],
    ),
    ("data validate", &[("line by line", "catamount data validate train.jsonl")]),
    (
        "data stats",
        &[
            ("for people", "catamount data stats train.jsonl"),
            ("for programs", "catamount data stats --json train.jsonl"),
        ],
    ),
    (
        "lean",
        &[(
            "a library and what it depends on, compiled once",
            "catamount lean build cedar-spec/cedar-lean batteries --only Cedar",
        )],
    ),
    (
        "lean build",
        &[
            ("a library over core Lean", "catamount lean build library"),
            (
                "part of one, with what it depends on",
                "catamount lean build cedar-spec/cedar-lean batteries --only Cedar",
            ),
        ],
    ),
    (
        "lean trace",
        &[(
            "Cedar's specification, from checkouts/cedar and checkouts/batteries",
            "catamount lean trace cedar --checkouts checkouts --out traces.jsonl",
        )],
    ),
    (
        "prove",
        &[
            (
                "a theorem of set.mm, from counts",
                "catamount prove syl5 --policy ngram:train.jsonl --strategy bfs --budget 64 --tree",
            ),
            (
                "a Lean statement, from a server",
                "catamount prove 'theorem t (a b : Nat) : a + b = b + a' --env lean --policy \
                 http://127.0.0.1:8000 --strategy mcts --budget 64",
            ),
        ],
    ),
    (
        "eval",
        &[
            (
                "a model under two strategies",
                "catamount eval --theorems data/test.jsonl --steps 2-5 --policy model:MODEL \
                 --strategy bfs,mcts --budget 256 --out cells",
            ),
            (
                "a vLLM server with an adapter, asked in tokens",
                "catamount eval --theorems data/test.jsonl --policy http://127.0.0.1:8000 \
                 --tokenizer MODEL --adapter ADAPTER --strategy bfs --budget 256 --out bfs.jsonl",
            ),
        ],
    ),
    (
        "check",
        &[
            ("Metamath proofs", "catamount check claims.jsonl"),
            (
                "Lean proofs, by a second kernel",
                "catamount check --env lean --kernel nanoda claims.jsonl",
            ),
        ],
    ),
    (
        "serve",
        &[
            ("Lean over HTTP, on this machine alone", "catamount serve --env lean --workers 2"),
            (
                "a library's theorems, on a port of one's own",
                "catamount serve --env lean --root library --listen 127.0.0.1:9000",
            ),
        ],
    ),
    (
        "export",
        &[
            ("for `metamath` to verify", "catamount export --format mm cells/bfs.jsonl > found.mm"),
            (
                "as Lean text",
                "catamount export --format lean --theorems data/test.jsonl cells/bfs.jsonl",
            ),
        ],
    ),
    (
        "run",
        &[
            ("the demonstration", "catamount run demo"),
            ("a file of your own to start from", "catamount run paper-matrix --print > mine.toml"),
            ("what would be done, and what it costs", "catamount run mine.toml --dry-run"),
        ],
    ),
    ("train", &[("no searches, only models", "catamount train mine.toml --out study")]),
    ("calibrate", &[("which surrogate predicts best", "catamount calibrate mine.toml")]),
    ("tune", &[("objective and budget by validation", "catamount tune mine.toml")]),
    (
        "step",
        &[(
            "the warm-up alone, where the data are done",
            "catamount step experiment.toml --out study --only warm-up",
        )],
    ),
    (
        "score",
        &[
            ("to standard output", "catamount score --model MODEL data/valid.jsonl > scored.jsonl"),
            (
                "to a file, going on where it was interrupted",
                "catamount score --model MODEL data/train.jsonl --out scored.jsonl",
            ),
        ],
    ),
    ("generate", &[("four tactics", "catamount generate --model MODEL -k 4 '$p ( ph -> ph )'")]),
    (
        "compare",
        &[
            ("two cells", "catamount compare cells/ce.jsonl cells/bfs.jsonl"),
            (
                "at smaller budgets, from the same logs",
                "catamount compare --budget 64,256 cells/ce.jsonl cells/bfs.jsonl",
            ),
            (
                "at equal work for the prover",
                "catamount compare --budget 64 --unit distinct cells/ce.jsonl cells/bfs.jsonl",
            ),
            ("for programs", "catamount compare --json cells/ce.jsonl cells/bfs.jsonl"),
        ],
    ),
    ("report", &[("of a study, finished or not", "catamount report runs/demo")]),
    ("view", &[("a study while it runs", "catamount view runs/demo")]),
    (
        "verify",
        &[
            ("proofs and hashes", "catamount verify runs/demo"),
            ("hashes alone", "catamount verify runs/demo --hashes-only"),
        ],
    ),
    (
        "doctor",
        &[
            ("what is here", "catamount doctor"),
            ("and whether Lean's confinement holds", "catamount doctor --self-test"),
        ],
    ),
    (
        "completions",
        &[
            ("for this shell", "source <(catamount completions bash)"),
            ("for good", "catamount completions zsh > ~/.zfunc/_catamount"),
        ],
    ),
    (
        "man",
        &[
            ("one page", "catamount man eval | man -l -"),
            ("all of them", "catamount man --out ~/.local/share/man/man1"),
        ],
    ),
    (
        "",
        &[
            ("the whole method on a small scale", "catamount run demo"),
            ("what is installed, and what is missing", "catamount doctor"),
        ],
    ),
];

/// The command line with the examples in its help.
pub fn with_examples(mut command: Command) -> Command {
    for (path, examples) in EXAMPLES {
        command = at(command, &path.split_whitespace().collect::<Vec<_>>(), examples);
    }
    command
}

fn at(command: Command, path: &[&str], examples: &[(&str, &str)]) -> Command {
    match path {
        [] => command.after_help(text(examples)),
        [first, rest @ ..] => command.mut_subcommand(*first, |sub| at(sub, rest, examples)),
    }
}

fn text(examples: &[(&str, &str)]) -> String {
    let lines = examples.iter().map(|(what, line)| format!("  # {what}\n  {line}"));
    format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::Cli;

    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        found.push(path.to_owned());
        for sub in command.get_subcommands() {
            leaves(sub, format!("{path} {}", sub.get_name()).trim(), found);
        }
    }

    #[test]
    fn every_command_has_examples_and_every_example_parses() {
        let mut commands = Vec::new();
        leaves(&Cli::command(), "", &mut commands);
        for command in commands {
            let examples = EXAMPLES.iter().find(|(path, _)| *path == command);
            assert!(examples.is_some_and(|(_, lines)| !lines.is_empty()), "`{command}` has none");
        }
        for (path, examples) in EXAMPLES {
            for (_, line) in examples {
                // A pipe's other commands, and where output goes, are the shell's business.
                for part in line.split('|').map(|part| part.trim().trim_end_matches(')')) {
                    let Some(ours) = part.find("catamount ") else { continue };
                    let ours = part[ours..].split(" > ").next().unwrap();
                    let parsed = Cli::try_parse_from(words(ours));
                    assert!(parsed.is_ok(), "{path}: {ours}: {}", parsed.err().unwrap());
                }
            }
        }
    }

    /// A line as a shell splits it, as far as the examples need that.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quoted, mut word) = (Vec::new(), false, String::new());
        for letter in line.chars().chain([' ']) {
            match letter {
                '\'' => quoted = !quoted,
                ' ' if !quoted => {
                    if !word.is_empty() {
                        words.push(std::mem::take(&mut word));
                    }
                }
                letter => word.push(letter),
            }
        }
        words
    }
}
