//! A run folder made in code: searches simulated on hidden difficulties, so that every number has a
//! cause.

#![allow(dead_code)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use catamount_base::Content;
use catamount_calibration::{End, Observation, calibrate};
use catamount_evaluate::log::{
    Manifest, Outcome, Pool, Provenance, Record, TreeExpansion, TreeRecord, TreeVerdict,
};
use catamount_evaluate::{CellIdentity, FORMAT, Limits};
use catamount_objective::Objective;
use catamount_report::Calibrated;
use catamount_search::{Deployment, Identity};
use catamount_statistics::Random;
use serde_json::json;

/// What to make.
pub struct Plan {
    pub objectives: Vec<&'static str>,
    pub strategies: Vec<&'static str>,
    pub budgets: Vec<u64>,
    pub seeds: Vec<u64>,
    pub theorems: usize,
    /// Theorems whose trees are kept.
    pub trees: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            objectives: vec!["ce", "ua", "pass", "bfs", "rdfs", "bfs+kappa5+q0.02"],
            strategies: vec!["pass", "bfs", "dfs", "rdfs", "vdfs", "mcts"],
            budgets: vec![16, 64, 256],
            seeds: vec![7],
            theorems: 120,
            trees: 14,
        }
    }
}

/// The levels at which training writes quantiles.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

const TACTICS: [&str; 10] = [
    "intro h",
    "simp at h",
    "exact h.trans (le_of_lt hx)",
    "rw [mul_comm, \u{2190} add_assoc]",
    "obtain \u{27e8}n, hn\u{27e9} := h",
    "syl5eq",
    "nlinarith [sq_nonneg (a - b), sq_nonneg (a + b)]",
    "constructor <;> simp",
    "induction n with | zero => rfl | succ k ih => omega",
    "apply funext",
];

fn keyed(seed: u64, text: &str) -> Random {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325u64 ^ seed, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
    });
    Random::new(hash)
}

/// Hidden p of every step, under an objective: aligned objectives raise the unlikely steps.
fn steps(theorem: &str, objective: &str) -> Vec<f64> {
    let mut random = keyed(1, theorem);
    let length = 2 + random.below(4);
    let lift = match objective.split('+').next() {
        Some("ce") => 1.0,
        Some("ua") => 0.8,
        _ => 0.86,
    };
    // Half of the theorems have a step that no budget here will find.
    let hopeless = (random.uniform() < 0.55).then(|| random.below(length));
    (0..length)
        .map(|t| if hopeless == Some(t) { 1e-5 } else { (-(random.uniform() * 6.0) * lift).exp() })
        .collect()
}

pub fn theorem(i: usize) -> String {
    format!("Demo.lemma_{i:03}")
}

pub fn manifest(
    objective: &str,
    strategy: &str,
    budget: u64,
    seed: u64,
    theorems: usize,
) -> Manifest {
    let deployment = Deployment::new(strategy.parse().unwrap(), budget).unwrap();
    Manifest {
        identity: CellIdentity {
            format: FORMAT,
            policy: Identity::new("synthetic").with("objective", objective),
            environment: Identity::new("synthetic"),
            pool: Content::of("5b1f0c"),
            deployment,
            seed,
            limits: Limits::default(),
        },
        objective: objective.into(),
        policy: format!("synthetic policy trained with {objective}"),
        environment: "synthetic environment 1".into(),
        setup: None,
        pool: Pool {
            file: "data/heldout.jsonl".into(),
            theorems,
            steps: Some("2-5".into()),
            names: Vec::new(),
        },
        provenance: Provenance {
            version: "0.1.0".into(),
            commit: Some("0123abc".into()),
            command: format!(
                "catamount eval --strategy {strategy} --budget {budget} --policy \
                 {objective}.safetensors"
            ),
        },
    }
}

/// One simulated search: retry at every step, a miss costing an expansion.
pub fn record(name: &str, objective: &str, strategy: &str, budget: u64, seed: u64) -> Record {
    let p = steps(name, objective);
    let mut random = keyed(seed, &format!("{name} {objective} {strategy} {budget}"));
    let matched = f64::from(u8::from(objective == strategy)) * 0.12;
    let (mut at, mut spent) = (0usize, 0u64);
    let mut depths = vec![0u64; p.len()];
    while at < p.len() && spent < budget {
        spent += 1;
        depths[at] += 1;
        if random.uniform() < (p[at] * (1.0 + matched)).min(1.0) {
            at += 1;
        } else if strategy == "pass" {
            at = 0;
        } else if strategy == "rdfs" {
            at = random.below(at + 1);
        }
    }
    let proved = at == p.len();
    Record {
        cell: String::new(),
        theorem: name.into(),
        outcome: if proved { Outcome::Proved } else { Outcome::Budget },
        expansions: spent,
        tactics: if proved { demonstrated(name) } else { Vec::new() },
        axioms: Vec::new(),
        note: String::new(),
        relative_to: Vec::new(),
        demonstrated: Some(p.len()),
        valid: spent * 2 / 5,
        rejected: spent - spent * 2 / 5,
        refused: 0,
        distinct: spent - spent / 9,
        duplicates: spent / 9,
        redrawn: 0,
        drawn_out: 0,
        depths,
        tokens: spent * 17,
        reason: None,
    }
}

/// The demonstrated tactics of a theorem.
pub fn demonstrated(name: &str) -> Vec<String> {
    let length = steps(name, "ce").len();
    let mut random = keyed(2, name);
    (0..length).map(|_| TACTICS[random.below(TACTICS.len())].to_owned()).collect()
}

/// A tree that ends as its record says.
pub fn tree(record: &Record, strategy: &str) -> TreeRecord {
    let mut random = keyed(3, &format!("{}{strategy}", record.theorem));
    let trace = demonstrated(&record.theorem);
    let mut open: Vec<(u64, usize, bool)> = vec![(0, 0, true)];
    let mut expansions = Vec::new();
    let proved = record.outcome == Outcome::Proved;
    for i in 1..=record.expansions {
        let last = proved && i == record.expansions;
        let remaining = record.expansions - i;
        // Follow the trace just in time where a proof is to be found.
        let on = open.iter().rev().find(|n| n.2).copied().unwrap_or((0, 0, true));
        let must = proved && (trace.len() - on.1) as u64 > remaining;
        let (parent, depth, on_trace) =
            if must || last { on } else { open[random.below(open.len())] };
        let follow = must || last;
        let tactic = if follow {
            trace[depth].clone()
        } else {
            TACTICS[random.below(TACTICS.len())].to_owned()
        };
        let valid = follow || random.uniform() < 0.35;
        let verdict = if last {
            TreeVerdict::Proved
        } else if valid {
            TreeVerdict::Open
        } else {
            TreeVerdict::Rejected
        };
        let text = match verdict {
            TreeVerdict::Open => format!(
                "n : \u{2115}\nh : {} \u{2264} n\n\u{22a2} {} + n < 2 ^ n",
                depth + 1,
                i % 7
            ),
            TreeVerdict::Rejected => {
                "unknown identifier <h> & linarith failed to find a contradiction".into()
            }
            TreeVerdict::Proved => String::new(),
        };
        let log_p = -random.uniform() * 5.0;
        expansions.push(TreeExpansion {
            parent,
            tactic,
            log_p,
            verdict,
            text,
            score: valid.then_some(log_p / (depth + 1) as f64),
        });
        if verdict == TreeVerdict::Open {
            open.push((i, depth + 1, on_trace && follow));
        }
    }
    TreeRecord {
        theorem: record.theorem.clone(),
        root: format!("\u{22a2} {} : \u{2200} n, n < 2 ^ n", record.theorem),
        expansions,
    }
}

pub fn stem(objective: &str, strategy: &str, budget: u64, seed: u64) -> String {
    format!("{objective}-{strategy}-{budget}-{seed}")
}

/// Writes one log with its manifest; returns the log's path.
pub fn write_cell(dir: &Path, manifest: &Manifest, records: &[Record]) -> PathBuf {
    fs::create_dir_all(dir).unwrap();
    let strategy = manifest.strategy().name();
    let stem = stem(&manifest.objective, strategy, manifest.budget(), manifest.seed());
    let mut manifest = manifest.clone();
    let names: BTreeSet<&str> = records.iter().map(|r| r.theorem.as_str()).collect();
    manifest.pool.names = names.into_iter().map(String::from).collect();
    let cell = manifest.identity.hash();
    let log = dir.join(format!("{stem}.jsonl"));
    let lines: String = records
        .iter()
        .map(|r| Record { cell: cell.clone(), ..r.clone() })
        .map(|r| serde_json::to_string(&r).unwrap() + "\n")
        .collect();
    fs::write(&log, lines).unwrap();
    fs::write(
        dir.join(format!("{stem}.manifest.json")),
        serde_json::to_string_pretty(&manifest).unwrap(),
    )
    .unwrap();
    log
}

/// Writes a whole run folder.
pub fn write_run(dir: &Path, plan: &Plan) {
    let cells = dir.join("cells");
    for &objective in &plan.objectives {
        for &strategy in &plan.strategies {
            for &budget in &plan.budgets {
                for &seed in &plan.seeds {
                    let records: Vec<Record> = (0..plan.theorems)
                        .map(|i| record(&theorem(i), objective, strategy, budget, seed))
                        .collect();
                    let m = manifest(objective, strategy, budget, seed, plan.theorems);
                    write_cell(&cells, &m, &records);
                    if Some(&budget) == plan.budgets.last() {
                        let trees: String = records
                            .iter()
                            .take(plan.trees)
                            .map(|r| {
                                serde_json::to_string(&tree(r, &format!("{strategy}{objective}")))
                                    .unwrap()
                                    + "\n"
                            })
                            .collect();
                        fs::write(
                            cells.join(format!(
                                "{}.trees.jsonl",
                                stem(objective, strategy, budget, seed)
                            )),
                            trees,
                        )
                        .unwrap();
                    }
                }
            }
        }
    }
    write_rest(dir, plan);
}

fn write_rest(dir: &Path, plan: &Plan) {
    fs::create_dir_all(dir.join("training")).unwrap();
    fs::create_dir_all(dir.join("data")).unwrap();
    for &objective in &plan.objectives {
        let lines: String = (0..=20)
            .map(|k| {
                let t = f64::from(k) / 20.0;
                let probability = |i: &f64| i.powf(4.0 - 2.0 * t).max(1e-7);
                let p: Vec<f64> = QUANTILES.iter().map(probability).collect();
                let weight = |i: &f64| if objective == "ce" { 1.0 } else { i.powf(1.0 + t) };
                let w: Vec<f64> = QUANTILES.iter().map(weight).collect();
                json!({"step": k * 50, "loss": 2.0 * (-t).exp() + 0.1, "ce": 2.1 * (-0.9 * t).exp(),
                    "objective": objective, "p_quantiles": p, "w_quantiles": w})
                .to_string()
                    + "\n"
            })
            .collect();
        fs::write(dir.join("training").join(format!("{objective}.metrics.jsonl")), lines).unwrap();
    }
    let pool: String = (0..plan.theorems)
        .map(|i| {
            let steps: Vec<_> = demonstrated(&theorem(i))
                .into_iter()
                .map(|t| json!({"state": format!("\u{22a2} goal before {t}"), "tactic": t}))
                .collect();
            json!({"name": theorem(i), "statement": "n < 2 ^ n", "steps": steps}).to_string() + "\n"
        })
        .collect();
    fs::write(dir.join("data/heldout.jsonl"), pool).unwrap();
    let plan_json = json!({
        "title": "Synthetic study", "commit": "0123abc",
        "seeds": {"experiment": 7, "warm_up": 7, "branch": 7}, "data_hash": "9f2e",
        "command": "catamount run synthetic.toml",
        "versions": {"catamount": "0.1.0", "rustc": "1.95"},
        "experiment": {
            "name": "Synthetic study", "seed": 7, "model": null,
            "evaluation": {"budgets": plan.budgets},
        },
    });
    fs::write(dir.join("plan.json"), plan_json.to_string()).unwrap();
    let observation = |i: usize| Observation {
        theorem: theorem(i),
        log_p: vec![-0.1 * (i % 30) as f64, -0.5],
        end: match i % 3 {
            0 => End::Along(4 + 3 * (i as u64 % 30)),
            1 => End::Bypass(60 + i as u64),
            _ => End::Unproved(256),
        },
    };
    let observations: Vec<Observation> = (0..90).map(observation).collect();
    let calibrated = Calibrated {
        distinct: false,
        strategies: vec!["bfs".into()],
        temperature: 0.8,
        seed: 7,
        calibration: calibrate(Objective::Bfs, 256, &observations, &[]).unwrap(),
    };
    fs::write(dir.join("calibration.json"), serde_json::to_string(&[calibrated]).unwrap()).unwrap();
    let tactics = |log_p: [f64; 3]| {
        json!({
            "tactics": 300, "log_p_mean": log_p[1], "p_mean": 0.5, "p_median": log_p[1].exp(),
            "log_p_quantiles": log_p,
        })
    };
    let reading = json!({
        "probabilities": "cross-fitted", "temperature": 0.8, "levels": [0.1, 0.5, 0.9],
        "training": tactics([-0.9, -0.1, -0.01]), "held_out": tactics([-20.0, -4.0, -0.5]),
        "used": tactics([-18.0, -3.0, -0.4]), "training_distance": 0.61, "used_distance": 0.02,
    });
    fs::create_dir_all(dir.join("scores")).unwrap();
    fs::write(dir.join("scores/cross-fitted.reading.json"), reading.to_string()).unwrap();
}
