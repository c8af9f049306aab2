//! A card beside a model: what it was trained for, in the form that model hubs read.

use std::fmt;

use catamount_objective::{Objective, Prior};

use crate::Validation;

/// What a model's or an adapter's README.md says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Card {
    /// The objective by name, or that of a strategy of one's own.
    pub objective: String,
    /// Expansions it was trained for, where the objective knows any.
    pub budget: Option<u64>,
    /// kappa and q, where they are not those of the trace-supported surrogate.
    pub prior: Option<Prior>,
    /// The model it was trained from, by its name on a hub or its folder; none from scratch.
    pub base: Option<String>,
    /// Whether it is an adapter of that model, in PEFT's format.
    pub adapter: bool,
    /// What it was trained on, in a few words.
    pub data: Option<String>,
    /// Figures to report.
    pub figures: Vec<(String, f64)>,
}

impl Card {
    /// The same card, with what a run measured on held-out traces.
    pub fn measured(mut self, held_out: &Validation) -> Self {
        let Validation { ce, ce_token, p_mean, p_median, tactics } = held_out;
        let figures = [
            ("held-out cross-entropy of a tactic", *ce),
            ("held-out cross-entropy of a token", *ce_token),
            ("held-out mean p of a tactic", *p_mean),
            ("held-out median p of a tactic", *p_median),
            ("held-out tactics", *tactics as f64),
        ];
        self.figures.extend(figures.map(|(name, figure)| (name.to_string(), figure)));
        self
    }

    /// What is deployed with the model, in words.
    fn search(&self) -> String {
        let budget = self.budget.unwrap_or(0);
        match self.objective.parse::<Objective>() {
            Ok(Objective::Ce) => "one attempt at every step (plain fine-tuning)".to_string(),
            Ok(Objective::Ua) => {
                format!("any search that spreads a budget of {budget} expansions over a proof")
            }
            _ => {
                let name = &self.objective;
                format!("a search of kind `{name}` with a budget of {budget} expansions")
            }
        }
    }
}

impl fmt::Display for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objective = &self.objective;
        writeln!(f, "---\ntags:\n- theorem-proving\n- catamount")?;
        if let Some(base) = &self.base {
            writeln!(f, "base_model: {base}")?;
        }
        let library = if self.adapter { "peft" } else { "transformers" };
        writeln!(f, "library_name: {library}\n---\n\n# Tactics for {objective} search\n")?;
        writeln!(
            f,
            "Proposes tactics for proof states. Trained with Catamount {}, whose weights fit the \
             model\nto the search it is deployed in: {}.\n",
            env!("CARGO_PKG_VERSION"),
            self.search()
        )?;
        writeln!(f, "| | |\n|---|---|\n| objective | `{objective}` |")?;
        let strategy = match objective.parse::<Objective>() {
            Ok(Objective::Ce | Objective::Ua) => "any",
            _ => objective,
        };
        writeln!(f, "| strategy | {strategy} |")?;
        let budget = self.budget.map_or("none".to_string(), |budget| budget.to_string());
        writeln!(f, "| budget it was trained for | {budget} |")?;
        if let Some(prior) = &self.prior {
            let (kappa, q) = (prior.kappa(), prior.absorption());
            writeln!(f, "| off-trace prior | kappa = {kappa}, q = {q} |")?;
        }
        if let Some(base) = &self.base {
            writeln!(f, "| base model | {base} |")?;
        }
        if let Some(data) = &self.data {
            writeln!(f, "| trained on | {data} |")?;
        }
        for (name, figure) in &self.figures {
            writeln!(f, "| {name} | {} |", significant(*figure))?;
        }
        writeln!(
            f,
            "\nA prompt is the state and the separator `:::`, the answer a tactic and the \
             end-of-text token;\nsample it at the temperature of your search. A tactic is a \
             proposal: only a prover's check\nmakes it a step of a proof."
        )
    }
}

/// A figure in four digits.
fn significant(figure: f64) -> String {
    if figure == 0.0 || !figure.is_finite() {
        return figure.to_string();
    }
    let magnitude = figure.abs().log10().floor() as i32;
    if !(-5..15).contains(&magnitude) {
        return format!("{figure:.3e}");
    }
    let text = format!("{figure:.*}", (3 - magnitude).max(0) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_says_what_was_trained_from_what_and_how_well() {
        let held_out =
            Validation { ce: 1.23456, ce_token: 0.5, p_mean: 0.25, p_median: 1e-7, tactics: 12345 };
        let card = Card {
            objective: "bfs".into(),
            budget: Some(256),
            prior: Some(Prior::new(2.0, 0.1).unwrap()),
            base: Some("some/base".into()),
            adapter: true,
            data: Some("set.mm".into()),
            figures: Vec::new(),
        };
        let text = card.measured(&held_out).to_string();
        for line in [
            "base_model: some/base",
            "library_name: peft",
            "# Tactics for bfs search",
            "to the search it is deployed in: a search of kind `bfs` with a budget of 256 \
             expansions.",
            "| strategy | bfs |",
            "| budget it was trained for | 256 |",
            "| off-trace prior | kappa = 2, q = 0.1 |",
            "| trained on | set.mm |",
            "| held-out cross-entropy of a tactic | 1.235 |",
            "| held-out median p of a tactic | 1.000e-7 |",
            "| held-out tactics | 12345 |",
        ] {
            assert!(text.lines().any(|said| said == line), "{line}\n{text}");
        }
        let plain = Card { objective: "ce".into(), ..Card::default() }.to_string();
        assert!(plain.contains("plain fine-tuning") && plain.contains("| strategy | any |"));
        assert!(plain.contains("library_name: transformers") && !plain.contains("base"), "{plain}");
    }
}
