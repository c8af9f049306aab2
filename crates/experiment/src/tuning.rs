//! The steps of `auto`: a tournament of trained branches and temperatures on validation theorems,
//! and the cells of those that it chose.

use catamount_calibration::{Candidate, Choice, Halving, Task};
use catamount_evaluate::log::Outcome;
use catamount_evaluate::{CellRun, CellTask, Theorems};
use catamount_model::Backend;

use crate::cells::{self, Sampler, theorems};
use crate::error::{Error, Work};
use crate::plan::Plan;
use crate::step::{Cell, Chosen, Contender, Tournament};
use crate::study::{Study, say};

/// Plays a tournament and keeps its choice.
pub(crate) fn tournament<B: Backend>(study: &Study<'_, B>, of: &Tournament) -> Work<()> {
    let pool = theorems(study, "valid", Some(study.experiment.tune.theorems))?;
    let candidates = of
        .contenders
        .iter()
        .map(|contender| Candidate { name: contender.name.clone(), control: contender.control });
    let mut halving = Halving::new(candidates.collect(), pool.jobs.len())?;
    let mut sampler = Sampler::default();
    while let Some(task) = halving.ask().into_iter().next() {
        let contender = &of.contenders[task.candidate];
        let proved = searched(study, of, contender, &task, &pool, &mut sampler)?;
        say(format!(
            "  {}: {} of {} theorems ({} to {})",
            contender.name,
            proved.iter().filter(|&&proved| proved).count(),
            proved.len(),
            task.theorems.start + 1,
            task.theorems.end
        ));
        halving.tell(task.candidate, &proved)?;
    }
    let Some(choice) = halving.choice() else { return Err(Error::Interrupted.into()) };
    say(format!("  chosen: {} (best control: {})", choice.chosen, choice.control));
    study.write_json(of.choice(), &choice)
}

/// What one contender did on a stretch of the pool.
fn searched<B: Backend>(
    study: &Study<'_, B>,
    of: &Tournament,
    contender: &Contender,
    task: &Task,
    pool: &Theorems,
    sampler: &mut Sampler<B>,
) -> Work<Vec<bool>> {
    let searches = CellTask {
        objective: contender.name.clone(),
        deployment: contender.deployment.clone(),
        log: study.path(of.log(contender, &task.theorems)),
        theorems: pool.stretch(task.theorems.clone()),
    };
    let mut run: Option<CellRun> = None;
    sampler.search(study, &contender.trained, &[searches], &mut |_, ended| {
        run = Some(ended.clone());
        Ok(())
    })?;
    let Some(run) = run else { return Err(Error::Interrupted.into()) };
    refuse_errors(&run)?;
    Ok(run.records.iter().map(|record| record.outcome == Outcome::Proved).collect())
}

/// An error is no unproved theorem: the searches are tried again before anything rests on them.
fn refuse_errors(run: &CellRun) -> Work<()> {
    match run.count(Outcome::Error) {
        0 => Ok(()),
        count => Err(Error::Unfinished { count }.into()),
    }
}

/// Searches the held-out theorems with what a tournament chose.
pub(crate) fn chosen<B: Backend>(study: &Study<'_, B>, plan: &Plan, chosen: &Chosen) -> Work<()> {
    let choice: Choice = study.read_json(chosen.tournament.choice())?;
    let name = if chosen.control { &choice.control } else { &choice.chosen };
    let found = chosen.tournament.contenders.iter().find(|contender| contender.name == *name);
    let Some(contender) = found else {
        let path = study.path(chosen.tournament.choice());
        let reason = format!("chose `{name}`, which is not a candidate; delete it and run again");
        return Err(Error::File { path, reason }.into());
    };
    let cell = Cell {
        trained: contender.trained.clone(),
        objective: chosen.objective.clone(),
        deployment: contender.deployment.clone(),
    };
    let searches = cells::searches(study, plan, &cell)?;
    let mut sampler = Sampler::default();
    let mut errors = Ok(());
    sampler.search(study, &cell.trained, &[searches], &mut |_, run| {
        say(format!("  {name}: {} of {} proved", run.count(Outcome::Proved), run.records.len()));
        errors = refuse_errors(run);
        Ok(())
    })?;
    errors
}
