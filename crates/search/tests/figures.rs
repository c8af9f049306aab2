//! The paper's figures that trace a search step by step, replayed.

use catamount_search::{
    Answer, Ask, BestFirst, BestFirstSettings, Expand, Finish, MonteCarlo, NodeId, Reached, Search,
};

fn asked(search: &mut Search) -> Vec<Expand> {
    match search.ask(&mut |_| panic!("nothing is left to chance here")) {
        Ask::Expand(wanted) => wanted,
        Ask::Finished(finish) => panic!("finished: {finish:?}"),
    }
}

fn opened(reached: Reached) -> NodeId {
    match reached {
        Reached::Open(node) => node,
        other => panic!("{other:?}"),
    }
}

/// fig:levin_search: the global frontier is re-evaluated, and the search jumps across the tree.
#[test]
fn best_first_jumps_across_the_tree() {
    let settings =
        BestFirstSettings { beam: 1, samples: 2, alpha: 1.0, ..BestFirstSettings::default() };
    let mut search = Search::new(Box::new(BestFirst::new(settings)), 8, 5);
    assert_eq!(asked(&mut search), [Expand { node: NodeId::ROOT, samples: 2 }]);
    let x1 = opened(search.tell(NodeId::ROOT, "y1", 0.8f64.ln(), Answer::Open));
    let x1_alternative = opened(search.tell(NodeId::ROOT, "y2", 0.6f64.ln(), Answer::Open));
    assert!((search.score(x1).unwrap() - 0.8).abs() < 1e-12);

    assert_eq!(asked(&mut search), [Expand { node: x1, samples: 2 }]);
    // The tactic to x2 drops the path's geometric mean to 0.3.
    let x2 = opened(search.tell(x1, "y1a", (0.09f64 / 0.8).ln(), Answer::Open));
    assert!((search.score(x2).unwrap() - 0.3).abs() < 1e-12);
    assert_eq!(search.tell(x1, "y1b", -1.0, Answer::Rejected), Reached::Rejected);

    assert_eq!(asked(&mut search)[0].node, x1_alternative);
    search.tell(x1_alternative, "y3", -0.5, Answer::Proved);
    let finished = search.ask(&mut |_| unreachable!());
    assert_eq!(finished, Ask::Finished(Finish::Proved(vec!["y2".into(), "y3".into()])));
    assert_eq!((search.expansions(), search.depths()), (5, &[2, 3][..]));
}

/// fig:mcts_search: a real backup overturns the earlier choice, within a budget of four.
#[test]
fn monte_carlo_reverses_its_choice() {
    let mut search = Search::new(Box::new(MonteCarlo::new(0.5)), 4, 5);
    let root = Expand { node: NodeId::ROOT, samples: 1 };
    assert_eq!(asked(&mut search), [root]);
    let x1 = opened(search.tell(NodeId::ROOT, "y1", 0.8f64.ln(), Answer::Open));
    assert_eq!(asked(&mut search), [root], "the root is allowed a second tactic");
    let x1_alternative = opened(search.tell(NodeId::ROOT, "y2", 0.6f64.ln(), Answer::Open));
    // UCT 1.22 against 1.02.
    assert_eq!(asked(&mut search), [Expand { node: x1, samples: 1 }]);
    search.tell(x1, "y1a", -1.0, Answer::Rejected);
    // Q(x1) is now 0.40: UCT 0.77 against 1.12.
    assert_eq!(asked(&mut search), [Expand { node: x1_alternative, samples: 1 }]);
    search.tell(x1_alternative, "y2b", -1.0, Answer::Proved);
    let finished = search.ask(&mut |_| unreachable!());
    assert_eq!(finished, Ask::Finished(Finish::Proved(vec!["y2".into(), "y2b".into()])));
    assert_eq!(search.expansions(), 4);
}
