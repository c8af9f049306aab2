//! Tactic generators that are not our own model.
