//! `--dry-run --nodes 8 --gpus 8`: how long a study would take on machines that are not here.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use catamount_experiment::{CARD, Checks, Forecast, Kind, Machines, Outline, Times};

use crate::arguments::real;

/// Processors or cards of a node, and seconds, beyond which a number is a slip of the pen.
const MOST: f64 = 1e5;
const LONGEST: f64 = 1e9;
/// Bytes of a gigabyte.
const GB: f64 = 1e9;

#[derive(clap::Args)]
pub struct Arguments {
    /// With --dry-run: estimate schedule, time and bottleneck for this many nodes.
    #[arg(long, requires = "dry_run", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: Option<u32>,
    /// Cards of each node; without any, models compute on processors.
    #[arg(long, requires = "nodes", default_value_t = 0.0, value_parser = real(0.0, MOST))]
    gpus: f64,
    /// Processors of each node.
    #[arg(long, requires = "nodes", default_value_t = 16.0, value_parser = real(1.0, MOST))]
    cpus: f64,
    /// Gigabytes of memory of each node; without limit if not given.
    #[arg(long, requires = "nodes", value_name = "GB", value_parser = real(0.1, MOST))]
    memory: Option<f64>,
    /// Gigabytes of memory of each card.
    #[arg(long, requires = "nodes", value_name = "GB", default_value_t = CARD as f64 / GB)]
    #[arg(value_parser = real(0.1, MOST))]
    card: f64,
    /// Tactics a second that a prover worker checks: no cell is faster than its provers.
    #[arg(long, requires = "nodes", value_parser = real(1e-3, LONGEST))]
    prover_rate: Option<f64>,
    /// Assumed seconds for steps not timed here, by kind: data=60,warm-up=3600,cell=900. A
    /// cell's are for the largest budget.
    #[arg(long, requires = "nodes", value_delimiter = ',', value_parser = time)]
    times: Vec<(Kind, f64)>,
    /// Seconds that every process takes before its first step begins.
    #[arg(long, requires = "nodes", default_value_t = 1.0, value_parser = real(0.0, LONGEST))]
    startup: f64,
}

fn time(text: &str) -> Result<(Kind, f64), String> {
    let known = || Kind::ALL.map(Kind::name).join(", ");
    let (name, seconds) =
        text.split_once('=').ok_or_else(|| format!("`{text}` is not KIND=SECONDS"))?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let kind = kind.ok_or_else(|| format!("there is no kind `{name}`; there are {}", known()))?;
    let seconds = real(0.0, LONGEST)(seconds).map_err(|error| format!("`{text}`: {error}"))?;
    Ok((kind, seconds))
}

impl Arguments {
    /// The machines that are asked about.
    pub fn machines(&self) -> Option<Machines> {
        let nodes = self.nodes? as usize;
        let memory = self.memory.map(|gigabytes| (gigabytes * GB) as u64);
        let card = (self.card * GB) as u64;
        Some(Machines { nodes, cpus: self.cpus, gpus: self.gpus, memory, card })
    }

    /// The schedule of whole studies, done or not, side by side; with so many provers of their own,
    /// which take their part of every node. A cell searches so many theorems.
    pub fn of(
        &self,
        mut outlines: Vec<Outline>,
        mut machines: Machines,
        provers: Option<u16>,
        theorems: Option<usize>,
    ) -> Result<Forecast> {
        if let Some(provers) = provers {
            machines.cpus -= f64::from(provers) / machines.nodes as f64;
            if machines.cpus < 1.0 {
                bail!("{provers} provers leave the nodes no processor for a step");
            }
            let steps = outlines.iter_mut().flat_map(|outline| &mut outline.steps);
            steps.for_each(|step| step.needs = step.needs.without_provers());
        }
        let checks = |rate| match theorems {
            Some(theorems) => {
                Ok(Checks { rate, shared: provers.map(u64::from), theorems: theorems as u64 })
            }
            None => bail!("--prover-rate: say how many theorems a cell has, with evaluation.limit"),
        };
        let seconds: BTreeMap<Kind, f64> = self.times.iter().copied().collect();
        let checks = self.prover_rate.map(checks).transpose()?;
        let times = Times { seconds, startup: self.startup, checks };
        Ok(Forecast::new(&outlines, machines, &times, true)?)
    }
}
