//! Distinct samples: at a node no tactic comes twice, and a strategy goes back to what is left.

use std::collections::{HashMap, HashSet};

use catamount_search::{
    Answer, Ask, Deployment, Expand, Finish, NodeId, Reached, Search, StrategyKind, Stream,
};

/// The tactics of every state: a third of them lead on, the others nowhere.
const TACTICS: [(&str, f64); 6] =
    [("a", 0.4), ("b", 0.3), ("c", 0.15), ("d", 0.1), ("e", 0.04), ("f", 0.01)];

fn verdict(tactic: &str) -> Answer {
    if matches!(tactic, "a" | "d") { Answer::Open } else { Answer::Rejected }
}

fn search(strategy: StrategyKind, budget: u64, settings: &[(&str, u64)]) -> Search {
    let mut deployment = Deployment::new(strategy, budget).unwrap().with("distinct", true).unwrap();
    for (key, value) in settings {
        deployment = deployment.with(key, *value).unwrap();
    }
    deployment.search()
}

/// A search with exact sampling without replacement at every node.
struct Run {
    search: Search,
    stream: Stream,
    draws: u64,
    choices: u64,
    /// Tactics drawn at each node, in order.
    drawn: HashMap<NodeId, Vec<&'static str>>,
    visited: Vec<NodeId>,
}

impl Run {
    fn new(strategy: StrategyKind, budget: u64, max_depth: u64) -> Self {
        Run {
            search: search(strategy, budget, &[("max_depth", max_depth)]),
            stream: Stream::new(5),
            draws: 0,
            choices: 0,
            drawn: HashMap::new(),
            visited: Vec::new(),
        }
    }

    fn draw(&mut self, node: NodeId) -> Option<(&'static str, f64)> {
        let drawn = self.drawn.entry(node).or_default();
        let left: Vec<_> = TACTICS.iter().filter(|(tactic, _)| !drawn.contains(tactic)).collect();
        self.draws += 1;
        let total: f64 = left.iter().map(|(_, p)| p).sum();
        let mut aim = self.stream.named("draw").uniform(self.draws) * total;
        let chosen = left.iter().find(|(_, p)| {
            aim -= p;
            aim < 0.0
        });
        let (tactic, p) = chosen.or(left.last())?;
        drawn.push(tactic);
        Some((tactic, *p))
    }

    fn expand(&mut self, Expand { node, samples }: Expand) {
        let some: Vec<_> = (0..samples).map_while(|_| self.draw(node)).collect();
        let missing = samples - some.len();
        let gone = &self.drawn[&node];
        let left = TACTICS.iter().filter(|(tactic, _)| !gone.contains(tactic));
        let left = left.map(|(_, p)| p).sum::<f64>();
        self.search.remains(node, left);
        for (tactic, p) in some {
            self.visited.push(node);
            assert_eq!(self.search.tried(node, tactic), None, "{tactic} was tried here before");
            let reached = self.search.tell(node, tactic, p.ln(), verdict(tactic));
            if let Reached::Open(child) = reached {
                self.search.weigh(child, p);
            }
        }
        (0..missing).for_each(|_| self.search.tell_nothing_left(node));
    }

    fn finish(mut self) -> (Finish, Self) {
        for _ in 0..10_000 {
            let (stream, choices) = (self.stream.named("choose"), &mut self.choices);
            let mut choose = |weights: &[f64]| {
                *choices += 1;
                let mut aim = stream.uniform(*choices) * weights.iter().sum::<f64>();
                let chosen = weights.iter().position(|weight| {
                    aim -= weight;
                    aim < 0.0
                });
                chosen.unwrap_or(weights.len() - 1)
            };
            match self.search.ask(&mut choose) {
                Ask::Finished(finish) => return (finish, self),
                Ask::Expand(wanted) => wanted.into_iter().for_each(|expand| self.expand(expand)),
            }
        }
        panic!("ten thousand questions without an end");
    }
}

#[test]
fn a_finite_world_is_drawn_out_and_the_search_says_so() {
    for strategy in StrategyKind::ALL {
        let (finish, run) = Run::new(strategy, 100_000, 3).finish();
        assert_eq!(finish, Finish::Exhausted, "{strategy}");
        // Two of six tactics lead on, twice: 1 + 2 + 4 nodes.
        assert_eq!(run.search.expansions(), 7 * 6, "{strategy}");
        assert_eq!(run.search.depths(), [6, 12, 24], "{strategy}");
        for drawn in run.drawn.values() {
            assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), 6, "{strategy}: {drawn:?}");
        }
    }
}

#[test]
fn a_smaller_budget_is_a_prefix_of_distinct_samples_too() {
    for strategy in StrategyKind::ALL {
        let (finish, long) = Run::new(strategy, 150, 5).finish();
        assert_eq!(finish, Finish::Budget, "{strategy}");
        for budget in [1, 9, 40] {
            let (finish, short) = Run::new(strategy, budget, 5).finish();
            assert_eq!(finish, Finish::Budget, "{strategy}");
            assert_eq!(short.visited, long.visited[..budget as usize], "{strategy} at {budget}");
        }
    }
}

#[test]
fn every_strategy_comes_back_below_a_node_that_it_left() {
    // Depth-first search stays below a node until nothing is left there.
    for strategy in StrategyKind::ALL.into_iter().filter(|kind| *kind != StrategyKind::Dfs) {
        let (_, run) = Run::new(strategy, 40, 3).finish();
        let back = run.visited.windows(2).any(|pair| pair[0] == NodeId::ROOT && pair[1].0 == 1);
        let below = run.visited.iter().filter(|node| node.0 == 1).count();
        assert!(back && below > 1, "{strategy}: {:?}", run.visited);
    }
}

#[test]
fn rollouts_are_drawn_by_what_is_left_of_them() {
    let mut search = search(StrategyKind::Pass, 100, &[("pass_batch", 1), ("max_depth", 2)]);
    let mut none = |_: &[f64]| panic!("there is nothing to choose yet");
    let root = vec![Expand { node: NodeId::ROOT, samples: 1 }];
    assert_eq!(search.ask(&mut none), Ask::Expand(root));
    search.remains(NodeId::ROOT, 0.4);
    // At temperature 1 the tactic has another probability than where it is sampled.
    let Reached::Open(child) = search.tell(NodeId::ROOT, "a", -0.1, Answer::Open) else {
        panic!("the tactic is valid")
    };
    search.weigh(child, 0.6);
    assert_eq!(search.ask(&mut none), Ask::Expand(vec![Expand { node: child, samples: 1 }]));
    search.remains(child, 0.25);
    search.tell(child, "c", -0.3, Answer::Rejected);
    // The next rollout begins at the root: something new there, or what is left below its child.
    let mut seen = Vec::new();
    let next = search.ask(&mut |weights| {
        seen.push(weights.to_vec());
        1
    });
    assert_eq!(next, Ask::Expand(vec![Expand { node: child, samples: 1 }]));
    assert_eq!(seen, [vec![0.4, 0.6 * 0.25]]);
}

#[test]
fn a_popped_node_stands_where_its_next_child_would() {
    let settings = [("bfs_beam", 1), ("bfs_samples", 2), ("bfs_alpha", 1)];
    let mut search = search(StrategyKind::Bfs, 100, &settings);
    let ask = |search: &mut Search| match search.ask(&mut |_| panic!("no chance in it")) {
        Ask::Expand(wanted) => wanted[0].node,
        finished => panic!("{finished:?}"),
    };
    assert_eq!(ask(&mut search), NodeId::ROOT);
    search.remains(NodeId::ROOT, 0.5);
    search.tell(NodeId::ROOT, "a", -1.0, Answer::Open);
    search.tell(NodeId::ROOT, "b", -3.0, Answer::Rejected);
    // The child scores -1, something new at the root -2.
    assert_eq!(ask(&mut search), NodeId(1));
    search.remains(NodeId(1), 0.1);
    search.tell(NodeId(1), "c", -4.0, Answer::Rejected);
    search.tell(NodeId(1), "d", -4.0, Answer::Rejected);
    // Something new at the child would score (-1 - 4) / 2.
    assert_eq!(ask(&mut search), NodeId::ROOT);
    search.remains(NodeId::ROOT, 0.0);
    search.tell(NodeId::ROOT, "e", -2.0, Answer::Rejected);
    search.tell_nothing_left(NodeId::ROOT);
    assert_eq!(search.expansions(), 5, "what could not be drawn costs nothing");
    assert_eq!(ask(&mut search), NodeId(1));
    search.tell_nothing_left(NodeId(1));
    search.tell_nothing_left(NodeId(1));
    assert_eq!(search.ask(&mut |_| 0), Ask::Finished(Finish::Exhausted));
}
