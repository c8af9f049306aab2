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
    use serde_json::{Value, json};

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
    /// Numbers that may be anything their type can be.
    const FREE: [&str; 10] = [
        "seed",
        "seeds[0]",
        "split_seed",
        "warm_up.seed",
        "branch.seed",
        "warm_up.validate_every",
        "branch.validate_every",
        "warm_up.checkpoints.every",
        "branch.checkpoints.every",
        "evaluation.trees",
    ];
    const RETRIES: &str = "policy.retries";

    /// Calls back with every number below a schema, by its key.
    fn numbers(root: &Value, schema: &Value, key: &str, found: &mut Vec<(String, Value)>) {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap();
            return numbers(root, &root["$defs"][name], key, found);
        }
        for way in schema["anyOf"].as_array().into_iter().flatten() {
            numbers(root, way, key, found);
        }
        let below = |name: &str| match key {
            "" => name.to_string(),
            key => format!("{key}.{name}"),
        };
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            numbers(root, property, &below(name), found);
        }
        if schema["items"].is_object() {
            numbers(root, &schema["items"], &format!("{key}[0]"), found);
        }
        let kind = schema["type"].to_string();
        if kind.contains("integer") || kind.contains("number") {
            found.push((key.to_string(), schema.clone()));
        }
    }

    /// The file with one more value.
    fn with(mut file: Value, key: &str, value: &Value) -> String {
        let mut place = &mut file;
        for part in key.split('.') {
            let (name, list) = part.strip_suffix("[0]").map_or((part, false), |name| (name, true));
            place = &mut place[name];
            if list {
                if !place.is_array() {
                    *place = json!([null]);
                }
                place = &mut place[0];
            }
        }
        *place = value.clone();
        toml::to_string(&file).unwrap()
    }

    /// What lies just outside the bounds of a schema.
    fn outside(schema: &Value) -> Vec<Value> {
        let whole = schema["type"].to_string().contains("integer");
        let beyond = |bound: f64, by: f64| match whole {
            true => json!(bound as i64 + by as i64),
            false => json!(bound + by * bound.abs().max(1.0) * 1e-3),
        };
        let bound = |name: &str| schema[name].as_f64().filter(|bound| bound.abs() < 9e15);
        [
            bound("minimum").map(|bound| beyond(bound, -1.0)),
            bound("maximum").map(|bound| beyond(bound, 1.0)),
            bound("exclusiveMinimum").map(|bound| json!(bound)),
            bound("exclusiveMaximum").map(|bound| json!(bound)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// What an editor underlines is what is refused, and every number has bounds.
    #[test]
    fn every_range_of_the_schema_is_the_parsers() {
        let data = json!({ "environment": "metamath", "database": "x.mm" });
        let objectives = json!([{ "objective": "bfs", "prior": { "kappa": 2.0 } }]);
        let new =
            json!({ "hidden": 8, "layers": 1, "vocab": 9, "positions": 9, "tokenizer": "bpe" });
        let scratch = json!({ "name": "n", "data": data, "objectives": objectives, "model": new });
        let mut adapters = scratch.clone();
        adapters["model"] = json!({ "base": "b" });
        for table in ["warm_up", "branch"] {
            adapters[table] = json!({ "lora": { "rank": 4 } });
        }
        adapters["policy"] = json!({ "url": "http://127.0.0.1:1" });
        let schema: Value = serde_json::from_str(&schema()).unwrap();
        let mut found = Vec::new();
        numbers(&schema, &schema, "", &mut found);
        assert!(found.len() > 60, "{}", found.len());
        for (key, schema) in found {
            if FREE.contains(&key.as_str()) || key == RETRIES {
                continue;
            }
            let outside = outside(&schema);
            // That a number is not negative goes without saying, unless it is a real one.
            let whole = schema["type"].to_string().contains("integer");
            let unsigned = whole && outside.len() == 1 && schema["minimum"] == 0;
            assert!(!outside.is_empty() && !unsigned, "{key} has no range: {schema}");
            for value in outside {
                let refusals: Vec<String> = [&scratch, &adapters]
                    .into_iter()
                    .filter_map(|file| {
                        let text = with(file.clone(), &key, &value);
                        crate::Experiment::parse(&text, "x.toml").err()
                    })
                    .map(|error| error.to_string())
                    .collect();
                let table = key.rsplit_once('.').map_or(key.as_str(), |(table, _)| table);
                let named = |said: &String| said.contains(&key) || said.contains(table);
                assert!(refusals.iter().any(named), "{key} = {value} is taken: {refusals:?}");
            }
        }
    }
}
