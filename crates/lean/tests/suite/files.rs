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
    let lean = Lean::new(Options { workers: 1, ..options() }).unwrap();
    let report_on = |text: &str| lean.report(text, Duration::MAX);
    let report = report_on(MIXED).unwrap();
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
    assert_eq!(report_on(&first(2)).unwrap().outcome, FileOutcome::Passes);
    assert_eq!(report_on(&first(7)).unwrap().outcome, FileOutcome::Sorry);
    let broken = report_on("theorem fine : := by").unwrap();
    assert_eq!((broken.outcome, broken.messages[0].line), (FileOutcome::Fails, 1));

    let endless = "partial def f (n : Nat) : Nat := f (n + 1)\n#eval f 0\n";
    let report = lean.report(endless, Duration::from_secs(3)).unwrap();
    assert_eq!(report.outcome, FileOutcome::Limit);
    assert!(report.why.contains("3 s"), "{}", report.why);

    let unknown = report_on("import No.Such.Module\n").unwrap_err();
    assert!(unknown.0.contains("No.Such.Module"), "{unknown:?}");

    // Every name that the server is said to use is there.
    let report = report_on(&catamount_lean::names_file()).unwrap();
    assert_eq!(report.outcome, FileOutcome::Passes, "{:?}", report.messages);
    assert!(report.messages.len() > 30);
}
