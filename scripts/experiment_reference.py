#!/usr/bin/env python3
"""The reference of an experiment's file, as Markdown, from its JSON Schema.

    python3 scripts/experiment_reference.py docs/experiment.schema.json > experiment.md

The schema is generated from the types that read the file, so the reference cannot say anything
else.
"""

import json
import re
import sys


def name_of(reference):
    return reference.rsplit("/", 1)[1]


def anchor(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def kind(value, schema):
    """What may stand there, in a few words."""
    if "$ref" in value:
        target = name_of(value["$ref"])
        found = schema["$defs"][target]
        if found.get("type") == "object":
            return f"[table](#{anchor(target)})"
        return kind(found, schema)
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return ", ".join(f"`{json.dumps(one)}`" for one in value["enum"])
    for key in ("oneOf", "anyOf"):
        if key in value:
            kinds = [kind(one, schema) for one in value[key] if one.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    types = value.get("type")
    if isinstance(types, list):
        types = next(one for one in types if one != "null")
    if types == "array":
        return f"list of {kind(value.get('items', {}), schema)}"
    if types == "object" and isinstance(value.get("additionalProperties"), dict):
        return f"table of {kind(value['additionalProperties'], schema)}"
    return types or "value"


def text(words):
    """A description on one line of a table."""
    return " ".join(words.split()).replace("|", "\\|")


def table(value, schema):
    required = value.get("required", [])
    lines = ["| key | what | meaning | default |", "|---|---|---|---|"]
    for key, one in value["properties"].items():
        default = one.get("default")
        # The defaults of a table stand in the table's own section.
        said = default is not None and not isinstance(default, dict)
        shown = "required" if key in required else f"`{json.dumps(default)}`" if said else ""
        lines.append(
            f"| `{key}` | {kind(one, schema)} | "
            f"{text(one.get('description', ''))} | {text(shown)} |"
        )
    return "\n".join(lines)


def choices(value, schema):
    lines = []
    for one in value.get("oneOf", value.get("anyOf", [])):
        lines.append(f"- {kind(one, schema)}: {text(one.get('description', ''))}".rstrip(": "))
    return "\n".join(lines)


def main():
    schema = json.load(open(sys.argv[1], encoding="utf-8"))
    print("# The experiment's file\n")
    print(text(schema.get("description", "")) + "\n")
    print(
        "Made from the types that read it (`catamount run --schema`). `catamount run demo --print` "
        "prints a whole file to start from; what is unknown or out of range is refused with its "
        "line before any work starts.\n"
    )
    print(table(schema, schema))
    for title, value in schema["$defs"].items():
        print(f"\n## {title}\n\n{text(value.get('description', ''))}\n")
        print(table(value, schema) if "properties" in value else choices(value, schema))


if __name__ == "__main__":
    main()
