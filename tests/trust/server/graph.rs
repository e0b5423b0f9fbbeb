//! Databases with five turns, roles that look at them, and what slices and verification say.

use std::sync::OnceLock;

use postgres::error::DbError;
use postgres::{Client, GenericClient};

use crate::common::Server;
use crate::common::database::Database;

/// Roles without any right of their own on the graph. They stay: a server is thrown away whole.
const ROLES: [&str; 5] =
    ["trust_owner", "trust_reader", "trust_bypass", "trust_definer", "trust_member"];

/// Five turns in a row, the third of them being the usual anchor, and their owner.
const GRAPH: &str = "
    CREATE FUNCTION turn(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
        $$ SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
    INSERT INTO public.memory_turns
        (id, session_id, role, trajectory_phase, salience_score, created_at)
    SELECT turn(n), 'trust', 'user', 'planning', n / 10.0, '2026-01-01'
    FROM generate_series(1, 5) AS n;
    INSERT INTO public.memory_turn_edges
    SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(1, 4) AS n;
    ALTER TABLE public.memory_turns OWNER TO trust_owner;
    ALTER TABLE public.memory_turn_edges OWNER TO trust_owner;
    GRANT SELECT ON public.memory_turns, public.memory_turn_edges
        TO trust_reader, trust_bypass, trust_definer, trust_member;";

fn template() -> &'static Database {
    static TEMPLATE: OnceLock<Database> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let database = Database::empty("trust_template");
        let mut client = database.connect();
        for role in ROLES {
            client
                .batch_execute(&format!(
                    "DO $$ BEGIN CREATE ROLE {role} LOGIN;
                     EXCEPTION WHEN duplicate_object THEN END $$"
                ))
                .unwrap();
        }
        client
            .batch_execute(&format!(
                "ALTER ROLE trust_bypass BYPASSRLS;
                 ALTER ROLE trust_member NOINHERIT;
                 GRANT trust_owner, trust_bypass TO trust_member;
                 CREATE EXTENSION graph_kernel; SELECT graph_kernel.create_tables(); {GRAPH}"
            ))
            .unwrap();
        database
    })
}

/// A database with the graph. All of them are copies: they share a key.
pub fn database(name: &str) -> Database {
    template().copy(&format!("trust_{name}"))
}

/// A database with the graph and a key of its own.
pub fn database_with_another_key(name: &str) -> Database {
    let database = database(name);
    database
        .connect()
        .batch_execute("DROP EXTENSION graph_kernel CASCADE; CREATE EXTENSION graph_kernel")
        .unwrap();
    database
}

/// A connection of another role's.
pub fn connect_as(database: &Database, role: &str) -> Client {
    let server = Server { user: role.to_owned(), ..database.server.clone() };
    server.connect(&database.name)
}

/// What a slice at the third turn says.
pub fn slice(client: &mut impl GenericClient) -> String {
    text(client, "SELECT graph_slice(turn(3))::text")
}

/// The one text that a statement gives.
pub fn text(client: &mut impl GenericClient, statement: &str) -> String {
    client.query_one(statement, &[]).unwrap_or_else(|error| panic!("{statement}: {error}")).get(0)
}

/// The status in an export's attestation; tokens are there exactly when it is attested.
pub fn status(export: &str) -> String {
    let export: serde_json::Value = serde_json::from_str(export).unwrap();
    let attestation = &export["attestation"];
    let status = attestation["status"].as_str().unwrap();
    for token in [&export["admissibility_token"], &attestation["token"]] {
        assert_eq!(token.is_string(), status == "attested", "{export}");
    }
    status.to_owned()
}

/// A value of the attestation as text.
pub fn attested(export: &str, key: &str) -> String {
    let export: serde_json::Value = serde_json::from_str(export).unwrap();
    let value = &export["attestation"][key];
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The numbers of an export's turns.
pub fn turns(export: &str) -> Vec<u64> {
    let export: serde_json::Value = serde_json::from_str(export).unwrap();
    let number = |turn: &serde_json::Value| turn["id"].as_str().unwrap()[24..].parse().unwrap();
    export["turns"].as_array().unwrap().iter().map(number).collect()
}

/// What verification says of an export.
pub fn reason(client: &mut impl GenericClient, export: &str) -> String {
    let statement = "SELECT reason FROM graph_verify($1::text::pg_catalog.json)";
    client.query_one(statement, &[&export]).unwrap().get(0)
}

/// SQLSTATE of the error that a statement must raise.
pub fn refusal(client: &mut impl GenericClient, statement: &str) -> String {
    db_error(client, statement).code().code().to_owned()
}

/// The error that a statement must raise.
pub fn db_error(client: &mut impl GenericClient, statement: &str) -> DbError {
    let error = client.batch_execute(statement).expect_err(statement);
    error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error}")).clone()
}
