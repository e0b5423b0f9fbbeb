//! Places in a mapping.

use std::fmt;

use serde_json::{Map, Value};

/// A place in the part of a mapping that is about one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The value of a key.
    Key(&'static str),
    /// The turn that this element of `parents` names.
    Parent(usize),
    /// The session of `follows`.
    FollowsSession,
    /// This key of the order of `follows`.
    FollowsOrder(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Key(key) => f.write_str(key),
            Place::Parent(number) => write!(f, "parents[{number}].parent"),
            Place::FollowsSession => f.write_str("follows.session"),
            Place::FollowsOrder(number) => write!(f, "follows.order[{number}]"),
        }
    }
}

impl Place {
    /// Puts a value here. What is around the place is left as it is where it has another form.
    pub fn put(self, mapping: &mut Map<String, Value>, value: Value) {
        match self {
            Place::Key(key) => drop(mapping.insert(key.to_owned(), value)),
            Place::Parent(number) => {
                let element = mapping.get_mut("parents").and_then(|list| list.get_mut(number));
                if let Some(element) = element.and_then(Value::as_object_mut) {
                    element.insert("parent".to_owned(), value);
                }
            }
            Place::FollowsSession => {
                if let Some(follows) = mapping.get_mut("follows").and_then(Value::as_object_mut) {
                    follows.insert("session".to_owned(), value);
                }
            }
            Place::FollowsOrder(number) => {
                let order = mapping.get_mut("follows").and_then(|follows| follows.get_mut("order"));
                if let Some(key) = order.and_then(|order| order.get_mut(number)) {
                    *key = value;
                }
            }
        }
    }
}

/// A place in the mapping of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphPlace {
    /// About the turns table.
    Turns(Place),
    /// About the edges table.
    Edges(Place),
}

impl GraphPlace {
    /// Whether it is about the turns table.
    pub fn is_of_turns(self) -> bool {
        matches!(self, GraphPlace::Turns(_))
    }
}

impl fmt::Display for GraphPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphPlace::Turns(place) => write!(f, "turns.{place}"),
            GraphPlace::Edges(place) => write!(f, "edges.{place}"),
        }
    }
}
