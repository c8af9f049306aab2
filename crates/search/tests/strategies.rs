//! What every strategy owes its user: the budget, the depth, and the order of things.

use catamount_search::{Answer, Ask, Deployment, Expand, Finish, NodeId, Reached, StrategyKind};

/// Runs a search in which `judge` answers every sample, and returns the nodes sampled at, in order.
fn run(
    strategy: StrategyKind,
    budget: u64,
    judge: impl Fn(u64, &Expand) -> Answer,
) -> (Vec<NodeId>, Finish) {
    let deployment = Deployment::new(strategy, budget).unwrap().with("max_depth", 4u64).unwrap();
    let mut search = deployment.search();
    let mut visited = Vec::new();
    let mut draws = 0;
    loop {
        let mut choose = |weights: &[f64]| {
            draws += 1;
            draws % weights.len()
        };
        match search.ask(&mut choose) {
            Ask::Finished(finish) => return (visited, finish),
            Ask::Expand(wanted) => {
                for expand in wanted {
                    for _ in 0..expand.samples {
                        let answer = judge(search.expansions(), &expand);
                        visited.push(expand.node);
                        let tactic = format!("t{}", search.expansions());
                        if search.tell(expand.node, &tactic, -0.7, answer) == Reached::Proved {
                            break;
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn budgets_are_spent_to_the_last_expansion_and_no_further() {
    for strategy in StrategyKind::ALL {
        for budget in [1, 7, 64] {
            let (visited, finish) =
                run(
                    strategy,
                    budget,
                    |n, _| if n % 3 == 0 { Answer::Open } else { Answer::Rejected },
                );
            assert_eq!((visited.len() as u64, finish), (budget, Finish::Budget), "{strategy}");
        }
    }
}

/// One run tells success at every smaller budget: the questions of a smaller budget are a prefix of
/// those of a larger one.
#[test]
fn a_smaller_budget_is_a_prefix() {
    for strategy in StrategyKind::ALL {
        let judge =
            |n: u64, _: &Expand| if n.is_multiple_of(2) { Answer::Open } else { Answer::Rejected };
        let (long, _) = run(strategy, 100, judge);
        for budget in [3, 10, 33] {
            assert_eq!(
                run(strategy, budget, judge).0,
                long[..budget as usize],
                "{strategy} at {budget}"
            );
        }
    }
}

#[test]
fn nothing_is_built_beyond_the_maximum_depth() {
    for strategy in StrategyKind::ALL {
        let deployment = Deployment::new(strategy, 200).unwrap().with("max_depth", 3u64).unwrap();
        let mut search = deployment.search();
        while let Ask::Expand(wanted) = search.ask(&mut |weights| weights.len() - 1) {
            for expand in wanted {
                for _ in 0..expand.samples {
                    let tactic = format!("t{}", search.expansions());
                    search.tell(expand.node, &tactic, -0.1, Answer::Open);
                }
            }
        }
        assert!(search.depths().len() <= 3, "{strategy}: {:?}", search.depths());
    }
}

#[test]
fn depth_first_stays_and_its_variants_jump() {
    // Two valid tactics, then misses only.
    let judge = |n: u64, _: &Expand| if n < 2 { Answer::Open } else { Answer::Rejected };
    let (dfs, _) = run(StrategyKind::Dfs, 6, judge);
    assert_eq!(dfs, [0, 1, 2, 2, 2, 2].map(NodeId));
    let (rdfs, _) = run(StrategyKind::Rdfs, 6, judge);
    assert!(rdfs[3..].contains(&NodeId(1)) || rdfs[3..].contains(&NodeId(0)), "{rdfs:?}");
}

#[test]
fn a_repeated_tactic_leads_to_the_same_node_and_still_costs() {
    let mut search = Deployment::new(StrategyKind::Dfs, 10).unwrap().search();
    let first = search.tell(NodeId::ROOT, "again", -0.1, Answer::Open);
    assert_eq!(search.tried(NodeId::ROOT, "again"), Some(first));
    assert_eq!(search.tell(NodeId::ROOT, "again", -0.1, Answer::Open), first);
    assert_eq!(search.expansions(), 2);
}

#[test]
fn an_empty_frontier_starts_over_or_says_so() {
    let all_rejected = |_: u64, _: &Expand| Answer::Rejected;
    assert_eq!(run(StrategyKind::Bfs, 20, all_rejected).1, Finish::Budget);
    let once = Deployment::new(StrategyKind::Bfs, 20).unwrap();
    let mut search = once.with("bfs_restart_when_empty", false).unwrap().search();
    search.ask(&mut |_| 0);
    for i in 0..4 {
        search.tell(NodeId::ROOT, &i.to_string(), -1.0, Answer::Rejected);
    }
    assert_eq!(search.ask(&mut |_| 0), Ask::Finished(Finish::Exhausted));
}
