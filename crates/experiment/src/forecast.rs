//! How long a study would take on machines that are not here: its schedule, played with the times
//! that its steps took, or are said to take.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::kind::Kind;
use crate::needs::Needs;
use crate::outline::{Outline, OutlinedStep};
use crate::schedule::{Schedule, Task};

/// The machines of a cluster, all alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Machines {
    /// How many.
    pub nodes: usize,
    /// Processors of each.
    pub cpus: f64,
    /// Cards of each; without any, models compute on processors.
    pub gpus: f64,
}

/// How long steps take, where nobody has timed them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Seconds by kind. Those of searches are for the largest budget of the study; smaller ones
    /// take less in proportion.
    pub seconds: BTreeMap<Kind, f64>,
    /// Seconds that a process takes before its first step begins: the prover's library, the model.
    pub startup: f64,
}

/// A step whose time nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "nobody has timed {step} here; run it once, or say how long it takes with --times \
     {kind}=SECONDS",
    kind = kind.name()
)]
pub struct Untimed {
    /// The step.
    pub step: String,
    /// Its kind.
    pub kind: Kind,
}

/// What would happen when.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// The tasks, as they begin.
    pub tasks: Vec<Placed>,
    /// The last end.
    pub seconds: f64,
    /// All tasks, one after another.
    pub work: f64,
    /// The longest chain of tasks that wait for each other: no cluster is faster.
    pub chain: f64,
    /// The share of the scarcest thing that stands idle: of cards, or of processors.
    pub idle: f64,
    machines: Machines,
}

/// A task on a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placed {
    /// What it is called.
    pub name: String,
    /// The machine, from 1.
    pub node: usize,
    /// When it begins, in seconds.
    pub begin: f64,
    /// When it ends.
    pub end: f64,
}

impl Times {
    /// Seconds of a step: as it was timed, as others of its kind were, or as it is said.
    fn of(&self, outline: &Outline, step: &OutlinedStep) -> Result<f64, Untimed> {
        if let Some(said) = self.seconds.get(&step.kind) {
            let largest = outline.steps.iter().filter(|s| s.kind == step.kind);
            let largest = largest.filter_map(|s| s.budget).max();
            return Ok(match (step.budget, largest) {
                (Some(budget), Some(largest)) => said * budget as f64 / largest as f64,
                _ => *said,
            });
        }
        if let Some(seconds) = step.seconds {
            return Ok(seconds);
        }
        let alike: Vec<f64> = outline
            .steps
            .iter()
            .filter(|other| other.kind == step.kind && other.budget == step.budget)
            .filter_map(|other| other.seconds)
            .collect();
        match (alike.len(), step.kind) {
            (0, Kind::Report) => Ok(1.0),
            (0, kind) => Err(Untimed { step: step.name.clone(), kind }),
            (count, _) => Ok(alike.iter().sum::<f64>() / count as f64),
        }
    }
}

impl Machines {
    fn needs(&self, task: &Task) -> Needs {
        if self.gpus > 0.0 { task.needs } else { task.needs.without_cards() }
    }

    /// How many tasks that need a card, or without cards a processor, run at once.
    fn slots(&self, outline: &Outline) -> usize {
        let largest = |of: fn(&Needs) -> f64| {
            outline.steps.iter().map(|step| of(&step.needs)).fold(0.0, f64::max)
        };
        let per_node = match self.gpus > 0.0 {
            true => (self.gpus / largest(|needs| needs.gpus).max(0.125)).floor(),
            false => (self.cpus / largest(|needs| needs.cpus).max(1.0)).floor(),
        };
        (self.nodes as f64 * per_node).max(1.0) as usize
    }
}

impl Forecast {
    /// Plays the schedule of what is left of an outline; of all of it with `anew`.
    pub fn new(
        outline: &Outline,
        machines: Machines,
        times: &Times,
        anew: bool,
    ) -> Result<Self, Untimed> {
        let mut outline = outline.clone();
        for step in &mut outline.steps {
            step.done &= !anew;
        }
        let outline = &outline;
        let mut seconds = BTreeMap::new();
        for step in &outline.steps {
            if !step.done {
                seconds.insert(step.id.clone(), times.of(outline, step)?);
            }
        }
        let length = |task: &Task| {
            let steps = task.steps.iter().filter_map(|id| seconds.get(id)).sum::<f64>();
            times.startup + steps
        };
        let slots = machines.slots(outline);
        let mut schedule = Schedule::new(outline);
        let mut free = vec![(machines.cpus, machines.gpus); machines.nodes];
        let mut queue: Vec<Task> = Vec::new();
        let mut running: Vec<(f64, usize, Task)> = Vec::new();
        let (mut now, mut tasks, mut work, mut busy) = (0.0, Vec::new(), 0.0, 0.0);
        loop {
            queue.extend(schedule.tasks(slots));
            let mut waiting = Vec::new();
            for task in queue {
                let needs = machines.needs(&task);
                // A task that no machine could ever take runs alone on one.
                let (cpus, gpus) = (needs.cpus.min(machines.cpus), needs.gpus.min(machines.gpus));
                let room = |&(c, g): &(f64, f64)| c >= cpus - 1e-9 && g >= gpus - 1e-9;
                match free.iter().position(room) {
                    Some(node) => {
                        free[node] = (free[node].0 - cpus, free[node].1 - gpus);
                        let end = now + length(&task);
                        let (name, begin) = (task.name.clone(), now);
                        tasks.push(Placed { name, node: node + 1, begin, end });
                        work += end - now;
                        busy += (end - now) * if machines.gpus > 0.0 { gpus } else { cpus };
                        running.push((end, node, task));
                    }
                    None => waiting.push(task),
                }
            }
            queue = waiting;
            let first = (0..running.len()).min_by(|&a, &b| running[a].0.total_cmp(&running[b].0));
            let Some(first) = first else { break };
            let (end, node, task) = running.swap_remove(first);
            let needs = machines.needs(&task);
            let (cpus, gpus) = (needs.cpus.min(machines.cpus), needs.gpus.min(machines.gpus));
            free[node] = (free[node].0 + cpus, free[node].1 + gpus);
            now = end;
            schedule.ended(&task);
        }
        let each = if machines.gpus > 0.0 { machines.gpus } else { machines.cpus };
        let all = now * each * machines.nodes as f64;
        Ok(Forecast {
            tasks,
            seconds: now,
            work,
            chain: chain(outline, &seconds, times.startup),
            idle: if all > 0.0 { 1.0 - busy / all } else { 0.0 },
            machines,
        })
    }

    /// What keeps the study from being faster.
    pub fn limit(&self) -> &'static str {
        if self.seconds <= 1.05 * self.chain {
            "the longest chain of steps that wait for each other; more machines do not help"
        } else if self.machines.gpus > 0.0 {
            "the number of cards"
        } else {
            "the number of processors"
        }
    }
}

/// The longest chain of steps that wait for each other, each in a process of its own.
fn chain(outline: &Outline, seconds: &BTreeMap<String, f64>, startup: f64) -> f64 {
    let mut ends: BTreeMap<&str, f64> = BTreeMap::new();
    for step in &outline.steps {
        let begin =
            step.after.iter().filter_map(|id| ends.get(id.as_str())).fold(0.0, |a, b| b.max(a));
        let own = seconds.get(&step.id).map_or(0.0, |own| own + startup);
        ends.insert(&step.id, begin + own);
    }
    ends.values().copied().fold(0.0, f64::max)
}

/// Seconds as people say them.
fn said(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.tasks.iter().map(|task| task.name.chars().count()).max().unwrap_or(0);
        for Placed { name, node, begin, end } in &self.tasks {
            let (begin, end) = (said(*begin), said(*end));
            writeln!(f, "{begin:>8} to {end:>8}  {name:<width$}  node {node}")?;
        }
        let Machines { nodes, cpus, gpus } = self.machines;
        let what = if gpus > 0.0 { "cards" } else { "processors" };
        writeln!(
            f,
            "{} on {nodes} nodes of {cpus} processors and {gpus} cards; {} one task after another; \
             {:.0} % of the {what} idle",
            said(self.seconds),
            said(self.work),
            100.0 * self.idle
        )?;
        writeln!(f, "limited by {}", self.limit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::presets::preset;

    fn outline() -> Outline {
        let folder = tempfile::tempdir().unwrap();
        let experiment = preset("paper-sweep").unwrap();
        Plan::new(&experiment, &crate::Inputs::named("source"))
            .unwrap()
            .outline(&experiment, folder.path())
    }

    fn times() -> Times {
        let seconds = [
            (Kind::Data, 60.0),
            (Kind::WarmUp, 3600.0),
            (Kind::Branch, 1800.0),
            (Kind::Cell, 900.0),
            (Kind::Report, 5.0),
        ];
        Times { seconds: seconds.into_iter().collect(), startup: 10.0 }
    }

    #[test]
    fn more_machines_are_never_slower_and_never_beat_the_chain() {
        let outline = outline();
        let at = |nodes| {
            let machines = Machines { nodes, cpus: 16.0, gpus: 1.0 };
            Forecast::new(&outline, machines, &times(), true).unwrap()
        };
        let mut last = f64::INFINITY;
        for nodes in [1, 2, 4, 8, 64] {
            let forecast = at(nodes);
            assert!(forecast.seconds <= last * 1.001, "{nodes} nodes");
            assert!(forecast.seconds >= forecast.chain - 1e-6);
            assert!((0.0..=1.0).contains(&forecast.idle), "{}", forecast.idle);
            last = forecast.seconds;
        }
        let (one, many) = (at(1), at(64));
        assert!((one.work - many.work).abs() < 0.1 * one.work, "the work is the same");
        assert!(one.seconds > 2.0 * many.seconds, "one machine does all of it");
        assert!(at(1).limit().contains("cards") && at(64).limit().contains("chain"));
    }

    #[test]
    fn a_step_that_nobody_timed_is_named() {
        let machines = Machines { nodes: 2, cpus: 4.0, gpus: 0.0 };
        let none = Times::default();
        let said = Forecast::new(&outline(), machines, &none, true).unwrap_err().to_string();
        assert!(said.contains("--times data=SECONDS"), "{said}");
    }

    #[test]
    fn searches_take_time_in_proportion_to_their_budgets() {
        let outline = outline();
        let times = times();
        let cells: Vec<_> = outline.steps.iter().filter(|s| s.kind == Kind::Cell).collect();
        let largest = cells.iter().filter_map(|s| s.budget).max().unwrap();
        for cell in cells {
            let share = cell.budget.unwrap() as f64 / largest as f64;
            assert_eq!(times.of(&outline, cell).unwrap(), 900.0 * share);
        }
    }
}
