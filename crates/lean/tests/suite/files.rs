//! Whole files: messages with their places, what a `sorry` leaves, and files that never end.

use std::time::Duration;

use catamount_lean::{FileOutcome, Lean, Options};

use crate::setup::options;

const MIXED: &str = "\
theorem fine (p : Prop) (h : p) : p := by
  exact h
theorem half (p q : Prop) (hp : p) : p ∧ q := by
  constructor
  · exact hp
  · sorry
theorem term (p q : Prop) (hp : p) : p ∧ q := ⟨hp, sorry⟩
#check fine
theorem wrong : 1 = 2 := by
  rfl
";

#[test]
fn a_whole_file_is_reported_on() {
    let limit = Duration::from_secs(20);
    let lean = Lean::new(Options { workers: 1, check_limit: limit, ..options() }).unwrap();
    let report = lean.report(MIXED).unwrap();
    assert_eq!(report.outcome, FileOutcome::Fails);
    let said: Vec<(&str, u32, u32, u32)> = report
        .messages
        .iter()
        .map(|m| (m.severity.as_str(), m.line, m.column, m.end_column))
        .collect();
    let expected =
        [("warning", 3, 8, 12), ("warning", 7, 8, 12), ("info", 8, 0, 6), ("error", 10, 2, 5)];
    assert_eq!(said, expected);
    assert!(report.messages[3].text.contains("`rfl` failed"), "{:?}", report.messages[3]);
    let left: Vec<(u32, u32, &str)> =
        report.sorries.iter().map(|s| (s.line, s.column, s.goal.as_str())).collect();
    let goal = "p q : Prop\nhp : p\n⊢ q";
    assert_eq!(left, [(6, 4, format!("case right\n{goal}").as_str()), (7, 51, goal)]);
    assert!(report.seconds > 0.0);

    // The same process: nothing of the file before is left in it.
    let first = |lines: usize| MIXED.lines().take(lines).collect::<Vec<_>>().join("\n");
    assert_eq!(lean.report(&first(2)).unwrap().outcome, FileOutcome::Passes);
    assert_eq!(lean.report(&first(7)).unwrap().outcome, FileOutcome::Sorry);
    let broken = lean.report("theorem fine : := by").unwrap();
    assert_eq!((broken.outcome, broken.messages[0].line), (FileOutcome::Fails, 1));

    let endless = "partial def f (n : Nat) : Nat := f (n + 1)\n#eval f 0\n";
    let report = lean.report(endless).unwrap();
    assert_eq!(report.outcome, FileOutcome::Limit);
    assert!(report.why.contains("20 s"), "{}", report.why);

    let unknown = lean.report("import No.Such.Module\n").unwrap_err();
    assert!(unknown.0.contains("No.Such.Module"), "{unknown:?}");
}
