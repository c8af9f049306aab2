//! What objectives and strategies are called in a report, and which belong together.

use catamount_objective::Objective as Surrogate;
use catamount_search::StrategyKind;

use crate::study::{ObjectiveLabel, PriorLabel, SamplingLabel};

/// The control every gain is measured against.
pub(crate) const CONTROL: &str = "ce";

/// The control at the temperature that is best on validation theorems.
pub const TUNED: &str = "ce+tuned";

/// Under every strategy the objective that models it, in one row.
pub const MATCHED: &str = "matched";

/// An objective's name taken apart: `bfs+kappa5+q0.02`, `bfs@256`, or anything else a policy calls
/// itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Objective {
    pub(crate) full: String,
    pub(crate) base: String,
    pub(crate) kappa: Option<f64>,
    pub(crate) absorption: Option<f64>,
    /// Its prior was fitted to searches rather than set by hand.
    pub(crate) fitted: bool,
    /// How it is sampled, where that is not the evaluation's way.
    pub(crate) sampling: SamplingLabel,
    /// The budget it was trained for, where the name says so.
    pub(crate) trained: Option<u64>,
}

impl Objective {
    pub(crate) fn parse(full: &str) -> Self {
        let label = full.parse::<ObjectiveLabel>().unwrap_or_else(|never| match never {});
        let (kappa, absorption) = match label.prior {
            PriorLabel::Given { kappa, absorption } => (kappa, absorption),
            PriorLabel::None | PriorLabel::Fitted => (None, None),
        };
        Objective {
            full: full.to_owned(),
            base: label.base,
            kappa,
            absorption,
            fitted: label.prior == PriorLabel::Fitted,
            sampling: label.sampling,
            trained: label.trained,
        }
    }

    pub(crate) fn has_prior(&self) -> bool {
        self.fitted || self.kappa.is_some() || self.absorption.is_some()
    }

    /// A member of the search-aware family as the paper has it: no prior, sampled as all are.
    pub(crate) fn is_search_aware(&self) -> bool {
        !self.has_prior()
            && self.sampling == SamplingLabel::default()
            && (self.own().is_some() || self.base == MATCHED)
    }

    /// Cross-entropy, however it is sampled.
    pub(crate) fn is_control(&self) -> bool {
        self.base == CONTROL && !self.has_prior() && self.trained.is_none()
    }

    /// Whether the objective models this strategy.
    pub(crate) fn matches(&self, strategy: &str) -> bool {
        let models = |kind: StrategyKind| self.surrogate().is_some_and(|o| kind.is_modelled_by(o));
        self.base == MATCHED || strategy.parse().is_ok_and(models)
    }

    /// The objective behind the name, if it is one of ours.
    fn surrogate(&self) -> Option<Surrogate> {
        self.base.parse().ok()
    }

    /// The strategy whose own objective this is.
    fn own(&self) -> Option<StrategyKind> {
        StrategyKind::owning(self.surrogate()?).next()
    }

    /// `κ = 5, q = 0.02`.
    pub(crate) fn prior_label(&self) -> String {
        let kappa = self.kappa.map(|k| format!("\u{3ba} = {k}"));
        let q = self.absorption.map(|q| format!("q = {q}"));
        let fitted = self.fitted.then(|| "calibrated".to_owned());
        fitted.into_iter().chain(kappa).chain(q).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn label(&self) -> String {
        let trained = self.trained.map(|n| format!(" @{n}")).unwrap_or_default();
        let base = match (self.base.as_str(), self.own()) {
            (TUNED, _) => "CE, best temperature".to_owned(),
            ("auto", _) => "chosen on validation theorems".to_owned(),
            (MATCHED, _) => "CAT, matched".to_owned(),
            (_, Some(strategy)) => format!("CAT ({})", strategy.label()),
            // Those that model no strategy are abbreviations.
            (base, None) if self.surrogate().is_some() => base.to_uppercase(),
            (base, None) => base.to_owned(),
        };
        let prior = Some(self.prior_label()).filter(|_| self.has_prior());
        let temperature = self.sampling.temperature.map(|t| format!("T = {t}"));
        let distinct = self.sampling.distinct.then(|| "distinct samples".to_owned());
        let parts = prior.into_iter().chain(temperature).chain(distinct);
        std::iter::once(format!("{base}{trained}")).chain(parts).collect::<Vec<_>>().join(", ")
    }

    /// Place among objectives: control first, then UA, then the search-aware ones in the order of
    /// strategies, then the rest.
    pub(crate) fn rank(&self) -> (usize, bool, String) {
        let place = match (self.base.as_str(), self.own()) {
            (CONTROL | TUNED, _) => 0,
            (_, Some(strategy)) => strategy_rank(strategy.name()).0 + 3,
            (MATCHED, None) => 2,
            (_, None) if self.surrogate().is_some() => 1,
            (base, None) => strategy_rank(base).0 + 3,
        };
        (place, self.has_prior(), self.full.clone())
    }
}

pub(crate) fn strategy_label(strategy: &str) -> String {
    let known = strategy.parse::<StrategyKind>();
    known.map_or_else(|_| strategy.to_owned(), |kind| kind.label().to_owned())
}

/// Place among strategies: the paper's order, then the rest.
pub(crate) fn strategy_rank(strategy: &str) -> (usize, String) {
    let place = StrategyKind::ALL.iter().position(|kind| kind.name() == strategy);
    (place.unwrap_or(97), strategy.to_owned())
}

/// Palette places of objectives, fixed for the known ones, so that an objective looks the same in
/// every report.
pub(crate) fn colours(objectives: &[Objective]) -> Vec<usize> {
    let usual = |o: &Objective| {
        Some(match o.surrogate()? {
            Surrogate::Ce => 5,
            Surrogate::Ua => 2,
            Surrogate::Bfs => 0,
            Surrogate::Pass => 1,
            Surrogate::Rdfs => 3,
            Surrogate::Vdfs => 4,
            Surrogate::Mcts => 6,
            Surrogate::Dfs => 7,
        })
    };
    let mut taken: Vec<usize> = Vec::new();
    objectives
        .iter()
        .map(|o| {
            let wanted = usual(o).filter(|c| !taken.contains(c));
            let colour = wanted
                .unwrap_or_else(|| (0..8).find(|c| !taken.contains(c)).unwrap_or(taken.len()));
            taken.push(colour);
            colour
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_apart() {
        let prior = Objective::parse("bfs+kappa5+q0.02");
        assert_eq!(
            (prior.base.as_str(), prior.kappa, prior.absorption),
            ("bfs", Some(5.0), Some(0.02))
        );
        assert_eq!(prior.label(), "CAT (BFS), \u{3ba} = 5, q = 0.02");
        assert!(prior.matches("dfs") && !prior.is_search_aware());
        assert_eq!(Objective::parse("pass@256").label(), "CAT (Pass@N) @256");
        let fitted = Objective::parse("bfs+fitted");
        assert!(
            fitted.has_prior()
                && fitted.matches("bfs")
                && fitted.label() == "CAT (BFS), calibrated"
        );
        let hot = Objective::parse("ce+t1.2+distinct");
        assert_eq!(hot.label(), "CE, T = 1.2, distinct samples");
        assert!(hot.is_control() && !Objective::parse("bfs+t1.2").is_search_aware());
        let matched = Objective::parse("matched+fitted");
        assert!(matched.matches("mcts") && matched.label() == "CAT, matched, calibrated");
        let odd = Objective::parse("bfs+mine");
        assert!(!odd.is_search_aware() && !odd.matches("bfs") && odd.label() == "bfs+mine");
        assert!(Objective::parse("ce").rank() < Objective::parse("ua").rank());
    }

    #[test]
    fn colours_are_distinct_while_they_last() {
        let objectives = ["ce", "ua", "bfs", "bfs+kappa5", "mine"].map(Objective::parse);
        let mut colours = colours(&objectives);
        assert_eq!(&colours[..3], [5, 2, 0]);
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), 5);
    }
}
