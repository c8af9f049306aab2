//! The JSON Schema of an experiment's file, for editors.

use crate::file::ExperimentFile;

/// The schema as text; `docs/experiment.schema.json` is this.
pub fn schema() -> String {
    let schema = schemars::schema_for!(ExperimentFile);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_in_the_documentation_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiment.schema.json");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == schema(),
            "docs/experiment.schema.json is not that of the types; make it with `catamount run \
             --schema > docs/experiment.schema.json`"
        );
    }
}
