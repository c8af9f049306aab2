//! Which steps can be done next, and which of them by one process. Knows neither clocks nor
//! machines: whoever has them asks for tasks, and tells which have ended.

use crate::kind::Kind;
use crate::needs::Needs;
use crate::outline::{Outline, OutlinedStep};

/// Steps that one process does, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Their ids.
    pub steps: Vec<String>,
    /// For people.
    pub name: String,
    /// What they need of a machine.
    pub needs: Needs,
}

/// How far the steps of an outline are.
#[derive(Clone, Debug)]
pub struct Schedule<'a> {
    outline: &'a Outline,
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Given,
    Ended,
}

impl<'a> Schedule<'a> {
    /// Of what is left of an outline. The report takes seconds and is always made anew.
    pub fn new(outline: &'a Outline) -> Self {
        let state = |step: &OutlinedStep| match step.done && step.kind != Kind::Report {
            true => State::Ended,
            false => State::Waiting,
        };
        Schedule { outline, states: outline.steps.iter().map(state).collect() }
    }

    /// The tasks that can begin now. Searches whose samples are drawn in one batch go into as few
    /// tasks as keep so many slots busy: a full batch costs little more than a small one, and each
    /// task loads the model and the prover's library once. Others gain nothing from each other.
    pub fn tasks(&mut self, slots: usize) -> Vec<Task> {
        let ready: Vec<usize> = (0..self.states.len()).filter(|&i| self.is_ready(i)).collect();
        let step = |index: usize| &self.outline.steps[index];
        let (cells, others): (Vec<usize>, Vec<usize>) =
            ready.iter().partition(|&&index| step(index).batch.is_some());
        let mut groups: Vec<Vec<usize>> = others.into_iter().map(|index| vec![index]).collect();
        let most = cells.len().div_ceil(slots.max(1)).max(1);
        let mut open: Vec<Vec<usize>> = Vec::new();
        for index in cells {
            let fits = |group: &&mut Vec<usize>| {
                group.len() < most && step(group[0]).batch == step(index).batch
            };
            match open.iter_mut().rev().find(fits) {
                Some(group) => group.push(index),
                None => open.push(vec![index]),
            }
        }
        groups.extend(open);
        groups.sort();
        for &index in groups.iter().flatten() {
            self.states[index] = State::Given;
        }
        groups.iter().map(|group| self.task(group)).collect()
    }

    fn is_ready(&self, index: usize) -> bool {
        let ended = |id: &String| {
            let place = self.outline.steps.iter().position(|step| step.id == *id);
            place.is_none_or(|place| self.states[place] == State::Ended)
        };
        self.states[index] == State::Waiting && self.outline.steps[index].after.iter().all(ended)
    }

    fn task(&self, group: &[usize]) -> Task {
        let first = &self.outline.steps[group[0]];
        let name = match group {
            [_] => first.name.clone(),
            _ => format!("{} and {} more", first.name, group.len() - 1),
        };
        let steps = group.iter().map(|&index| self.outline.steps[index].id.clone()).collect();
        Task { steps, name, needs: first.needs }
    }

    /// A task has ended; what waits for it can begin.
    pub fn ended(&mut self, task: &Task) {
        for (step, state) in self.outline.steps.iter().zip(&mut self.states) {
            if task.steps.contains(&step.id) {
                *state = State::Ended;
            }
        }
    }

    /// Whether nothing is left to begin.
    pub fn is_empty(&self) -> bool {
        self.states.iter().all(|state| *state != State::Waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::presets::preset;

    /// Every step is given once, after everything that it needs, however many slots there are.
    #[test]
    fn steps_are_given_once_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["demo", "paper-sweep"] {
            let experiment = preset(name).unwrap();
            let plan = Plan::new(&experiment, &crate::Inputs::named("source")).unwrap();
            let outline = plan.outline(&experiment, folder.path());
            for slots in [1, 3, 64] {
                let mut schedule = Schedule::new(&outline);
                let mut ended: Vec<String> = Vec::new();
                while !schedule.is_empty() {
                    let tasks = schedule.tasks(slots);
                    assert!(!tasks.is_empty(), "{name} stands still after {ended:?}");
                    for task in &tasks {
                        for id in &task.steps {
                            let before = outline.ancestors(id);
                            assert!(before.iter().all(|b| ended.iter().any(|e| e == b)), "{id}");
                        }
                    }
                    for task in tasks {
                        schedule.ended(&task);
                        ended.extend(task.steps);
                    }
                }
                ended.sort();
                let mut all: Vec<String> = outline.steps.iter().map(|s| s.id.clone()).collect();
                all.sort();
                assert_eq!(ended, all, "{name}, {slots} slots");
            }
        }
    }

    #[test]
    fn searches_are_spread_over_the_slots_and_a_task_has_one_batch() {
        let folder = tempfile::tempdir().unwrap();
        let experiment = preset("demo").unwrap();
        let plan = Plan::new(&experiment, &crate::Inputs::named("source")).unwrap();
        let mut outline = plan.outline(&experiment, folder.path());
        for step in &mut outline.steps {
            step.done = !matches!(step.kind, Kind::Cell | Kind::Report);
        }
        let batch = |id: &str| outline.steps.iter().find(|s| s.id == *id).unwrap().batch.clone();
        let batches: std::collections::BTreeSet<_> = outline
            .steps
            .iter()
            .filter(|step| step.kind == Kind::Cell)
            .filter_map(|step| step.batch.clone())
            .collect();
        let tasks = |slots| Schedule::new(&outline).tasks(slots);
        assert_eq!(tasks(1).len(), batches.len());
        assert_eq!(tasks(1000).len(), plan.cells().count());
        for task in tasks(3) {
            assert!(task.steps.iter().all(|id| batch(id) == batch(&task.steps[0])));
        }
    }
}
