//! `--strategy`, `--budget` and the rest of a deployment.

use std::time::Duration;

use anyhow::{Result, bail};
use catamount_search::{Deployment, Overrides, ParameterHelp, StrategyKind};

use crate::environment::seconds;

#[derive(clap::Args)]
pub struct Arguments {
    #[arg(long, required = true, value_delimiter = ',', help = strategies())]
    pub strategy: Vec<StrategyKind>,
    #[arg(long, allow_negative_numbers = true, help = common("budget"))]
    pub budget: u64,
    /// Seed of every random stream.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    #[arg(long, help = common("max_depth"))]
    pub max_depth: Option<u64>,
    #[arg(long, allow_negative_numbers = true, help = common("temperature"))]
    pub temperature: Option<f64>,
    #[arg(long, allow_negative_numbers = true, help = common("top_p"))]
    pub top_p: Option<f64>,
    #[arg(long, help = flag("distinct"))]
    pub distinct: bool,
    #[arg(long, help = common("max_tokens"))]
    pub max_tokens: Option<u64>,
    /// Wall-clock cap per theorem, in seconds.
    #[arg(long, allow_negative_numbers = true)]
    pub time_limit: Option<f64>,
    #[arg(long = "set", value_name = "KEY=VALUE", help = own())]
    pub set: Vec<String>,
}

impl Arguments {
    /// What these arguments say about one strategy.
    pub fn deployment(&self, strategy: StrategyKind) -> Result<Deployment> {
        let mut overrides = Overrides::default();
        for pair in &self.set {
            if let Err(error) = overrides.set_pair(pair) {
                bail!("--set {pair}: {error}");
            }
        }
        for (key, value) in [("max_depth", self.max_depth), ("max_tokens", self.max_tokens)] {
            value.map(|value| overrides.set(key, value)).transpose()?;
        }
        for (key, value) in [("temperature", self.temperature), ("top_p", self.top_p)] {
            value.map(|value| overrides.set(key, value)).transpose()?;
        }
        if self.distinct {
            overrides.set("distinct", true)?;
        }
        Ok(Deployment::overridden(strategy, self.budget, &overrides)?)
    }

    /// The deployment of a command that takes one strategy.
    pub fn single(&self) -> Result<Deployment> {
        match self.strategy[..] {
            [strategy] => self.deployment(strategy),
            _ => bail!("one theorem is searched with one --strategy"),
        }
    }

    pub fn time_limit(&self) -> Result<Option<Duration>> {
        self.time_limit.map(|limit| seconds(limit, "--time-limit")).transpose()
    }
}

/// The paper's values, for commands that sample without searching.
pub fn paper() -> Deployment {
    Deployment::new(StrategyKind::Bfs, 1).expect("a budget in range")
}

fn strategies() -> String {
    StrategyKind::ALL.map(StrategyKind::name).join(", ")
}

/// The help of `--strategy` where several may be given.
pub fn several_strategies(command: clap::Command) -> clap::Command {
    command.mut_arg("strategy", |argument| {
        argument.help(format!(
            "{}; several, with commas between them, share one policy and are searched together",
            strategies()
        ))
    })
}

fn common(key: &str) -> String {
    help(key, described)
}

/// Of what is said by being there.
fn flag(key: &str) -> String {
    help(key, |parameter| capital(parameter.help))
}

fn help(key: &str, text: impl Fn(&ParameterHelp) -> String) -> String {
    let known = Deployment::common_parameters();
    known.iter().find(|parameter| parameter.key == key).map(text).unwrap_or_default()
}

fn own() -> String {
    let own = StrategyKind::ALL.into_iter().flat_map(StrategyKind::parameters);
    let lines: Vec<String> =
        own.map(|parameter| format!("{}: {}", parameter.key, described(&parameter))).collect();
    format!("A setting of a strategy; again for more.\n{}", lines.join("\n"))
}

fn described(parameter: &ParameterHelp) -> String {
    let default = parameter.default.as_ref();
    let default = default.map(|value| format!(" [default: {value}]")).unwrap_or_default();
    format!("{} ({}){default}", capital(parameter.help), parameter.allowed)
}

/// Help texts begin with a capital letter; settings' descriptions also stand inside sentences.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
