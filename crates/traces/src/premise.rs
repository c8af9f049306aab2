//! Premises: what a step's tactic names, in LeanDojo's format, which retrievers are trained on.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A tactic with its premises: the text with `<a>` and `</a>` around each, and what they are, in
/// order. Written as LeanDojo does, a list of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotated(pub String, pub Vec<Premise>);

/// A constant that a tactic names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Premise {
    /// Its full name.
    pub full_name: String,
    /// The file that declares it, relative to its library's root.
    #[serde(default)]
    pub def_path: String,
    /// Line and column of its name there, counted from 1, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub def_pos: Option<[u32; 2]>,
    /// Line and column after its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub def_end_pos: Option<[u32; 2]>,
}

/// Reads what is annotated as LeanDojo does it; what others put under that name is none of ours.
pub(crate) fn if_it_is_one<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Annotated>, D::Error> {
    Ok(Annotated::deserialize(Value::deserialize(from)?).ok())
}
