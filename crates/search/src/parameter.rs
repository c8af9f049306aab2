//! Settings by name: what each may be, and how it is read and written. One table serves the command
//! line, an experiment's file, manifests and Python.

use std::fmt;
use std::ops::RangeInclusive;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A setting's value before it is known whose it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Whole(u64),
    /// Any number; TOML knows `nan` and `inf`.
    Real(f64),
    /// What is none of these.
    Text(String),
}

impl Value {
    /// A value as a command line has it.
    pub fn parse(text: &str) -> Self {
        if let Ok(flag) = text.parse() {
            return Value::Flag(flag);
        }
        if let Ok(whole) = text.parse() {
            return Value::Whole(whole);
        }
        text.parse().map_or_else(|_| Value::Text(text.to_string()), Value::Real)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Whole(number) => write!(f, "{number}"),
            Value::Real(number) => write!(f, "{number}"),
            Value::Text(text) => write!(f, "`{text}`"),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Flag(flag)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Whole(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Real(number)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Whole(number) => serializer.serialize_u64(*number),
            Value::Real(number) => serializer.serialize_f64(*number),
            Value::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;

        impl Visitor<'_> for AnyValue {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, true or false")
            }

            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Value, E> {
                Ok(Value::Flag(flag))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value, E> {
                Ok(Value::Whole(number))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Value, E> {
                Ok(u64::try_from(number).map_or(Value::Real(number as f64), Value::Whole))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value, E> {
                Ok(Value::Real(number))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.to_string()))
            }
        }

        deserializer.deserialize_any(AnyValue)
    }
}

/// A setting that is not one, or has a value that it cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// No setting has this name.
    #[error("there is no setting `{key}`{}; the known ones are {}", hint(.key, .known),
        .known.join(", "))]
    Unknown {
        /// The name.
        key: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The value is not among those it may have.
    #[error("{key} is {value}; it must be {allowed}")]
    Refused {
        /// The setting.
        key: String,
        /// The value, as text.
        value: String,
        /// What it may be.
        allowed: String,
    },
    /// A setting that has no default is missing.
    #[error("`{key}` is missing")]
    Missing {
        /// The setting.
        key: String,
    },
}

fn hint(key: &str, known: &[String]) -> String {
    let near = catamount_base::nearest(key, known.iter().map(String::as_str));
    near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}

/// What a setting may be; in words where it is shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Allowed {
    /// A whole number of a range.
    Whole(RangeInclusive<u64>),
    /// The same, or nothing, which is written `none`.
    Optional(RangeInclusive<u64>),
    /// A number of a range.
    Real(RangeInclusive<f64>),
    /// Yes or no.
    Flag,
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::Whole(range) => {
                write!(f, "a whole number from {} to {}", range.start(), range.end())
            }
            Allowed::Optional(range) => {
                write!(f, "a whole number from {} to {}, or `none`", range.start(), range.end())
            }
            Allowed::Real(range) => {
                write!(f, "a number from {} to {}", range.start(), range.end())
            }
            Allowed::Flag => f.write_str("true or false"),
        }
    }
}

/// One setting of `S`: its name, its range, and where it lives.
pub struct Parameter<S: 'static> {
    /// Its name; a strategy's own is prefixed with the strategy's name where others stand beside
    /// it.
    pub name: &'static str,
    /// What it is, for help texts.
    pub help: &'static str,
    field: Field<S>,
}

enum Field<S: 'static> {
    Whole(RangeInclusive<u64>, fn(&S) -> u64, fn(&mut S, u64)),
    Optional(RangeInclusive<u64>, fn(&S) -> Option<u64>, fn(&mut S, Option<u64>)),
    Real(RangeInclusive<f64>, fn(&S) -> f64, fn(&mut S, f64)),
    Flag(fn(&S) -> bool, fn(&mut S, bool)),
}

impl<S> Parameter<S> {
    /// A whole number.
    pub const fn whole(
        name: &'static str,
        range: RangeInclusive<u64>,
        help: &'static str,
        get: fn(&S) -> u64,
        set: fn(&mut S, u64),
    ) -> Self {
        Parameter { name, help, field: Field::Whole(range, get, set) }
    }

    /// A whole number, or nothing.
    pub const fn optional(
        name: &'static str,
        range: RangeInclusive<u64>,
        help: &'static str,
        get: fn(&S) -> Option<u64>,
        set: fn(&mut S, Option<u64>),
    ) -> Self {
        Parameter { name, help, field: Field::Optional(range, get, set) }
    }

    /// A number.
    pub const fn real(
        name: &'static str,
        range: RangeInclusive<f64>,
        help: &'static str,
        get: fn(&S) -> f64,
        set: fn(&mut S, f64),
    ) -> Self {
        Parameter { name, help, field: Field::Real(range, get, set) }
    }

    /// Yes or no.
    pub const fn flag(
        name: &'static str,
        help: &'static str,
        get: fn(&S) -> bool,
        set: fn(&mut S, bool),
    ) -> Self {
        Parameter { name, help, field: Field::Flag(get, set) }
    }

    /// What it may be.
    pub fn allowed(&self) -> Allowed {
        match &self.field {
            Field::Whole(range, ..) => Allowed::Whole(range.clone()),
            Field::Optional(range, ..) => Allowed::Optional(range.clone()),
            Field::Real(range, ..) => Allowed::Real(range.clone()),
            Field::Flag(..) => Allowed::Flag,
        }
    }

    /// Its value; none if it is optional and not given.
    pub fn get(&self, of: &S) -> Option<Value> {
        match &self.field {
            Field::Whole(_, get, _) => Some(Value::Whole(get(of))),
            Field::Optional(_, get, _) => get(of).map(Value::Whole),
            Field::Real(_, get, _) => Some(Value::Real(get(of))),
            Field::Flag(get, _) => Some(Value::Flag(get(of))),
        }
    }

    /// Gives it a value; false if it cannot have that.
    pub fn set(&self, of: &mut S, value: &Value) -> bool {
        match (&self.field, value) {
            (Field::Whole(range, _, set), Value::Whole(number)) if range.contains(number) => {
                set(of, *number)
            }
            (Field::Optional(range, _, set), Value::Whole(number)) if range.contains(number) => {
                set(of, Some(*number))
            }
            (Field::Optional(_, _, set), Value::Text(text)) if text == "none" => set(of, None),
            (Field::Real(range, _, set), Value::Real(number)) if range.contains(number) => {
                set(of, *number)
            }
            (Field::Real(range, _, set), Value::Whole(number))
                if range.contains(&(*number as f64)) =>
            {
                set(of, *number as f64)
            }
            (Field::Flag(_, set), Value::Flag(flag)) => set(of, *flag),
            _ => return false,
        }
        true
    }

    /// What the parameter is, apart from whose it is.
    pub fn describe(&self, prefix: &str, default: &S) -> ParameterHelp {
        ParameterHelp {
            key: format!("{prefix}{}", self.name),
            help: self.help,
            allowed: self.allowed(),
            default: self.get(default),
        }
    }
}

/// A setting as help texts and schemas show it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterHelp {
    /// Its name.
    pub key: String,
    /// What it is.
    pub help: &'static str,
    /// What it may be.
    pub allowed: Allowed,
    /// What it is if nobody says anything.
    pub default: Option<Value>,
}
