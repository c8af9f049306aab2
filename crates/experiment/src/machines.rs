//! Machines that are not here: what each has, and what tasks have left of it.

use serde::Serialize;

use crate::needs::Needs;
use crate::outline::Outline;

/// The machines of a cluster, all alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Machines {
    /// How many.
    pub nodes: usize,
    /// Processors of each.
    pub cpus: f64,
    /// Cards of each; without any, models compute on processors.
    pub gpus: f64,
    /// Bytes of memory of each, where it is to count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Bytes of memory of a card.
    pub card: u64,
}

/// What tasks wait for where no node has room for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Resource {
    Cards,
    Processors,
    Memory,
}

/// What a machine has left.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    cpus: f64,
    gpus: f64,
    memory: f64,
}

impl Room {
    pub(crate) fn fits(&self, needs: &Needs) -> bool {
        self.lacks(needs).is_none()
    }

    /// What is missing for a task, if anything is.
    pub(crate) fn lacks(&self, needs: &Needs) -> Option<Resource> {
        let short = [
            (Resource::Cards, needs.gpus > self.gpus + 1e-9),
            (Resource::Processors, needs.cpus > self.cpus + 1e-9),
            (Resource::Memory, needs.memory as f64 > self.memory + 1.0),
        ];
        short.into_iter().find(|(_, short)| *short).map(|(resource, _)| resource)
    }

    pub(crate) fn give(&mut self, needs: &Needs, sign: f64) {
        self.cpus += sign * needs.cpus;
        self.gpus += sign * needs.gpus;
        self.memory += sign * needs.memory as f64;
    }
}

impl Machines {
    pub(crate) fn needs(&self, needs: Needs) -> Needs {
        if self.gpus > 0.0 { needs.on_cards(&[self.card]) } else { needs.without_cards() }
    }

    pub(crate) fn room(&self) -> Room {
        let memory = self.memory.map_or(f64::INFINITY, |memory| memory as f64);
        Room { cpus: self.cpus, gpus: self.gpus, memory }
    }

    /// How many tasks run at once, by whatever is scarcest.
    pub(crate) fn slots(&self, outlines: &[Outline]) -> usize {
        let (mut per_node, room) = (f64::INFINITY, self.room());
        let largest = |of: fn(&Needs) -> f64| {
            let steps = outlines.iter().flat_map(|outline| &outline.steps);
            steps.map(|step| of(&self.needs(step.needs))).fold(0.0, f64::max)
        };
        for (has, needs) in [
            (room.cpus, largest(|needs| needs.cpus)),
            (room.gpus, largest(|needs| needs.gpus)),
            (room.memory, largest(|needs| needs.memory as f64)),
        ] {
            if needs > 0.0 {
                per_node = per_node.min((has / needs).floor());
            }
        }
        (self.nodes as f64 * per_node).max(1.0) as usize
    }
}
