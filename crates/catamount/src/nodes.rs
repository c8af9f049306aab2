//! The nodes of a cluster: who may take part, what each has room for, where prover workers go.

use anyhow::{Result, bail};
use catamount_experiment::{CARD, Needs, OutlinedStep};
use serde::Deserialize;

use crate::step::Probe;

/// A node of the cluster.
#[derive(Clone, Debug, Deserialize)]
pub struct Node {
    /// How Ray knows it.
    pub id: String,
    /// For people.
    pub name: String,
    /// Processors.
    pub cpus: f64,
    /// Cards.
    pub gpus: f64,
    /// Bytes of memory.
    pub memory: f64,
    /// What it has, or what it said instead.
    pub probe: std::result::Result<Probe, String>,
}

impl Node {
    /// Why this node would not give the same results as the machine that looks at it.
    pub fn against(&self, here: &Probe) -> Option<String> {
        match &self.probe {
            Ok(probe) => here.against(probe).into_iter().next().map(|it| format!(" {it}")),
            Err(reason) => Some(format!(": {reason}")),
        }
    }

    /// Whether the machine that looks at it put the token there that this node sees.
    pub fn sees(&self, here: &Probe) -> bool {
        self.probe.as_ref().is_ok_and(|probe| probe.token == here.token)
    }

    /// Bytes of its smallest card.
    pub fn card(&self) -> u64 {
        let cards = self.probe.as_ref().ok().and_then(|probe| probe.cards.iter().min().copied());
        cards.unwrap_or(CARD)
    }

    /// Whether its cards hold a step.
    pub fn holds(&self, needs: &Needs) -> bool {
        needs.gpus == 0.0 || (self.gpus > 0.0 && self.card() >= needs.card)
    }

    fn fits(&self, needs: &Needs) -> bool {
        self.cpus >= needs.cpus && self.gpus >= needs.gpus && self.memory >= needs.memory as f64
    }

    /// How many prover workers it has room for beside the steps that its cards are for.
    fn free(&self, steps: &[Needs], kept: Option<&Needs>, prover: &Needs) -> f64 {
        let (mut cpus, mut memory) = (0.0_f64, 0.0_f64);
        for step in steps.iter().filter(|step| step.gpus > 0.0) {
            let count = (self.gpus / step.gpus).floor().min(steps.len() as f64);
            cpus = cpus.max(count * step.cpus);
            memory = memory.max(count * step.memory as f64);
        }
        if let Some(step) = kept {
            (cpus, memory) = (cpus.max(step.cpus), memory.max(step.memory as f64));
        }
        let rooms =
            [(self.cpus - cpus) / prover.cpus, (self.memory - memory) / prover.memory as f64];
        rooms[0].min(rooms[1]).floor().max(0.0)
    }
}

/// Refuses a step that no node has room for.
pub fn room_for(nodes: &[Node], step: &OutlinedStep, needs: &Needs) -> Result<()> {
    if nodes.iter().any(|node| node.fits(needs) && node.holds(needs)) {
        return Ok(());
    }
    let gb = |bytes: f64| bytes / 1e9;
    if nodes.iter().any(|node| node.fits(needs)) {
        let largest = nodes.iter().filter(|node| node.gpus > 0.0).map(Node::card).max();
        bail!(
            "no card holds {}: it needs {:.1} GB of a card, and the largest has {:.1} GB; use a \
             smaller model, or LoRA",
            step.name,
            gb(needs.card as f64),
            gb(largest.unwrap_or(0) as f64)
        );
    }
    let most = |of: fn(&Node) -> f64| nodes.iter().map(of).fold(0.0, f64::max);
    bail!(
        "no node has room for {}: it needs {} processors, {} cards and {:.1} GB of memory; the \
         most that a node has are {} processors, {} cards and {:.1} GB",
        step.name,
        needs.cpus,
        needs.gpus,
        gb(needs.memory as f64),
        most(|node| node.cpus),
        most(|node| node.gpus),
        gb(most(|node| node.memory))
    )
}

/// The nodes of so many prover workers, by their ids. They hold their places to the end, so that
/// what steps need is left to them: on a node with cards the processors of all steps that its cards
/// can take, and without cards those of the largest step on one node.
pub fn places(
    nodes: &[Node],
    steps: &[Needs],
    prover: &Needs,
    count: usize,
) -> Result<Vec<String>> {
    let largest = steps.iter().max_by(|a, b| a.cpus.total_cmp(&b.cpus));
    let cards = steps.iter().any(|step| step.gpus > 0.0);
    let roomiest = nodes.iter().max_by(|a, b| a.cpus.total_cmp(&b.cpus));
    let kept = |node: &Node| {
        let here = !cards && roomiest.is_some_and(|roomiest| roomiest.id == node.id);
        largest.filter(|_| here)
    };
    let mut free: Vec<f64> =
        nodes.iter().map(|node| node.free(steps, kept(node), prover)).collect();
    let whole: f64 = free.iter().sum();
    if whole < count as f64 {
        bail!(
            "no room for {count} prover workers beside the steps: each needs {} processors and \
             {:.1} GB, and the cluster has room for {whole} of them; ask for fewer with \
             --ray-provers",
            prover.cpus,
            prover.memory as f64 / 1e9
        );
    }
    let mut taken = vec![0_usize; nodes.len()];
    let mut places = Vec::new();
    for _ in 0..count {
        // Where nothing computes on a card first; then where there is most room.
        let rank = |&index: &usize| {
            let without = cards && nodes[index].gpus == 0.0;
            (without, free[index] as u64, std::cmp::Reverse((taken[index], index)))
        };
        let Some(best) = (0..nodes.len()).filter(|&index| free[index] >= 1.0).max_by_key(rank)
        else {
            break;
        };
        free[best] -= 1.0;
        taken[best] += 1;
        places.push(nodes[best].id.clone());
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, cpus: f64, gpus: f64) -> Node {
        let (id, name) = (id.to_string(), id.to_string());
        Node { id, name, cpus, gpus, memory: 64e9, probe: Err("not asked".into()) }
    }

    fn step(cpus: f64, gpus: f64) -> Needs {
        Needs { cpus, gpus, memory: 1 << 30, ..Needs::default() }
    }

    fn prover() -> Needs {
        Needs { cpus: 1.0, memory: 650 << 20, provers: 1, ..Needs::default() }
    }

    fn placed(nodes: &[Node], steps: &[Needs], count: usize) -> Result<Vec<usize>> {
        let places = places(nodes, steps, &prover(), count)?;
        let on = |node: &Node| places.iter().filter(|place| **place == node.id).count();
        Ok(nodes.iter().map(on).collect())
    }

    #[test]
    fn provers_leave_a_node_with_cards_the_processors_of_its_steps() {
        let nodes = [node("cards", 8.0, 2.0), node("plain", 4.0, 0.0)];
        let steps = [step(1.0, 0.0), step(2.0, 0.5), step(1.0, 0.5), step(1.0, 0.5)];
        // Four steps at once on two cards, of which some take two processors: nothing is left.
        assert_eq!(placed(&nodes, &steps, 4).unwrap(), [0, 4]);
        let said = placed(&nodes, &steps, 5).unwrap_err().to_string();
        assert!(said.contains("room for 4 of them"), "{said}");
        // A whole card for each: two steps at once.
        assert_eq!(placed(&nodes, &[step(2.0, 1.0); 3], 6).unwrap(), [2, 4]);
    }

    #[test]
    fn without_cards_provers_are_spread_and_one_step_has_room() {
        let nodes = [node("one", 2.0, 0.0), node("other", 2.0, 0.0)];
        assert_eq!(placed(&nodes, &[step(1.0, 0.0)], 2).unwrap(), [1, 1]);
        assert_eq!(placed(&nodes, &[step(1.0, 0.0)], 3).unwrap().iter().sum::<usize>(), 3);
        assert!(placed(&nodes, &[step(1.0, 0.0)], 4).is_err());
        let mut small = node("small", 64.0, 0.0);
        small.memory = 2e9;
        assert!(placed(&[small], &[step(1.0, 0.0)], 2).is_err(), "no memory");
    }

    #[test]
    fn a_step_that_no_card_holds_is_refused_by_name() {
        let experiment = catamount_experiment::preset("paper-sweep").unwrap();
        let inputs = catamount_experiment::Inputs::named("source");
        let plan = catamount_experiment::Plan::new(&experiment, &inputs).unwrap();
        let outline = plan.outline(&experiment, std::path::Path::new("nowhere"));
        let warm_up = outline.steps.iter().find(|step| step.id == "warm-up").unwrap();
        let (mut needs, nodes) = (step(1.0, 1.0), [node("cards", 8.0, 1.0)]);
        needs.card = CARD;
        room_for(&nodes, warm_up, &needs).unwrap();
        needs.card = 2 * CARD;
        let said = room_for(&nodes, warm_up, &needs).unwrap_err().to_string();
        assert!(said.contains("no card holds warm-up: it needs 160.0 GB"), "{said}");
    }
}
