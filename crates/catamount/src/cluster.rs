//! A Ray cluster. The Python package speaks to Ray (`python -m catamount.cluster`); this end says
//! what is to be run, and judges whether the cluster can do it. Lines of JSON both ways.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use catamount_experiment::{Kind, Needs, Outline, OutlinedStep, Task};
use catamount_report::{PROVERS, ProverUse};
use serde::{Deserialize, Serialize};

use crate::command;
use crate::device::{Device, Devices};
use crate::fleet::{Crew, Ended, Invocation, UNFINISHED};
use crate::nodes::{Node, places, room_for};
use crate::provers::Provers;
use crate::step::{Probe, TOKEN};
use crate::stop;

/// Between two looks at whether the user wants to stop.
const GLANCE: Duration = Duration::from_millis(200);

/// How long Ray's end may take to end.
const FAREWELL: Duration = Duration::from_secs(20);

/// Names another Python than `python3`.
const PYTHON: &str = "CATAMOUNT_PYTHON";

/// Ray's end ends with the cluster that it speaks to.
const GONE: &str = "the Ray cluster is gone: its head has ended, or was started anew; what is done \
                    is kept, and the same command, at the cluster's address, goes on from there";

/// How a cluster is reached.
#[derive(Clone, Debug)]
pub struct Address {
    /// Ray's address; `auto` for the cluster of this machine, `local` for a new one on it.
    pub ray: String,
    /// Whether files travel through Ray's object store, because nodes do not see the folder.
    pub objects: bool,
    /// Seconds that a step may show no sign of life.
    pub patience: f64,
}

/// What is said to Ray's end.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Say<'a> {
    Hello {
        address: &'a str,
        objects: bool,
        patience: f64,
        program: Vec<String>,
        here: PathBuf,
        probe: Vec<String>,
    },
    Provers {
        places: Vec<String>,
        needs: Needs,
        arguments: &'a [String],
    },
    Node {
        id: &'a str,
        admitted: bool,
    },
    Task {
        number: usize,
        name: &'a str,
        folder: &'a Path,
        arguments: Vec<String>,
        needs: Needs,
        provers: bool,
        inputs: Vec<PathBuf>,
        outputs: Vec<PathBuf>,
        /// Nodes that cannot do it.
        without: Vec<&'a str>,
    },
    Stop {},
}

/// What Ray's end says.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Heard {
    Nodes(Vec<Node>),
    Node(Box<Node>),
    Refused { reason: String },
    Provers(Vec<ProverUse>),
    Lost { name: String, reason: String },
    Waits { name: String, reason: String },
    Ended { number: usize, node: String, seconds: f64, code: i32, printed: String, said: String },
}

/// The cluster at work.
pub struct Cluster {
    /// The studies that it does: how, and what.
    studies: Vec<(Invocation, Outline)>,
    provers: Option<Provers>,
    nodes: Vec<Node>,
    /// Nodes that joined later and may not take part, by their ids.
    left_out: BTreeSet<String>,
    here: Probe,
    cards: bool,
    objects: bool,
    child: Child,
    input: Option<ChildStdin>,
    heard: Receiver<Heard>,
}

impl Cluster {
    /// Connects, and asks every node what it has. A cluster that cannot do the study is refused
    /// before anything is begun.
    pub fn connect(
        address: &Address,
        devices: &Devices,
        studies: Vec<(Invocation, Outline)>,
        provers: Option<Provers>,
        here: Probe,
    ) -> Result<Self> {
        let python = std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
        let mut child = Command::new(&python)
            .args(["-m", "catamount.cluster"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} cannot be started", python.to_string_lossy()))?;
        let (sender, heard) = channel();
        let output = child.stdout.take().context("Ray's end has no output")?;
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
                match serde_json::from_str(&line) {
                    Ok(message) => {
                        let nobody_listens = sender.send(message).is_err();
                        if nobody_listens {
                            return;
                        }
                    }
                    // Not for us: something that Ray printed.
                    Err(_) => eprintln!("{line}"),
                }
            }
        });
        let input = child.stdin.take();
        let mut cluster = Cluster {
            studies,
            provers,
            nodes: Vec::new(),
            left_out: BTreeSet::new(),
            here,
            cards: false,
            objects: address.objects,
            child,
            input,
            heard,
        };
        cluster.greet(address)?;
        cluster.cards = match devices {
            Devices::One(Device::Cpu) => false,
            Devices::One(Device::Auto) => cluster.nodes.iter().any(|node| node.gpus > 0.0),
            _ => true,
        };
        cluster.judge()?;
        cluster.hire()?;
        Ok(cluster)
    }

    fn greet(&mut self, address: &Address) -> Result<()> {
        let hello = Say::Hello {
            address: &address.ray,
            objects: address.objects,
            patience: address.patience,
            program: command::program().context("this program's own path")?,
            here: std::env::current_dir().context("the current folder")?,
            // Folders of several seeds lie beside each other.
            probe: self.studies[0].0.probe(),
        };
        self.say(&hello)?;
        loop {
            match self.heard.recv() {
                Ok(Heard::Nodes(nodes)) => {
                    self.nodes = nodes;
                    return Ok(());
                }
                Ok(Heard::Refused { reason }) => bail!("{reason}"),
                Ok(_) => {}
                Err(_) => bail!(
                    "Ray's end ended before it answered: install the Python package with Ray (`pip \
                     install 'catamount[ray]'`) for the Python that {PYTHON} names, or python3"
                ),
            }
        }
    }

    /// Refuses nodes that would not give the same results, and steps that no node has room for.
    fn judge(&self) -> Result<()> {
        if self.nodes.is_empty() {
            bail!("the cluster has no node");
        }
        for node in &self.nodes {
            if let Some(reason) = self.unfit(node) {
                bail!("{reason}");
            }
        }
        for step in self.steps().filter(|step| !step.done) {
            room_for(&self.nodes, step, &self.needs(step.needs))?;
        }
        Ok(())
    }

    /// Why a node may not take part.
    fn unfit(&self, node: &Node) -> Option<String> {
        if let Some(difference) = node.against(&self.here) {
            return Some(format!("node {}{difference}", node.name));
        }
        let blind = !self.objects && !node.sees(&self.here);
        blind.then(|| {
            format!(
                "node {} does not see {}: put the study where all nodes see it, or let its files \
                 travel through Ray's object store with --ray-objects",
                node.name,
                self.studies[0].0.folder.display()
            )
        })
    }

    /// Judges a node that joined later. One that may not take part is left out, and named once.
    fn meet(&mut self, node: Node) -> Result<()> {
        let reason = self.unfit(&node);
        self.say(&Say::Node { id: &node.id, admitted: reason.is_none() })?;
        match reason {
            Some(reason) => {
                if self.left_out.insert(node.id) {
                    eprintln!("{reason}; it joined later and is left out");
                }
            }
            None if self.nodes.iter().any(|known| known.id == node.id) => {}
            None => self.nodes.push(node),
        }
        Ok(())
    }

    /// Starts the prover workers, if there are to be any; they hold their places to the end.
    fn hire(&mut self) -> Result<()> {
        let Some(provers) = self.provers.take() else { return Ok(()) };
        let left = self.steps().filter(|step| !step.done);
        let steps: Vec<Needs> = left.map(|step| self.needs(step.needs.without_provers())).collect();
        let places = places(&self.nodes, &steps, &provers.needs, provers.count)?;
        let needs = provers.needs;
        self.say(&Say::Provers { places, needs, arguments: &provers.arguments })?;
        self.provers = Some(provers);
        loop {
            match self.heard.recv_timeout(GLANCE) {
                Ok(Heard::Provers(uses)) => return self.record(&uses),
                Ok(Heard::Refused { reason }) => bail!("{reason}"),
                Err(RecvTimeoutError::Disconnected) => bail!("{GONE}"),
                _ if stop::requested() => bail!("interrupted before anything was begun"),
                _ => {}
            }
        }
    }

    /// Writes down how busy the provers were, for the report.
    fn record(&self, uses: &[ProverUse]) -> Result<()> {
        let Some(provers) = &self.provers else { return Ok(()) };
        ProverUse::merge(&provers.record, uses)
            .with_context(|| provers.record.display().to_string())
    }

    fn steps(&self) -> impl Iterator<Item = &OutlinedStep> {
        self.studies.iter().flat_map(|(_, outline)| &outline.steps)
    }

    fn needs(&self, needs: Needs) -> Needs {
        let cards: Vec<u64> =
            self.nodes.iter().filter(|node| node.gpus > 0.0).map(Node::card).collect();
        let needs = if self.cards { needs.on_cards(&cards) } else { needs.without_cards() };
        if self.provers.is_some() { needs.without_provers() } else { needs }
    }

    fn say(&mut self, message: &Say<'_>) -> Result<()> {
        self.send(&serde_json::to_string(message)?)
    }

    fn send(&mut self, line: &str) -> Result<()> {
        let Some(input) = &mut self.input else { return Ok(()) };
        writeln!(input, "{line}").and_then(|()| input.flush()).context(GONE)
    }
}

impl Crew for Cluster {
    fn slots(&self) -> usize {
        let most = |of: fn(&Needs) -> f64| {
            self.steps().map(|step| of(&self.needs(step.needs))).fold(0.0, f64::max)
        };
        let (cpus, gpus) = (most(|needs| needs.cpus).max(1.0), most(|needs| needs.gpus));
        let room = |node: &Node| match gpus > 0.0 {
            true => (node.gpus / gpus).floor().min((node.cpus / cpus).floor()),
            false => (node.cpus / cpus).floor(),
        };
        let taken = self.provers.as_ref().filter(|_| gpus == 0.0);
        let taken = taken.map_or(0.0, |provers| provers.count as f64 * provers.needs.cpus / cpus);
        (self.nodes.iter().map(room).sum::<f64>() - taken).max(1.0) as usize
    }

    fn begin(&mut self, number: usize, study: usize, task: &Task) -> Result<()> {
        let device = if self.cards && task.needs.gpus > 0.0 { "cuda:0" } else { "cpu" };
        let (invocation, outline) = &self.studies[study];
        let steps = outline.steps.iter().filter(|step| task.steps.contains(&step.id));
        let (mut inputs, mut outputs, mut searches) = (Vec::new(), Vec::new(), false);
        for step in steps {
            searches |= step.budget.is_some();
            if self.objects {
                inputs.extend(step.inputs.iter().cloned());
                outputs.extend(step.outputs.iter().cloned());
                // A report shows it.
                inputs.extend((step.kind == Kind::Report).then(|| PathBuf::from(PROVERS)));
            }
        }
        let needs = self.needs(task.needs);
        let small = self.nodes.iter().filter(|node| !node.holds(&needs));
        let without = small.map(|node| node.id.as_str()).collect();
        let message = Say::Task {
            number,
            name: &task.name,
            folder: &invocation.folder.clone(),
            arguments: invocation.arguments(device, task),
            needs,
            provers: searches && self.provers.is_some(),
            inputs,
            outputs,
            without,
        };
        let line = serde_json::to_string(&message)?;
        self.send(&line)
    }

    fn wait(&mut self) -> Result<Option<Ended>> {
        match self.heard.recv_timeout(GLANCE) {
            Ok(Heard::Ended { number, node, seconds, code, printed, said }) => {
                let unfinished = code == UNFINISHED;
                let result = match code {
                    0 | UNFINISHED => Ok(printed),
                    code => Err(format!("exit status {code}: {said}")),
                };
                Ok(Some(Ended { number, place: node, seconds, result, unfinished }))
            }
            Ok(Heard::Provers(uses)) => self.record(&uses).map(|()| None),
            Ok(Heard::Lost { name, reason }) => {
                eprintln!("{name}: {reason}; it is done again elsewhere");
                Ok(None)
            }
            Ok(Heard::Waits { name, reason }) => {
                eprintln!("{name} waits: {reason}");
                Ok(None)
            }
            Ok(Heard::Node(node)) => self.meet(*node).map(|()| None),
            Ok(Heard::Refused { reason }) => bail!("{reason}"),
            Ok(Heard::Nodes(_)) | Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("{GONE}"),
        }
    }

    fn stop(&mut self) {
        // Should it not hear, its input ends with this process.
        let _ = self.say(&Say::Stop {});
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Its input ends, and with it Ray's end; but Ray may wait for a head that is gone.
        self.input = None;
        let begun = Instant::now();
        while let Ok(None) = self.child.try_wait() {
            if begun.elapsed() > FAREWELL {
                let _ = self.child.kill();
            }
            thread::sleep(GLANCE / 10);
        }
        for (invocation, _) in &self.studies {
            let _ = std::fs::remove_file(invocation.folder.join(TOKEN));
        }
    }
}
