//! A found proof as Lean text that a person can paste.

use catamount_traces::Theorem;

/// The theorem with its proof. For a theorem of a file, a comment says where it belongs; otherwise
/// the text stands alone.
pub fn export(theorem: &Theorem, tactics: &[String]) -> String {
    let mut text = String::new();
    match (&theorem.file, &theorem.header) {
        (Some(file), None) => {
            let line = theorem.line.map_or_else(String::new, |l| format!(", line {l}"));
            text.push_str(&format!("-- Proof of {} in place: {file}{line}\n", theorem.name));
        }
        (_, Some(header)) if !header.trim().is_empty() => {
            text.push_str(header.trim_end());
            text.push_str("\n\n");
        }
        _ => {}
    }
    text.push_str(theorem.statement.trim_end());
    text.push_str(" := by\n");
    for line in tactics.iter().flat_map(|t| t.trim_end().lines()) {
        text.push_str(if line.trim().is_empty() { "" } else { "  " });
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tactics_become_an_indented_block() {
        let theorem = Theorem {
            name: "t".into(),
            statement: "theorem t (n : Nat) : n = n".into(),
            header: Some("open Nat\n".into()),
            ..Theorem::default()
        };
        let text = export(
            &theorem,
            &["cases n with\n| zero => rfl\n| succ n => skip".into(), "rfl".into()],
        );
        assert_eq!(
            text,
            "open Nat\n\ntheorem t (n : Nat) : n = n := by\n  cases n with\n  | zero => rfl\n  | \
             succ n => skip\n  rfl\n"
        );
    }
}
