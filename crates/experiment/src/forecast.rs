//! How long a study would take on machines that are not here: its schedule, played with the times
//! that its steps took, or are said to take.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::kind::Kind;
use crate::machines::{Machines, Resource};
use crate::needs::Needs;
use crate::outline::Outline;
use crate::schedule::{Schedule, Task};
use crate::times::Times;

/// Why there is no forecast.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unplanned {
    /// Nobody knows how long a step takes.
    #[error(
        "nobody has timed {step} here; run it once, or say how long it takes with --times \
         {kind}=SECONDS",
        kind = kind.name()
    )]
    Untimed {
        /// The step.
        step: String,
        /// Its kind.
        kind: Kind,
    },
    /// No machine can do a step.
    #[error(
        "no node has room for {step}: it needs {} processors, {} cards of at least {:.1} GB and \
         {:.1} GB of memory",
        needs.cpus,
        needs.gpus,
        needs.card as f64 / 1e9,
        needs.memory as f64 / 1e9
    )]
    Impossible {
        /// The step.
        step: String,
        /// What it needs.
        needs: Needs,
    },
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
    /// What tasks waited for, in seconds of all of them together.
    waited: BTreeMap<Resource, f64>,
    /// Seconds of cells that their provers and not their models set.
    checking: f64,
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

impl Forecast {
    /// Plays the schedules of what is left of some outlines, side by side; of all of them with
    /// `anew`.
    pub fn new(
        outlines: &[Outline],
        machines: Machines,
        times: &Times,
        anew: bool,
    ) -> Result<Self, Unplanned> {
        let mut outlines = outlines.to_vec();
        for step in outlines.iter_mut().flat_map(|outline| &mut outline.steps) {
            step.done &= !anew;
        }
        let slots = machines.slots(&outlines);
        let (mut seconds, mut checking) = (Vec::new(), 0.0);
        for outline in &outlines {
            let mut own = BTreeMap::new();
            for step in outline.steps.iter().filter(|step| !step.done) {
                let needs = machines.needs(step.needs);
                if !machines.room().fits(&needs) || (needs.gpus > 0.0 && needs.card > machines.card)
                {
                    return Err(Unplanned::Impossible { step: step.name.clone(), needs });
                }
                let alone = times.of(outline, step)?;
                let checked = times.checked(&outlines, step, slots);
                checking += if checked > alone { checked } else { 0.0 };
                own.insert(step.id.clone(), alone.max(checked));
            }
            seconds.push(own);
        }
        let length = |study: usize, task: &Task| {
            let steps = task.steps.iter().filter_map(|id| seconds[study].get(id)).sum::<f64>();
            times.startup + steps
        };
        let mut schedules: Vec<Schedule<'_>> = outlines.iter().map(Schedule::new).collect();
        let mut free = vec![machines.room(); machines.nodes];
        let mut queue: Vec<(usize, Task)> = Vec::new();
        let mut running: Vec<(f64, usize, usize, Task)> = Vec::new();
        let mut waited: BTreeMap<Resource, f64> = BTreeMap::new();
        let (mut now, mut tasks, mut work, mut busy) = (0.0, Vec::new(), 0.0, 0.0);
        loop {
            for (study, schedule) in schedules.iter_mut().enumerate() {
                let given = schedule.tasks(slots.div_ceil(outlines.len()));
                queue.extend(given.into_iter().map(|task| (study, task)));
            }
            let mut waiting = Vec::new();
            for (study, task) in queue {
                let needs = machines.needs(task.needs);
                let Some(node) = free.iter().position(|room| room.fits(&needs)) else {
                    waiting.push((study, task));
                    continue;
                };
                free[node].give(&needs, -1.0);
                let end = now + length(study, &task);
                let seed = match outlines.len() {
                    1 => String::new(),
                    _ => format!("seed {}, ", outlines[study].seed),
                };
                let name = format!("{seed}{}", task.name);
                tasks.push(Placed { name, node: node + 1, begin: now, end });
                work += end - now;
                busy += (end - now) * if machines.gpus > 0.0 { needs.gpus } else { needs.cpus };
                running.push((end, node, study, task));
            }
            queue = waiting;
            let first = (0..running.len()).min_by(|&a, &b| running[a].0.total_cmp(&running[b].0));
            let Some(first) = first else { break };
            let (end, node, study, task) = running.swap_remove(first);
            for (_, task) in &queue {
                let needs = machines.needs(task.needs);
                // A node that lacks something else has cards left.
                let lack = free.iter().filter_map(|room| room.lacks(&needs)).max();
                *waited.entry(lack.unwrap_or(Resource::Cards)).or_default() += end - now;
            }
            free[node].give(&machines.needs(task.needs), 1.0);
            now = end;
            schedules[study].ended(&task);
        }
        let each = if machines.gpus > 0.0 { machines.gpus } else { machines.cpus };
        let all = now * each * machines.nodes as f64;
        let chains = outlines.iter().zip(&seconds);
        Ok(Forecast {
            tasks,
            seconds: now,
            work,
            chain: chains
                .map(|(outline, seconds)| chain(outline, seconds, times.startup))
                .fold(0.0, f64::max),
            idle: if all > 0.0 { 1.0 - busy / all } else { 0.0 },
            waited,
            checking,
            machines,
        })
    }

    /// What keeps the study from being faster.
    pub fn limit(&self) -> String {
        let longest = self.waited.iter().max_by(|a, b| a.1.total_cmp(b.1));
        let limit = match longest {
            Some((resource, _)) if self.seconds > 1.05 * self.chain => match resource {
                Resource::Cards => "the number of cards",
                Resource::Processors => "the number of processors",
                Resource::Memory => "the memory of the nodes",
            },
            _ => "the longest chain of steps that wait for each other; more machines do not help",
        };
        match self.checking > 0.5 * self.work {
            true => format!("{limit}; most of the time is spent on cells that wait for provers"),
            false => limit.to_string(),
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
        let Machines { nodes, cpus, gpus, .. } = self.machines;
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
    use crate::times::Checks;

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
        Times { seconds: seconds.into_iter().collect(), startup: 10.0, checks: None }
    }

    fn machines(nodes: usize, cpus: f64, gpus: f64) -> Machines {
        Machines { nodes, cpus, gpus, memory: None, card: crate::CARD }
    }

    #[test]
    fn seeds_are_planned_side_by_side() {
        let seeds: Vec<Outline> = (1..=3).map(|seed| Outline { seed, ..outline() }).collect();
        let plan = |outlines: &[Outline], gpus| {
            Forecast::new(outlines, machines(1, 64.0, gpus), &times(), true).unwrap()
        };
        let (one, three) = (plan(&seeds[..1], 8.0), plan(&seeds, 8.0));
        assert_eq!(three.tasks.iter().filter(|task| task.name.ends_with("warm-up")).count(), 3);
        assert!(three.tasks.iter().any(|task| task.name.starts_with("seed 2, ")));
        assert!(three.seconds < 2.0 * one.seconds, "{} and {}", three.seconds, one.seconds);
        assert!(three.idle < one.idle);
    }

    #[test]
    fn what_tasks_wait_for_is_what_limits() {
        let limit = |machines| {
            let forecast = Forecast::new(&[outline()], machines, &times(), true).unwrap();
            forecast.limit()
        };
        assert_eq!(limit(machines(1, 64.0, 1.0)), "the number of cards");
        // Three processors are one search, whatever the cards could do.
        assert_eq!(limit(machines(1, 3.0, 8.0)), "the number of processors");
        let memory = Some(outline().steps.iter().map(|step| step.needs.memory).max().unwrap());
        let short = Machines { memory, ..machines(1, 64.0, 8.0) };
        assert_eq!(limit(short), "the memory of the nodes");
    }

    #[test]
    fn a_step_that_no_machine_can_do_is_named() {
        let refused = |machines| {
            Forecast::new(&[outline()], machines, &times(), true).unwrap_err().to_string()
        };
        assert!(refused(machines(4, 2.0, 8.0)).contains("it needs 3 processors"));
        let small = Machines { card: 1 << 30, ..machines(4, 64.0, 8.0) };
        assert!(refused(small).contains("no node has room for warm-up"));
    }

    #[test]
    fn provers_bound_cells() {
        let plan = |checks| {
            let times = Times { checks, ..times() };
            Forecast::new(&[outline()], machines(1, 64.0, 1.0), &times, true).unwrap()
        };
        let checks = |rate, shared| Some(Checks { rate, shared, theorems: 458 });
        let free = plan(None);
        assert_eq!(plan(checks(1e6, None)).seconds, free.seconds, "they keep up");
        let slow = plan(checks(10.0, None));
        assert!(slow.seconds > 5.0 * free.seconds && slow.limit().contains("provers"));
        assert!(plan(checks(10.0, Some(64))).seconds < slow.seconds, "more of them");
    }

    #[test]
    fn more_machines_are_never_slower_and_never_beat_the_chain() {
        let outline = outline();
        let at = |nodes| {
            let outlines = std::slice::from_ref(&outline);
            Forecast::new(outlines, machines(nodes, 16.0, 1.0), &times(), true).unwrap()
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
        let (none, machines) = (Times::default(), machines(2, 4.0, 0.0));
        let said = Forecast::new(&[outline()], machines, &none, true).unwrap_err().to_string();
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
