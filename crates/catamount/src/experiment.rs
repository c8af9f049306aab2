//! `catamount run`, and the parts of it that can be had alone: `train`, `calibrate`, `tune`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use catamount_calibration::Choice;
use catamount_evaluate::Workload as Searches;
use catamount_experiment::{
    Error, Experiment, Inputs, Plan, Study, Workload, preset, preset_text, run as run_study, schema,
};
use catamount_model::Backend;
use catamount_report::{CALIBRATIONS, PROVERS};

use crate::arguments::real;
use crate::cluster::{Address, Cluster};
use crate::device::{Devices, OnDevice};
use crate::fleet::{self, Invocation, Work};
use crate::processes::Processes;
use crate::provers::Provers;
use crate::step::{Probe, TOKEN};
use crate::{command, forecast, stop, together};

#[derive(clap::Args)]
pub struct Arguments {
    /// An experiment's file, or a preset: demo, metamath, lean-demo, paper-matrix, paper-official,
    /// paper-sweep, paper-matching, paper-priors; the beginning of a name is enough.
    #[arg(required_unless_present = "schema")]
    experiment: Option<String>,
    /// Folder of the study; named after the experiment if not given.
    #[arg(long)]
    out: Option<PathBuf>,
    /// auto, cpu or cuda:0; cuda:all or a list (cuda:0,cuda:1) spreads steps over several, by
    /// processes.
    #[arg(long, default_value = "auto")]
    device: Devices,
    /// Do up to N steps at once on the one device: small models leave a card waiting. The results
    /// are those of one at a time.
    #[arg(long, value_name = "N", conflicts_with = "ray")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    together: Option<u16>,
    /// Spread the steps over a Ray cluster: at an address, or a new one on this machine.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "local")]
    ray: Option<String>,
    /// With --ray: nodes do not see the study's folder; its files travel through Ray's object
    /// store.
    #[arg(long, requires = "ray")]
    ray_objects: bool,
    /// With --ray: move a step to another node after this many seconds without progress.
    #[arg(long, value_name = "SECONDS", requires = "ray", default_value_t = 600.0)]
    #[arg(value_parser = real(1.0, Searches::LONGEST))]
    ray_patience: f64,
    /// With --ray: start N dedicated prover workers, shared by all nodes.
    #[arg(long, value_name = "N", requires = "ray")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    ray_provers: Option<u16>,
    /// Print the plan, with what is up to date and what the rest costs, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print the plan, or what came out, as JSON, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    forecast: forecast::Arguments,
    /// Print the experiment's file (to start one of your own from a preset) and do nothing.
    #[arg(long)]
    print: bool,
    /// Print the JSON Schema of an experiment's file, for editors, and do nothing.
    #[arg(long)]
    schema: bool,
    /// Trust files as they are: neither what is done is compared with its stamps, nor traces with
    /// the manifest beside them.
    #[arg(long)]
    no_verify: bool,
}

/// How much of a study is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// To the report.
    Whole,
    /// Data, warm-up and branches.
    Training,
    /// Data, warm-up, and every strategy's surrogate against searches of validation theorems.
    Calibration,
    /// Everything that `auto` needs, without touching held-out theorems.
    Tuning,
}

pub fn run(arguments: &Arguments, scope: Scope) -> Result<()> {
    if arguments.schema {
        print!("{}", schema());
        return Ok(());
    }
    let name = arguments.experiment.as_deref().unwrap_or_default();
    let path = Path::new(name);
    if arguments.print {
        print!("{}", text(name, path)?);
        return Ok(());
    }
    let experiment = read(name)?;
    let stem =
        path.file_stem().map_or_else(|| "study".into(), |stem| stem.to_string_lossy().into_owned());
    let folder = arguments.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(stem));
    if scope == Scope::Tuning && !experiment.auto {
        bail!(
            "{name}: there is nothing to tune; add {{ objective = \"auto\" }} to its objectives, \
             and describe the candidates in [tune]"
        );
    }
    if arguments.dry_run {
        return dry_run(arguments, experiment, &folder, scope);
    }
    let (data, tools) = (experiment.missing_data(&folder), experiment.missing_tools());
    if !data.is_empty() {
        return Err(absent(data.into_iter().chain(tools).collect()));
    }
    let inputs = match Inputs::of(&experiment, &folder) {
        Err(_) if !tools.is_empty() => return Err(absent(tools)),
        inputs => inputs?,
    };
    let verify = !arguments.no_verify;
    if verify {
        experiment.making(&folder).source.verify()?;
    }
    let several = !experiment.seeds.is_empty();
    let mut studies = Vec::new();
    for (experiment, folder) in seeds(experiment, &folder) {
        let plan = plan(&experiment, &inputs, scope)?;
        // A study that is done can be shown again wherever it was copied to, and nodes of a cluster
        // have models and provers of their own.
        if !tools.is_empty() && arguments.ray.is_none() && !plan.is_done(&folder) {
            return Err(absent(tools));
        }
        studies.push((experiment, plan, folder));
    }
    let spread = spread(arguments, name, &studies, several, &folder, scope)?;
    let folders: Vec<PathBuf> = studies.iter().map(|(.., folder)| folder.clone()).collect();
    let (mut last, mut unfinished) = (None, 0);
    for (experiment, plan, folder) in studies {
        if several && !spread {
            note!("seed {}", experiment.seed);
        }
        if !spread && let Devices::One(device) = &arguments.device {
            let job = Job { experiment, plan, folder: folder.clone(), verify };
            match device.run(job)? {
                Ran::Done(report) => last = report,
                Ran::Unfinished(count) => {
                    unfinished += count;
                    // It shows what there is.
                    last = Some(catamount_report::report(&folder)?);
                }
            }
        }
        match scope {
            Scope::Calibration => show_calibrations(&folder, arguments.json)?,
            Scope::Tuning => show_choices(&folder, arguments.json)?,
            Scope::Whole | Scope::Training => {}
        }
    }
    if several && scope == Scope::Calibration && !arguments.json {
        let summary = catamount_report::calibration_summary(&folders)?;
        println!("\n{}", summary.map(|table| table.to_text()).unwrap_or_default());
    }
    if several && scope == Scope::Whole {
        last = Some(catamount_report::report(&folder)?);
    }
    if let Some(report) = last {
        show(&report, arguments.json)?;
    }
    match unfinished {
        0 => Ok(()),
        count => Err(Error::Unfinished { count }.into()),
    }
}

/// Inputs that are not there, as the reason why nothing was begun.
fn absent(missing: Vec<String>) -> anyhow::Error {
    match &missing[..] {
        [one] => anyhow::anyhow!("{one}"),
        all => anyhow::anyhow!("{} inputs are missing:\n  {}", all.len(), all.join("\n  ")),
    }
}

/// Shows the plan of every seed. It can be looked at before the data are there.
fn dry_run(
    arguments: &Arguments,
    experiment: Experiment,
    folder: &Path,
    scope: Scope,
) -> Result<()> {
    let mut missing = experiment.missing_data(folder);
    let readable = missing.is_empty();
    missing.extend(experiment.missing_tools());
    let inputs = Inputs::at_hand(&experiment, folder)?;
    let theorems = experiment.evaluation.limit;
    let mut planned = Vec::new();
    for (experiment, folder) in seeds(experiment, folder) {
        planned.push((plan(&experiment, &inputs, scope)?, experiment, folder));
    }
    if let Some(machines) = arguments.forecast.machines() {
        let outline =
            |(plan, experiment, folder): &(Plan, _, PathBuf)| plan.outline(experiment, folder);
        let outlines = planned.iter().map(outline).collect();
        let provers = arguments.ray_provers;
        let forecast = arguments.forecast.of(outlines, machines, provers, theorems)?;
        match arguments.json {
            true => println!("{}", serde_json::to_string_pretty(&forecast)?),
            false => print!("{forecast}"),
        }
        return Ok(());
    }
    for (plan, experiment, folder) in planned {
        let workload = match readable {
            true => Workload::of(&experiment, &plan, &folder)?,
            false => Workload::unread(&experiment),
        };
        if arguments.json {
            let mut outline = plan.outline(&experiment, &folder).counted(&plan, &workload)?;
            outline.missing.clone_from(&missing);
            println!("{}", serde_json::to_string_pretty(&outline)?);
            continue;
        }
        for missing in &missing {
            println!("missing: {missing}");
        }
        print!("{}", plan.describe(&experiment, &workload, &folder)?);
    }
    Ok(())
}

/// An experiment by its file, or a preset by its name.
pub fn read(name: &str) -> Result<Experiment> {
    let path = Path::new(name);
    Ok(if path.exists() { Experiment::read(path)? } else { preset(name)? })
}

/// Has studies done by several threads or processes, here or on a cluster, all seeds at once; false
/// if the steps come one after the other.
fn spread(
    arguments: &Arguments,
    name: &str,
    studies: &[(Experiment, Plan, PathBuf)],
    several: bool,
    whole: &Path,
    scope: Scope,
) -> Result<bool> {
    // On a cluster the cards are the nodes', of which this machine may not be one.
    let devices = if arguments.ray.is_some() { None } else { arguments.device.several()? };
    let together = arguments.together.map_or(1, usize::from);
    if devices.is_none() && arguments.ray.is_none() && together == 1 {
        return Ok(false);
    }
    if devices.is_some() && together > 1 {
        bail!("--together is for steps on one device; name one --device, or leave it out");
    }
    if scope == Scope::Calibration {
        bail!(
            "`calibrate` does its steps one after the other; leave out --together and --ray, and \
             name one --device"
        );
    }
    stop::on_interrupt();
    let path = Path::new(name);
    let (mut works, mut locks) = (Vec::new(), Vec::new());
    for (experiment, plan, folder) in studies {
        let invocation = Invocation {
            experiment: match path.exists() {
                true => std::path::absolute(path)?.display().to_string(),
                false => name.to_string(),
            },
            folder: std::path::absolute(folder)?,
            seed: several.then_some(experiment.seed),
        };
        let work = Work { experiment, plan, folder, invocation };
        locks.push(work.claim(!arguments.no_verify)?);
        works.push(work);
    }
    match (&arguments.ray, &arguments.device, devices) {
        (Some(address), ..) => {
            fleet::run(&works, &mut on_cluster(arguments, address, &works, whole)?)?;
        }
        (None, Devices::One(device), _) => together::run(&works, *device, together)?,
        (None, _, devices) => {
            let invocations = works.iter().map(|work| work.invocation.clone()).collect();
            let mut crew = Processes::new(invocations, devices.unwrap_or_default());
            fleet::run(&works, &mut crew)?;
        }
    }
    drop(locks);
    Ok(true)
}

/// The cluster that does these studies, of which the whole is in one folder.
fn on_cluster(
    arguments: &Arguments,
    address: &str,
    works: &[Work<'_>],
    whole: &Path,
) -> Result<Cluster> {
    let token = Probe::token();
    for work in works {
        let path = work.folder.join(TOKEN);
        std::fs::write(&path, &token).with_context(|| path.display().to_string())?;
    }
    let first = &works[0];
    let here = Probe::here(first.experiment, first.folder);
    let address = Address {
        ray: address.to_string(),
        objects: arguments.ray_objects,
        patience: arguments.ray_patience,
    };
    let provers = arguments.ray_provers.map(|count| {
        Provers::new(count.into(), first.experiment, first.folder, whole.join(PROVERS))
    });
    let studies = works.iter().map(|work| (work.invocation.clone(), work.outline())).collect();
    Cluster::connect(&address, &arguments.device, studies, provers.transpose()?, here)
}

/// The experiment at each of its seeds, with a folder for each; or itself.
fn seeds(experiment: Experiment, folder: &Path) -> Vec<(Experiment, PathBuf)> {
    let folders = experiment.folders(folder);
    if experiment.seeds.is_empty() {
        return folders.into_iter().map(|folder| (experiment.clone(), folder)).collect();
    }
    let at = |(&seed, folder): (&u64, PathBuf)| (experiment.at_seed(seed), folder);
    experiment.seeds.iter().zip(folders).map(at).collect()
}

fn plan(experiment: &Experiment, inputs: &Inputs, scope: Scope) -> Result<Plan> {
    Ok(match scope {
        Scope::Whole => Plan::new(experiment, inputs)?,
        Scope::Training => Plan::new(experiment, inputs)?.training_only(),
        Scope::Calibration => Plan::calibration(experiment, inputs)?,
        Scope::Tuning => Plan::new(experiment, inputs)?.tuning_only(),
    })
}

/// The table of a study's calibrations, and its figure beside them.
fn show_calibrations(folder: &Path, json: bool) -> Result<()> {
    let shown = catamount_report::show_calibrations(folder)?;
    if json {
        println!("{}", serde_json::to_string(&shown)?);
        return Ok(());
    }
    println!("\n{}\n{}", shown.table.to_text(), shown.summary.to_text());
    println!("{}\n{}", folder.join(CALIBRATIONS).display(), shown.figure.display());
    Ok(())
}

/// What was chosen under each strategy.
fn show_choices(folder: &Path, json: bool) -> Result<()> {
    let tune = folder.join("tune");
    let entries = std::fs::read_dir(&tune).with_context(|| tune.display().to_string())?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    for path in paths {
        let choice: Choice = serde_json::from_slice(&std::fs::read(&path)?)?;
        if json {
            println!("{}", serde_json::to_string(&choice)?);
            continue;
        }
        println!("\n{}: {}", path.display(), choice.chosen);
        for outcome in &choice.outcomes {
            let against = match (&outcome.against_control, outcome.holm_p) {
                (Some(c), Some(p)) => format!(
                    "{:+.1} points over {} [{:.1}, {:.1}], Holm p {p:.3}",
                    c.gain_pp, choice.control, c.ci_low, c.ci_high
                ),
                _ => String::new(),
            };
            println!(
                "  {:<36} {:>4} of {:>4} {against}",
                outcome.candidate.name, outcome.proved, outcome.theorems
            );
        }
    }
    Ok(())
}

/// An experiment's file as it stands.
fn text(name: &str, path: &Path) -> Result<String> {
    if path.exists() {
        Experiment::read(path)?;
        return Ok(std::fs::read_to_string(path)?);
    }
    Ok(preset_text(name)?.to_string())
}

/// The first table, what is missing, and where the rest is.
pub fn show(report: &catamount_report::Report, json: bool) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(report)?);
        return Ok(());
    }
    if let Some(table) = report.tables.first() {
        println!("\n{}", table.to_text());
    }
    for missing in &report.missing {
        println!("missing: {missing}");
    }
    for note in &report.notes {
        println!("note: {note}");
    }
    println!("report: {}", report.page.display());
    Ok(())
}

struct Job {
    experiment: Experiment,
    plan: Plan,
    folder: PathBuf,
    verify: bool,
}

/// What came of a study.
enum Ran {
    Done(Option<catamount_report::Report>),
    /// But for so many searches of cells, which ended in errors.
    Unfinished(usize),
}

impl OnDevice for Job {
    type Output = Ran;

    fn run<B: Backend>(self, backend: Arc<B>) -> Result<Self::Output> {
        let provenance = command::provenance();
        let stop = stop::on_interrupt();
        let study = Study::open(&self.experiment, &self.folder, backend, stop, provenance)?;
        match run_study(&study, &self.plan, self.verify) {
            Err(Error::Interrupted) => {
                note!("interrupted; run the same command again to go on");
                std::process::exit(130);
            }
            Err(Error::Unfinished { count }) => Ok(Ran::Unfinished(count)),
            result => Ok(Ran::Done(result?)),
        }
    }
}
