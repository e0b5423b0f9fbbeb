//! The roles, their database, and the results of what they try.

use std::cell::RefCell;
use std::collections::HashMap;

use postgres::{Client, SimpleQueryMessage};

use crate::common::Server;
use crate::common::database::Database;

/// Each role of the matrix, and what makes it what it is.
pub const ROLES: [(&str, &str); 13] = [
    ("superuser", "SUPERUSER"),
    ("ext_owner", ""),
    ("db_owner", ""),
    ("table_owner", ""),
    // May read the graph's tables.
    ("plain", ""),
    // May not.
    ("anon", ""),
    ("read_all", "IN ROLE pg_read_all_data"),
    ("write_all", "IN ROLE pg_write_all_data"),
    ("monitor", "IN ROLE pg_monitor"),
    ("bypassrls", "BYPASSRLS"),
    ("replication", "REPLICATION"),
    // The two together: who can read roots while no key file is set.
    ("read_bypass", "BYPASSRLS IN ROLE pg_read_all_data"),
    ("write_bypass", "BYPASSRLS IN ROLE pg_write_all_data"),
];

/// A database with the extension, tables of a graph, two keys, one of them revoked,
/// an event, and bindings.
pub struct Setup {
    database: Database,
    /// A connection of each role that has tried something.
    clients: RefCell<HashMap<String, Client>>,
}

impl Setup {
    pub fn create(name: &str) -> Self {
        let database = Database::empty(&format!("privileges_{name}"));
        let setup = Setup { database, clients: RefCell::default() };
        let mut superuser = setup.database.connect();
        for (role, attributes) in ROLES {
            superuser
                .batch_execute(&setup.named(&format!(
                    "DO $$ BEGIN CREATE ROLE {role} LOGIN {attributes};
                     EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$"
                )))
                .unwrap();
        }
        let database = &setup.database.name;
        superuser
            .batch_execute(&setup.named(&format!(
                "ALTER DATABASE {database} OWNER TO db_owner;
                 GRANT CREATE ON DATABASE {database} TO ext_owner;
                 CREATE SCHEMA open;
                 GRANT ALL ON SCHEMA open TO PUBLIC"
            )))
            .unwrap();
        setup.connect("ext_owner").batch_execute("CREATE EXTENSION graph_kernel").unwrap();
        superuser
            .batch_execute(&setup.named(
                "SELECT graph_kernel.create_tables();
                 INSERT INTO memory_turns (id) VALUES ('00000000-0000-4000-8000-000000000001');
                 ALTER TABLE memory_turns OWNER TO table_owner;
                 ALTER TABLE memory_turn_edges OWNER TO table_owner;
                 ALTER TABLE memory_turns ADD COLUMN embedding real[] DEFAULT '{1}';
                 GRANT SELECT ON memory_turns, memory_turn_edges TO plain;
                 SELECT graph_kernel.create_recorder_table();
                 INSERT INTO recorder_events VALUES
                     (0, 0, 0, NULL, 'e', 1, NULL, 0, 'egress_output', 'text');
                 CREATE TABLE kept_chunks AS SELECT * FROM recorder_chunks();
                 ALTER TABLE recorder_events OWNER TO table_owner;
                 GRANT SELECT ON recorder_events TO plain;
                 GRANT SELECT ON kept_chunks TO PUBLIC;
                 SELECT graph_kernel.bind_recorder_table('recorder_events');
                 SELECT graph_kernel.create_trace_table();
                 SELECT graph_kernel.bind_store(graph_kernel.create_slice_store());
                 ALTER TABLE slice_store OWNER TO table_owner;
                 GRANT SELECT ON slice_store TO plain;
                 CREATE TABLE promoted (slice text);
                 GRANT SELECT ON promoted TO plain;
                 SELECT graph_kernel.rotate_key(revoke_old => true);
                 SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges');
                 SELECT graph_policy_register('{\"max_nodes\": 2}', 'two')",
            ))
            .unwrap();
        setup
    }

    /// A statement with the names that the roles have in the server.
    pub fn named(&self, statement: &str) -> String {
        let roles = ROLES.map(|(role, _)| role);
        let word = |word: &str| match roles.contains(&word) {
            true => name_of(word),
            false => word.to_owned(),
        };
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut named = String::new();
        let mut rest = statement;
        while let Some(start) = rest.find(is_part) {
            let length = rest[start..].find(|c| !is_part(c)).unwrap_or(rest.len() - start);
            named.push_str(&rest[..start]);
            named.push_str(&word(&rest[start..start + length]));
            rest = &rest[start + length..];
        }
        named + rest
    }

    pub fn superuser(&self) -> Client {
        self.database.connect()
    }

    pub fn connect(&self, role: &str) -> Client {
        let server = Server { user: name_of(role), ..self.database.server.clone() };
        server.connect(&self.database.name)
    }

    pub fn rights_on_schema(&self, role: &str, schema: &str) -> String {
        let has = |right: &str| self.has(role, "schema", schema, right);
        let rights = [("USAGE", "U"), ("CREATE", "C")];
        rights.iter().filter(|(right, _)| has(right)).map(|(_, letter)| *letter).collect()
    }

    /// What happens when a role calls a function; the statement is `None` where SQL cannot.
    pub fn call(&self, role: &str, function: &str, statement: Option<&str>) -> String {
        let executable = self.has(role, "function", function, "EXECUTE");
        let outcome = statement.map(|statement| self.tried(role, statement));
        match (executable, outcome) {
            (true, None) => "may",
            (true, Some(Ok(_))) => "yes",
            (true, Some(Err(code))) if code == "42501" => "graph",
            (false, None) => "no",
            (false, Some(Err(code))) if code == "42501" => "no",
            (_, outcome) => panic!("{role} {function}: {executable} {outcome:?}"),
        }
        .to_owned()
    }

    /// What happens when a role tries a statement on a relation that needs this right.
    pub fn attempt(
        &self,
        role: &str,
        relation: &str,
        right: Option<&str>,
        statement: &str,
    ) -> String {
        let allowed = right.map(|right| self.has(role, "table", relation, right));
        match (allowed, self.tried(role, statement)) {
            (Some(true) | None, Ok(None)) => "ok",
            (Some(true) | None, Ok(Some(0))) => "none",
            (Some(true) | None, Ok(Some(_))) => "rows",
            (Some(true), Err(code)) if code == "42501" => "guarded",
            (Some(false) | None, Err(code)) if code == "42501" => "-",
            (allowed, outcome) => panic!("{role} {statement}: {allowed:?} {outcome:?}"),
        }
        .to_owned()
    }

    /// Tries a statement and takes it back: how many rows it gave or changed, or its SQLSTATE.
    fn tried(&self, role: &str, statement: &str) -> Result<Option<u64>, String> {
        let mut clients = self.clients.borrow_mut();
        let client = clients.entry(role.to_owned()).or_insert_with(|| self.connect(role));
        let mut transaction = client.transaction().unwrap();
        let counts_rows = ["SELECT", "INSERT", "UPDATE", "DELETE"];
        let messages = transaction
            .simple_query(statement)
            .map_err(|error| error.code().expect("an error of the server").code().to_owned())?;
        let count = messages.iter().rev().find_map(|message| match message {
            SimpleQueryMessage::CommandComplete(count) => Some(*count),
            _ => None,
        });
        Ok(count.filter(|_| counts_rows.iter().any(|verb| statement.starts_with(verb))))
    }

    fn has(&self, role: &str, kind: &str, object: &str, right: &str) -> bool {
        let statement = format!("SELECT has_{kind}_privilege($1, $2, $3)");
        let mut clients = self.clients.borrow_mut();
        let client = clients.entry("postgres".to_owned()).or_insert_with(|| self.superuser());
        client.query_one(&statement, &[&name_of(role), &object, &right]).unwrap().get(0)
    }
}

/// The role's name in the server, which other tests share.
fn name_of(role: &str) -> String {
    format!("privileges_{role}")
}
