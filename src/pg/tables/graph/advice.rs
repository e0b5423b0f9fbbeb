//! What a mapping leaves out without saying so.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use kernel::graph::turn::Role;
use kernel::json::quoted;
use serde_json::{Map, Value, json};

use super::mapping::{MAX_ROLE_BYTES, MAX_ROLES, ROLES};
use super::{Graph, GraphTables};
use crate::pg::catalog::names::quote;
use crate::pg::query::{ColumnType, Planning, Template, query};
use crate::pg::tables::bound_table::ValueKind;
use crate::pg::tables::place::Place;

const ROLE_NAMES: Template = Template::new(
    include_str!("../../../../sql/queries/role_names.sql"),
    &[ColumnType::Text],
    Planning::Once,
);

const UNKNOWN_ROLE_NAMES: Template = Template::new(
    include_str!("../../../../sql/queries/unknown_role_names.sql"),
    &[ColumnType::Text],
    Planning::Once,
);

/// The keys whose absence is worth a notice, and what every turn then reads as.
const ABSENT: [(&str, &str); 6] = [
    ("session_id", "one session"),
    ("role", "role user"),
    ("phase", "phase exploration"),
    ("salience", "salience 0.5"),
    ("created_at", "no time"),
    ("content_text", "no content"),
];

/// Columns that applications have in the place of a role.
const LIKELY_ROLES: [&str; 4] = ["type", "kind", "message_type", "sender_type"];

/// Names of roles that applications use, and what each means. None is the system: whoever writes turns writes their
/// roles, and what he may say so has to be thought about.
const USUAL_ROLES: [(&str, Role); 5] = [
    ("ai", Role::Assistant),
    ("bot", Role::Assistant),
    ("function", Role::Tool),
    ("human", Role::User),
    ("model", Role::Assistant),
];

/// What the command has in the place of a role that nobody but the user knows.
const MY_ROLE: &str = "my_role";

/// Unknown names of roles that a notice lists.
const LISTED_ROLES: usize = 16;

/// What a notice of `bind_tables` says: the fact, and the command that does better.
pub struct Advice {
    /// The message.
    pub message: String,
    /// The hint.
    pub hint: String,
}

impl Graph {
    /// What the mapping leaves out without saying so, as graph of these tables whose turns have these names of roles.
    /// The hint is one command that says all of it. `None` where nothing is left out.
    pub fn advice(&self, names: &BTreeSet<String>, tables: &GraphTables<'_>) -> Option<Advice> {
        let given = tables.columns.get("turns");
        let is_absent = |key: &str| {
            let says = given.is_some_and(|given| given.get(key).is_some());
            self.turns.columns[key].stored.is_none() && !says
        };
        let (mut messages, mut tasks, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        let absent: Vec<_> = ABSENT.into_iter().filter(|(key, _)| is_absent(key)).collect();
        if !absent.is_empty() {
            let (keys, read): (Vec<&str>, Vec<&str>) = absent.into_iter().unzip();
            messages.push(format!(
                "no column was found for {}: every turn reads as {}",
                keys.join(", "),
                read.join(", ")
            ));
            tasks.push("Name a column or an expression for each, or null where there is none");
            changes.extend(keys.into_iter().map(|key| (Place::Key(key), Value::Null)));
        }
        if let (true, Some(column)) = (is_absent("role"), self.likely_role()) {
            messages.push(format!("column {} may say the role", quote(column)));
            changes.push((Place::Key("role"), column.into()));
        }
        let content = &self.turns.columns["content_text"];
        if let (true, Some(content)) = (is_absent("content_hash"), content.index_key()) {
            messages.push("no content hash is stored: an edit of a content is not noticed".into());
            let expression = format!("graph_content_hash({content})");
            changes.push((Place::Key("content_hash"), json!({ "expression": expression })));
        }
        if let Some((message, roles)) = self.unknown_roles(names) {
            messages.push(message);
            tasks.push(task_of(&roles));
            changes.push((Place::Key(ROLES), Value::Object(roles)));
        }
        let command = tables.command_with("turns", changes);
        (!messages.is_empty()).then(|| Advice {
            message: messages.join("; "),
            hint: match tasks.is_empty() {
                true => format!("{command};"),
                false => format!("{}: {command};", tasks.join(". ")),
            },
        })
    }

    /// The name of a column that no key is read from and that may hold the role.
    fn likely_role(&self) -> Option<&str> {
        let is_read = |name: &str| {
            let mut values = self.turn_values();
            values
                .any(|(_, value)| self.turns.raw_columns(value).iter().any(|raw| raw.name == name))
        };
        let mut columns = self.turns.table.columns.iter();
        let found = columns.find(|column| {
            let name = column.name.as_str();
            LIKELY_ROLES.contains(&name)
                && ValueKind::Text.accepts(column.base_type)
                && !is_read(name)
        });
        found.map(|column| column.name.as_str())
    }

    /// What to say of those of these names of roles that are not known, and a mapping that says what they mean. `None`
    /// where all are known.
    fn unknown_roles(&self, names: &BTreeSet<String>) -> Option<(String, Map<String, Value>)> {
        let is_known =
            |name: &str| Role::ALL.iter().any(|role| role.name().eq_ignore_ascii_case(name));
        let unknown: Vec<&String> = names.iter().filter(|name| !is_known(name)).collect();
        if unknown.is_empty() {
            return None;
        }
        let mut listed: Vec<String> =
            unknown.iter().take(LISTED_ROLES).map(|name| quoted(name)).collect();
        if unknown.len() > LISTED_ROLES {
            listed.push("...".to_owned());
        }
        let role = &self.turns.columns["role"];
        let mut roles: Map<String, Value> =
            role.read_as.iter().map(|(name, role)| (name.clone(), Value::from(*role))).collect();
        let before = roles.len();
        roles.extend(USUAL_ROLES.into_iter().filter_map(|(name, role)| {
            let is_stored = unknown.iter().any(|stored| stored.eq_ignore_ascii_case(name));
            is_stored.then(|| (name.to_owned(), role.name().into()))
        }));
        let others = unknown.iter().take(LISTED_ROLES).map(|name| name.to_ascii_lowercase());
        for name in others.filter(|name| name.len() <= MAX_ROLE_BYTES) {
            if roles.len() < MAX_ROLES && !roles.contains_key(&name) {
                roles.insert(name, MY_ROLE.into());
            }
        }
        if roles.len() == before {
            roles.insert("my_name".to_owned(), Role::User.name().into());
        }
        let listed = listed.join(", ");
        Some((format!("names of roles that are not known are read as user: {listed}"), roles))
    }

    /// How to say what the names of roles mean that are not known: what to do, and the call of `bind_tables`; `None`
    /// where all are known.
    pub fn roles_advice(&self, tables: &GraphTables<'_>) -> Option<String> {
        let (_, roles) = self.unknown_roles(&self.names_of_roles(&UNKNOWN_ROLE_NAMES))?;
        let task = task_of(&roles);
        let command = tables.command("turns", Some((Place::Key(ROLES), Value::Object(roles))));
        Some(format!("{task}: {command};"))
    }

    /// The names of roles that the rows have, as far as the first of them say.
    pub fn role_names(&self) -> BTreeSet<String> {
        self.names_of_roles(&ROLE_NAMES)
    }

    fn names_of_roles(&self, template: &Template) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        if self.turns.columns["role"].stored.is_some() {
            query(&self.statement(template, &[]), &[], |row| {
                names.extend(row.text(0, |name| name.map(str::to_owned)));
                ControlFlow::Continue(())
            });
        }
        names
    }
}

/// What to do about names of roles for which a mapping proposes these.
fn task_of(roles: &Map<String, Value>) -> &'static str {
    match roles.values().any(|role| role == MY_ROLE) {
        true => {
            "Say what the names of roles mean, with user, assistant, system or tool in the place of my_role"
        }
        false => "Say what the names of roles mean",
    }
}
