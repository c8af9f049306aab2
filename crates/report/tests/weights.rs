//! The page's own recurrences against the training code: `assets/weights.js`, run by node.

use std::io::Write;
use std::process::{Command, Stdio};

use catamount_objective::{Objective, Prior, Surrogate};
use catamount_statistics::Random;
use serde_json::{Value, json};

fn by_page(cases: &[Value]) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/weights.js");
    let driver = format!(
        "const W = require({}); let text = ''; process.stdin.on('data', (d) => text += \
         d).on('end', () => console.log(JSON.stringify(JSON.parse(text).map((c) => W.of(c)))));",
        json!(script)
    );
    let mut node = Command::new("node")
        .args(["-e", &driver])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs node (apt install nodejs)");
    node.stdin.take().unwrap().write_all(json!(cases).to_string().as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_page_weighs_as_training_does() {
    let mut random = Random::new(11);
    let mut cases = Vec::new();
    let mut expected = Vec::new();
    for name in ["ce", "ua", "pass", "bfs", "dfs", "rdfs", "vdfs", "mcts"] {
        for _ in 0..60 {
            let length = 1 + random.below(6);
            let log_p: Vec<f64> =
                (0..length).map(|_| -6.0 * random.uniform() * random.uniform() - 1e-5).collect();
            let budget = [1, 3, 7, 16, 40, 64][random.below(6)];
            // CE has no budget to discount, and pass counts rollouts.
            let kappa = if matches!(name, "pass" | "ce") {
                1.0
            } else {
                [1.0, 1.0, 2.5, 5.0][random.below(4)]
            };
            let q = if name == "ce" { 0.0 } else { [0.0, 0.02, 0.3][random.below(3)] };
            let objective: Objective = name.parse().unwrap();
            let surrogate = Surrogate::new(objective, budget)
                .with_prior(Prior::new(kappa, q).unwrap())
                .unwrap();
            expected.push(surrogate.weigh(&log_p).unwrap());
            let p: Vec<f64> = log_p.iter().map(|l| l.exp()).collect();
            cases
                .push(json!({"objective": name, "p": p, "budget": budget, "kappa": kappa, "q": q}));
        }
    }
    let mut feasible = 0;
    for ((case, ours), theirs) in cases.iter().zip(by_page(&cases)).zip(&expected) {
        let weights: Vec<f64> =
            ours["weights"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect();
        assert_eq!(weights.len(), theirs.weights.len());
        for (x, y) in weights.iter().zip(&theirs.weights) {
            assert!(
                (x - y).abs() < 1e-8 * (1.0 + y.abs()),
                "{case}: {weights:?} {:?}",
                theirs.weights
            );
        }
        assert_eq!(ours["feasible"], theirs.feasible, "{case}");
        if theirs.feasible {
            feasible += 1;
            let success = ours["success"].as_f64().unwrap();
            assert!(
                (success.ln() - theirs.log_success).abs() < 1e-8,
                "{case}: {success} {}",
                theirs.log_success.exp()
            );
        }
    }
    assert!(feasible > cases.len() / 2, "most cases should be real ones: {feasible}");
}
