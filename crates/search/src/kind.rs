//! The deployed strategies. A new one is a file, which says everything about it ([`Method`]), and a
//! line in the list of this one.

use catamount_objective::Objective;

use crate::parameter::{Parameter, ParameterHelp, SettingError, Value};
use crate::strategy::Strategy;

/// What a strategy does with its samples, as far as the weights of its traces show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Begins again at the root after a miss.
    Rollouts,
    /// Samples one tactic at a time, and goes back after a miss.
    DepthFirst,
    /// Spends several samples at a node, whatever comes of them.
    Batches,
}

/// What a strategy's file says about it; implemented by the strategy's parameters.
pub trait Method: Clone + Default + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// Its name on command lines, in files and in logs; also the prefix of its parameters.
    const NAME: &'static str;
    /// Its name in tables and figures.
    const LABEL: &'static str;
    /// The objective whose surrogate models it.
    const OBJECTIVE: Objective;
    /// Others whose surrogate models it as well.
    const ALSO: &'static [Objective] = &[];
    /// What it does with its samples.
    const FAMILY: Family;
    /// Whether the chances of its own random choices are a smooth function of the policy's
    /// probabilities: derivatives then cannot be carried along with a search.
    const CHOICES_MOVE: bool = false;
    /// Its parameters.
    const PARAMETERS: &'static [Parameter<Self>];
    /// A search that starts at the root.
    fn strategy(&self) -> Box<dyn Strategy>;
}

/// Sets a parameter of a method by its whole name, such as `bfs_beam`; none if it has no such one.
pub(crate) fn set<M: Method>(
    method: &mut M,
    key: &str,
    value: &Value,
) -> Option<Result<(), SettingError>> {
    let name = key.strip_prefix(M::NAME)?.strip_prefix('_')?;
    let parameter = M::PARAMETERS.iter().find(|parameter| parameter.name == name)?;
    Some(if parameter.set(method, value) {
        Ok(())
    } else {
        let allowed = parameter.allowed().to_string();
        Err(SettingError::Refused { key: key.to_string(), value: value.to_string(), allowed })
    })
}

/// The parameters of a method with their values, by their whole names.
pub(crate) fn get<M: Method>(method: &M) -> Vec<(String, Value)> {
    let value = |parameter: &Parameter<M>| {
        Some((format!("{}_{}", M::NAME, parameter.name), parameter.get(method)?))
    };
    M::PARAMETERS.iter().filter_map(value).collect()
}

/// Makes the two enumerations of a list of strategies: `StrategyKind`, which is a name, and
/// `StrategySettings`, which has the parameters too.
macro_rules! strategies {
    ($($(#[$only:meta])? $variant:ident = $method:ty),+ $(,)?) => {
        /// A deployed strategy.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum StrategyKind {
            $(
                $(#[$only])?
                #[doc = concat!("See [`", stringify!($method), "`].")]
                $variant
            ),+
        }

        /// A strategy with its parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum StrategySettings {
            $($(#[$only])? $variant($method)),+
        }

        impl StrategyKind {
            /// Every strategy, in the paper's order.
            pub const ALL: [StrategyKind; [$($(#[$only])? stringify!($variant)),+].len()] =
                [$($(#[$only])? StrategyKind::$variant),+];

            /// Its name on command lines, in files and in logs.
            pub fn name(self) -> &'static str {
                match self {
                    $($(#[$only])? StrategyKind::$variant => <$method as $crate::Method>::NAME),+
                }
            }

            /// Its name in tables and figures.
            pub fn label(self) -> &'static str {
                match self {
                    $($(#[$only])? StrategyKind::$variant => <$method as $crate::Method>::LABEL),+
                }
            }

            /// The objective whose surrogate models it.
            pub fn objective(self) -> $crate::Objective {
                match self {
                    $($(#[$only])? StrategyKind::$variant => {
                        <$method as $crate::Method>::OBJECTIVE
                    }),+
                }
            }

            /// What it does with its samples.
            pub fn family(self) -> $crate::Family {
                match self {
                    $($(#[$only])? StrategyKind::$variant => <$method as $crate::Method>::FAMILY),+
                }
            }

            /// Whether the chances of its own random choices move with the policy's probabilities.
            pub fn choices_move(self) -> bool {
                match self {
                    $($(#[$only])? StrategyKind::$variant => {
                        <$method as $crate::Method>::CHOICES_MOVE
                    }),+
                }
            }

            /// Whether an objective's surrogate models it: its own, and those that it shares a
            /// recurrence with.
            pub fn is_modelled_by(self, objective: $crate::Objective) -> bool {
                let also = match self {
                    $($(#[$only])? StrategyKind::$variant => <$method as $crate::Method>::ALSO),+
                };
                self.objective() == objective || also.contains(&objective)
            }

            /// The strategies whose own objective this is; none of a search-agnostic one.
            pub fn owning(objective: $crate::Objective) -> impl Iterator<Item = StrategyKind> {
                StrategyKind::ALL.into_iter().filter(move |kind| kind.objective() == objective)
            }

            /// Its parameters, by their whole names, with what they may be.
            pub fn parameters(self) -> Vec<$crate::ParameterHelp> {
                match self {
                    $($(#[$only])? StrategyKind::$variant => described::<$method>()),+
                }
            }

            /// The strategy with the paper's parameters.
            pub(crate) fn settings(self) -> StrategySettings {
                match self {
                    $($(#[$only])? StrategyKind::$variant => {
                        StrategySettings::$variant(<$method>::default())
                    }),+
                }
            }
        }

        impl StrategySettings {
            pub(crate) fn kind(&self) -> StrategyKind {
                match self {
                    $($(#[$only])? StrategySettings::$variant(_) => StrategyKind::$variant),+
                }
            }

            pub(crate) fn set(
                &mut self,
                key: &str,
                value: &$crate::Value,
            ) -> Option<Result<(), $crate::SettingError>> {
                match self {
                    $($(#[$only])? StrategySettings::$variant(method) => {
                        $crate::kind::set(method, key, value)
                    }),+
                }
            }

            pub(crate) fn get(&self) -> Vec<(String, $crate::Value)> {
                match self {
                    $($(#[$only])? StrategySettings::$variant(method) => {
                        $crate::kind::get(method)
                    }),+
                }
            }

            pub(crate) fn strategy(&self) -> Box<dyn $crate::Strategy> {
                match self {
                    $($(#[$only])? StrategySettings::$variant(method) => {
                        $crate::Method::strategy(method)
                    }),+
                }
            }
        }

        impl std::str::FromStr for StrategyKind {
            type Err = $crate::UnknownStrategy;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let known = || StrategyKind::ALL.into_iter();
                known().find(|kind| kind.name() == text).ok_or_else(|| $crate::UnknownStrategy {
                    name: text.to_string(),
                    known: known().map(StrategyKind::name).collect(),
                })
            }
        }
    };
}

/// The parameters of a method, by their whole names, with what they may be.
fn described<M: Method>() -> Vec<ParameterHelp> {
    let (prefix, default) = (format!("{}_", M::NAME), M::default());
    M::PARAMETERS.iter().map(|parameter| parameter.describe(&prefix, &default)).collect()
}

/// A strategy's name that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy `{name}`{}; the known ones are {}", hint(.name, .known),
    .known.join(", "))]
pub struct UnknownStrategy {
    /// The name as given.
    pub name: String,
    /// The names there are.
    pub known: Vec<&'static str>,
}

fn hint(name: &str, known: &[&'static str]) -> String {
    let near = catamount_base::nearest(name, known.iter().copied());
    near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}

impl std::fmt::Display for StrategyKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl serde::Serialize for StrategyKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> serde::Deserialize<'de> for StrategyKind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

// The line that a new strategy needs; the order is the paper's, and that of tables.
strategies! {
    Pass = crate::PassSettings,
    Bfs = crate::BestFirstSettings,
    Dfs = crate::Dfs,
    Rdfs = crate::Rdfs,
    Vdfs = crate::Vdfs,
    Mcts = crate::MonteCarloSettings,
    #[cfg(test)]
    Broad = tests::broad::Broad,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Deployment;

    /// What a file of a new strategy holds: iterative broadening at the root, here in one test.
    pub(super) mod broad {
        use catamount_objective::Objective;

        use crate::kind::{Family, Method};
        use crate::parameter::Parameter;
        use crate::strategy::{Choose, Expand, Strategy};
        use crate::tree::{NodeId, Reached, Tree};

        #[derive(Clone, Debug, PartialEq)]
        pub struct Broad {
            pub width: usize,
        }

        impl Default for Broad {
            fn default() -> Self {
                Broad { width: 3 }
            }
        }

        impl Method for Broad {
            const NAME: &'static str = "broad";
            const LABEL: &'static str = "Broad";
            const OBJECTIVE: Objective = Objective::Pass;
            const ALSO: &'static [Objective] = &[Objective::Mcts];
            const FAMILY: Family = Family::Batches;
            const PARAMETERS: &'static [Parameter<Self>] = &[Parameter::whole(
                "width",
                1..=9,
                "samples at the root",
                |s| s.width as u64,
                |s, v| s.width = v as usize,
            )];

            fn strategy(&self) -> Box<dyn Strategy> {
                Box::new(self.clone())
            }
        }

        impl Strategy for Broad {
            fn select(&mut self, _: &Tree, _: &mut Choose<'_>) -> Vec<Expand> {
                vec![Expand { node: NodeId::ROOT, samples: self.width }]
            }

            fn update(&mut self, _: &Tree, _: NodeId, _: Reached) {}

            fn score(&self, _: &Tree, _: NodeId) -> Option<f64> {
                None
            }

            fn key(&self) -> Vec<u64> {
                Vec::new()
            }

            fn boxed_clone(&self) -> Box<dyn Strategy> {
                Box::new(self.clone())
            }
        }
    }

    /// Its line is in the list itself: what holds of every strategy holds of it, in every test of
    /// this crate.
    #[test]
    fn a_new_strategy_is_a_file_and_a_line() {
        let kind: StrategyKind = "broad".parse().unwrap();
        assert_eq!((kind.name(), kind.label()), ("broad", "Broad"));
        assert_eq!((kind.objective(), kind.family()), (Objective::Pass, Family::Batches));
        assert!(!kind.choices_move() && StrategyKind::Vdfs.choices_move());
        let owning: Vec<_> = StrategyKind::owning(Objective::Pass).collect();
        assert_eq!(owning, [StrategyKind::Pass, kind], "it shares its objective");
        let models = |objective: &Objective| kind.is_modelled_by(*objective);
        let modelling: Vec<Objective> = Objective::ALL.into_iter().filter(models).collect();
        assert_eq!(modelling, [Objective::Pass, Objective::Mcts]);
        let help = &kind.parameters()[0];
        assert_eq!((help.key.as_str(), &help.default), ("broad_width", &Some(Value::Whole(3))));
        let mut deployment = Deployment::new(kind, 8).unwrap();
        let refused = deployment.set("broad_width", &Value::Whole(10)).unwrap_err();
        assert!(refused.to_string().contains("from 1 to 9"), "{refused}");
        assert!(deployment.set("bfs_beam", &Value::Whole(2)).is_err(), "not its own");
        deployment.set("broad_width", &Value::Whole(5)).unwrap();
        let written = serde_json::to_string(&deployment).unwrap();
        assert!(written.contains("\"broad_width\":5"), "{written}");
        assert_eq!(serde_json::from_str::<Deployment>(&written).unwrap(), deployment);
        let expand = crate::Expand { node: crate::NodeId::ROOT, samples: 5 };
        assert_eq!(deployment.search().ask(&mut |_| 0), crate::Ask::Expand(vec![expand]));
    }

    #[test]
    fn names_are_read_back_and_near_ones_are_guessed() {
        for kind in StrategyKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert!(kind.is_modelled_by(kind.objective()), "{kind}");
            // The two halves of a strategy share a name; whoever joins them comes after them.
            let first = StrategyKind::owning(kind.objective()).next().unwrap();
            assert_eq!(first.name(), kind.objective().name());
        }
        assert!(StrategyKind::Bfs.is_modelled_by(Objective::Dfs));
        assert!(!StrategyKind::Pass.is_modelled_by(Objective::Bfs));
        assert_eq!(StrategyKind::owning(Objective::Ua).count(), 0);
        let error = "mtcs".parse::<StrategyKind>().unwrap_err().to_string();
        assert!(error.contains("did you mean `mcts`") && error.contains("rdfs"), "{error}");
    }
}
