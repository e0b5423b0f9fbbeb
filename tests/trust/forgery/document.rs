//! An export as an editable tree, including key order, duplicate keys and the spelling of numbers.

use std::fmt;

use kernel::json::{self, JsonLimits};

/// An editable JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl From<json::JsonValue<'_>> for Json {
    fn from(read: json::JsonValue<'_>) -> Self {
        match read {
            json::JsonValue::Null => Json::Null,
            json::JsonValue::Bool(on) => Json::Bool(on),
            json::JsonValue::Number(number) => match number.text().parse() {
                Ok(integer) => Json::Integer(integer),
                Err(_) => Json::Float(number.as_f64().unwrap()),
            },
            json::JsonValue::String(text) => Json::String(text.into_owned()),
            json::JsonValue::Array(items) => {
                Json::Array(items.into_iter().map(Json::from).collect())
            }
            json::JsonValue::Object(entries) => Json::Object(
                entries.into_iter().map(|(key, value)| (key.into_owned(), value.into())).collect(),
            ),
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(on) => write!(f, "{on}"),
            Json::Integer(n) => write!(f, "{n}"),
            Json::Float(n) => write!(f, "{n:?}"),
            other => write!(f, "{other:?}"),
        }
    }
}

/// A path of keys and positions from the root: `["turns", "0", "role"]`.
pub type Path = Vec<String>;

/// A JSON document.
#[derive(Clone, Debug)]
pub struct Document(pub Json);

impl Document {
    pub fn parse(text: &str) -> Self {
        let limits = JsonLimits { bytes: usize::MAX, values: usize::MAX, token_bytes: usize::MAX };
        Document(json::JsonValue::read(text, limits, &|| {}).unwrap().into())
    }

    /// Compact JSON.
    pub fn text(&self) -> String {
        let mut text = String::new();
        write(&self.0, &mut text);
        text
    }

    /// The value at a path written with dots.
    pub fn get(&self, path: &str) -> Json {
        self.clone().at(&split(path)).clone()
    }

    pub fn set(&mut self, path: &str, value: impl Into<Value>) {
        *self.at(&split(path)) = value.into().0;
    }

    /// Removes a key from its object or an item from its array.
    pub fn remove(&mut self, path: &str) {
        let mut path = split(path);
        let last = path.pop().unwrap();
        match self.at(&path) {
            Json::Object(entries) => entries.retain(|(key, _)| *key != last),
            Json::Array(items) => drop(items.remove(last.parse().unwrap())),
            _ => panic!("{last} is in neither an object nor an array"),
        }
    }

    pub fn array(&mut self, path: &str) -> &mut Vec<Json> {
        match self.at(&split(path)) {
            Json::Array(items) => items,
            other => panic!("{path} is {other}"),
        }
    }

    /// The entries of the object at a path.
    pub fn entries(&mut self, path: &[String]) -> &mut Vec<(String, Json)> {
        match self.at(path) {
            Json::Object(entries) => entries,
            other => panic!("{path:?} is {other}"),
        }
    }

    pub fn at(&mut self, path: &[String]) -> &mut Json {
        path.iter().fold(&mut self.0, |json, step| match json {
            Json::Object(entries) => {
                let entry = entries.iter_mut().find(|(key, _)| key == step);
                &mut entry.unwrap_or_else(|| panic!("no key {step}")).1
            }
            Json::Array(items) => &mut items[step.parse::<usize>().unwrap()],
            _ => panic!("{step} is below a scalar"),
        })
    }

    /// Where the objects are, the root first.
    pub fn objects(&self) -> Vec<Path> {
        self.paths(|json| matches!(json, Json::Object(_)))
    }

    /// Where the scalars are.
    pub fn scalars(&self) -> Vec<Path> {
        self.paths(|json| !matches!(json, Json::Object(_) | Json::Array(_)))
    }

    /// Where all values are.
    pub fn values(&self) -> Vec<Path> {
        self.paths(|_| true)
    }

    fn paths(&self, wanted: impl Fn(&Json) -> bool) -> Vec<Path> {
        let mut found = Vec::new();
        walk(&self.0, &mut Vec::new(), &mut |path, json| {
            if wanted(json) {
                found.push(path.to_vec());
            }
        });
        found
    }
}

fn split(path: &str) -> Path {
    path.split('.').map(str::to_owned).collect()
}

fn walk(json: &Json, path: &mut Path, visit: &mut impl FnMut(&[String], &Json)) {
    visit(path, json);
    let children: Vec<(String, &Json)> = match json {
        Json::Object(entries) => entries.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Json::Array(items) => items.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    for (step, child) in children {
        path.push(step);
        walk(child, path, visit);
        path.pop();
    }
}

fn write(json: &Json, text: &mut String) {
    match json {
        Json::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                text.push_str(if i == 0 { "" } else { "," });
                write(item, text);
            }
            text.push(']');
        }
        Json::Object(entries) => {
            text.push('{');
            for (i, (key, value)) in entries.iter().enumerate() {
                text.push_str(if i == 0 { "" } else { "," });
                text.push_str(&quoted(key));
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
        Json::String(string) => text.push_str(&quoted(string)),
        // Display is for messages, but exact for these.
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// A string in JSON.
pub fn quoted(string: &str) -> String {
    serde_json::to_string(string).unwrap()
}

/// What [`Document::set`] takes.
pub struct Value(Json);

impl From<Json> for Value {
    fn from(json: Json) -> Self {
        Value(json)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value(Json::String(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value(Json::String(text))
    }
}

impl From<i128> for Value {
    fn from(number: i128) -> Self {
        Value(Json::Integer(number))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value(Json::Bool(value))
    }
}
