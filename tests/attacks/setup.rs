//! A database with a bound graph and log that belong to a plain role, and what an attack on them came to.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use postgres::error::DbError;
use postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::common::database::Database;

/// Roles without any attribute. They stay: a server is thrown away whole.
const ROLES: [&str; 3] = [OWNER, READER, "attack_other"];

/// Owns the schema b2 and the tables in it; may make schemas.
pub const OWNER: &str = "attack_owner";

/// Reads these tables, under their row security.
pub const READER: &str = "attack_reader";

/// Ten turns in a row and forty events. Each table is one partition, on which a lock stops whoever reads it, and
/// has columns of other types to take the place of those that are read. A second graph, named other, has no sessions.
const TABLES: &str = r#"
    CREATE FUNCTION turn(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
        $$ SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
    CREATE SCHEMA b2;
    GRANT USAGE ON SCHEMA b2 TO PUBLIC;
    CREATE TABLE b2.turns (
        id uuid PRIMARY KEY, session_id text, role text, trajectory_phase text, salience_score real,
        trajectory_depth int, trajectory_sibling_order int, trajectory_homogeneity real,
        trajectory_temporal real, trajectory_complexity real, created_at timestamptz,
        content_text text, content_hash text, embedding real[],
        number bigint DEFAULT 8, words text DEFAULT 'words', bytes bytea DEFAULT 'bytes'
    ) PARTITION BY HASH (id);
    CREATE TABLE b2.turns_1 PARTITION OF b2.turns FOR VALUES WITH (MODULUS 1, REMAINDER 0);
    INSERT INTO b2.turns (id, session_id, role, trajectory_phase, salience_score, created_at,
                          content_text, embedding)
    SELECT turn(n), 's', 'user', 'planning', n / 20.0,
           CASE WHEN n > 3 THEN '2026-01-01'::timestamptz + n * interval '1 minute' END,
           'content ' || n, ARRAY[n, 1]
    FROM generate_series(1, 10) AS n;
    CREATE TABLE b2.edges (
        parent_turn_id uuid, child_turn_id uuid, edge_type text,
        number bigint DEFAULT 8, words text DEFAULT 'words',
        PRIMARY KEY (parent_turn_id, child_turn_id)
    ) PARTITION BY HASH (parent_turn_id);
    CREATE TABLE b2.edges_1 PARTITION OF b2.edges FOR VALUES WITH (MODULUS 1, REMAINDER 0);
    CREATE INDEX ON b2.edges (child_turn_id);
    INSERT INTO b2.edges SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(1, 9) AS n;
    CREATE TABLE b2.events (
        segment_id bigint, ordinal bigint, byte_offset bigint, event_id text, pane_id bigint,
        session_id text, occurred_at_ms bigint, event_type text, text text, is_gap boolean,
        schema_version text, number bigint DEFAULT 8, words text DEFAULT 'words',
        PRIMARY KEY (segment_id, ordinal)
    ) PARTITION BY HASH (segment_id);
    CREATE TABLE b2.events_1 PARTITION OF b2.events FOR VALUES WITH (MODULUS 1, REMAINDER 0);
    INSERT INTO b2.events
    SELECT 0, n, n * 100, 'e' || n, n % 2, 's', n * 600000, 'egress_output', repeat('text ', 100), false,
           'ft.recorder.event.v1'
    FROM generate_series(1, 40) AS n;
    SELECT graph_kernel.bind_tables('b2.turns', 'b2.edges'),
           graph_kernel.bind_tables('b2.turns', 'b2.edges', '{"turns": {"session_id": null}}', 'other'),
           graph_kernel.bind_recorder_table('b2.events');"#;

/// The reader may set another role.
const MEMBER: &str = "SET client_min_messages = warning; GRANT attack_other TO attack_reader;";

/// What the owner has prepared. `caught` is a sequence, as that is not rolled back.
const PLANTED: &str = "
    CREATE SCHEMA planted;
    GRANT USAGE ON SCHEMA planted TO PUBLIC;
    CREATE SEQUENCE planted.caught;
    GRANT USAGE ON SEQUENCE planted.caught TO PUBLIC;
    CREATE FUNCTION planted.f() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
        IF current_user <> 'attack_owner' THEN PERFORM pg_catalog.nextval('planted.caught'); END IF;
        RETURN true;
    END $$;
    -- Does what the owner wants done at the n-th call.
    CREATE TABLE planted.actions (call_number bigint, statement text);
    CREATE SEQUENCE planted.calls;
    CREATE FUNCTION planted.act() RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp AS $$
    DECLARE
        now_at bigint := nextval('planted.calls');
        action text;
    BEGIN
        FOR action IN DELETE FROM planted.actions WHERE call_number <= now_at RETURNING statement LOOP
            EXECUTE action;
        END LOOP;
        RETURN true;
    END $$;";

const OWNED: &str = "
    ALTER SCHEMA b2 OWNER TO attack_owner;
    ALTER TABLE b2.turns OWNER TO attack_owner; ALTER TABLE b2.turns_1 OWNER TO attack_owner;
    ALTER TABLE b2.edges OWNER TO attack_owner; ALTER TABLE b2.edges_1 OWNER TO attack_owner;
    ALTER TABLE b2.events OWNER TO attack_owner; ALTER TABLE b2.events_1 OWNER TO attack_owner;
    GRANT SELECT ON b2.turns, b2.edges, b2.events TO attack_reader, attack_other;
    ALTER SCHEMA planted OWNER TO attack_owner;
    ALTER SEQUENCE planted.caught OWNER TO attack_owner; ALTER SEQUENCE planted.calls OWNER TO attack_owner;
    ALTER TABLE planted.actions OWNER TO attack_owner;
    ALTER FUNCTION planted.f() OWNER TO attack_owner; ALTER FUNCTION planted.act() OWNER TO attack_owner;";

/// Row security that calls the owner's function for every row.
pub const POLICIES: &str = "
    CREATE POLICY act ON b2.turns USING (planted.act());
    CREATE POLICY act ON b2.edges USING (planted.act());
    CREATE POLICY act ON b2.events USING (planted.act());
    ALTER TABLE b2.turns ENABLE ROW LEVEL SECURITY;
    ALTER TABLE b2.edges ENABLE ROW LEVEL SECURITY;
    ALTER TABLE b2.events ENABLE ROW LEVEL SECURITY;";

/// Calls that read the graph and whose answers stay the same while its rows do.
pub const GRAPH_CALLS: [&str; 18] = [
    "SELECT s -> 'turns', s -> 'edges' FROM graph_slice(turn(5)) AS s",
    "SELECT turn_id, session_id, role, phase, created_at, content_hash FROM graph_slice_turns(turn(5))",
    "SELECT * FROM graph_slice_edges(turn(5))",
    "SELECT anchor_turn_id, slice -> 'turns' FROM graph_slices(ARRAY[turn(5), turn(4), turn(6), turn(9)])
     WHERE error IS NULL",
    "SELECT * FROM graph_slice_explain(turn(5))",
    "SELECT * FROM graph_why(turn(5), turn(10), 'focused')",
    "SELECT * FROM graph_slice_stats(turn(5), '{\"max_nodes\": 3}')",
    "SELECT graph_snapshot()",
    "SELECT * FROM graph_anchors_recent(10)",
    "SELECT * FROM graph_anchor(NULL, 's')",
    "SELECT * FROM graph_anchor(NULL, NULL, '{1,2}')",
    "SELECT turn_id, similarity, content FROM graph_search_slice('{1,2}', turn(5))",
    "SELECT turn_id, similarity, content FROM graph_search('{1,2}')",
    "SELECT * FROM graph_content_audit()",
    "SELECT * FROM graph_kernel.list_sessions()",
    "SELECT * FROM graph_kernel.list_turns('s', only_ends => true)",
    "SELECT * FROM graph_kernel.list_edges(ARRAY[turn(5), turn(4)]) ORDER BY 1, 2, 3",
    "SELECT check_name, count FROM graph_check() WHERE count IS NOT NULL",
];

/// The same for the log.
pub const LOG_CALLS: [&str; 5] = [
    "SELECT * FROM recorder_chunks()",
    "SELECT * FROM recorder_chunks(per_pane => true)",
    "SELECT * FROM recorder_chunks_since(0, 30)",
    "SELECT * FROM recorder_event_chunks(0, 30)",
    "SELECT * FROM recorder_chunk_span(0, 3, 0, 0, 31, 10)",
];

/// What a statement came to.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// Its rows as texts.
    Answer(Vec<String>),
    /// SQLSTATE of an error that was meant.
    Refused(String),
    /// An internal error, or the end of the connection.
    Unsafe(String),
}

impl Outcome {
    /// The answer, or nothing where it was refused.
    pub fn answer(self, what: &str) -> Option<Vec<String>> {
        match self {
            Outcome::Answer(rows) => Some(rows),
            Outcome::Refused(_) => None,
            Outcome::Unsafe(error) => panic!("{what}: {error}"),
        }
    }

    /// What is wrong with it as the outcome of a call that answers with these rows when nothing is done to it.
    pub fn fault(&self, call: &str, rows: &[String]) -> Option<String> {
        // A call with a WHERE leaves out what was refused.
        let in_part = call.contains("WHERE");
        match self {
            Outcome::Answer(got) if got == rows => None,
            Outcome::Answer(got) if in_part && got.iter().all(|row| rows.contains(row)) => None,
            Outcome::Answer(got) => Some(format!("answered {got:.200?}, not {rows:.200?}")),
            Outcome::Refused(_) => None,
            Outcome::Unsafe(error) => Some(error.clone()),
        }
    }
}

/// Runs statements; the rows are those of all of them.
pub fn attempt(client: &mut Client, statements: &str) -> Outcome {
    match client.simple_query(statements) {
        Ok(messages) => Outcome::Answer(messages.iter().filter_map(row_text).collect()),
        Err(error) => match error.as_db_error() {
            None => {
                // Until the postmaster has heard of it; `connect` waits for the rest.
                thread::sleep(Duration::from_millis(500));
                Outcome::Unsafe(format!("the connection ended: {error}"))
            }
            Some(error) => outcome_of(error),
        },
    }
}

fn outcome_of(error: &DbError) -> Outcome {
    let code = error.code().code();
    // XX: internal errors. 57P: the server ends this connection.
    if code.starts_with("XX") || code.starts_with("57P") {
        return Outcome::Unsafe(format!("{code}: {}", error.message()));
    }
    Outcome::Refused(code.to_owned())
}

fn row_text(message: &SimpleQueryMessage) -> Option<String> {
    let SimpleQueryMessage::Row(row) = message else { return None };
    let columns = (0..row.len()).map(|column| row.get(column).unwrap_or("NULL"));
    Some(columns.collect::<Vec<_>>().join("|"))
}

/// A database of a test's own.
pub struct Setup {
    pub database: Database,
    /// Ends with the server.
    witness: Client,
}

fn template() -> &'static Database {
    static TEMPLATE: OnceLock<Database> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let database = Database::empty("attack_template");
        let mut admin = database.connect();
        for role in ROLES {
            admin.batch_execute(&create_role(role)).unwrap();
        }
        admin
            .batch_execute(&format!(
                "{MEMBER} CREATE EXTENSION graph_kernel; {TABLES} {PLANTED} {OWNED}"
            ))
            .unwrap();
        database
    })
}

/// A role that may be there already.
pub fn create_role(role: &str) -> String {
    format!(
        "DO $$ BEGIN CREATE ROLE {role} LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;"
    )
}

impl Setup {
    pub fn new(name: &str) -> Self {
        Self::with(template().copy(&format!("attack_{name}")))
    }

    /// Without the extension, the tables and the planted functions.
    pub fn empty(name: &str) -> Self {
        template();
        Self::with(Database::empty(&format!("attack_{name}")))
    }

    fn with(database: Database) -> Self {
        let mut admin = database.connect();
        let grant = format!("GRANT CREATE ON DATABASE {} TO {OWNER}", database.name);
        admin.batch_execute(&grant).unwrap();
        Setup { database, witness: admin }
    }

    /// A connection. A server that has just crashed is waited for, so that a test finds all that crash it.
    pub fn connect(&self, role: &str) -> Client {
        let server = &self.database.server;
        let give_up = Instant::now() + Duration::from_secs(20);
        loop {
            let connected = Config::new()
                .host_path(&server.socket)
                .port(server.port)
                .user(role)
                .dbname(&self.database.name)
                .connect(NoTls);
            match connected {
                Ok(client) => return client,
                Err(error) => assert!(Instant::now() < give_up, "{error:?}"),
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn admin(&self) -> Client {
        self.connect("postgres")
    }

    pub fn owner(&self) -> Client {
        self.connect(OWNER)
    }

    pub fn reader(&self) -> Client {
        self.connect(READER)
    }

    /// Whether the owner's function has run with somebody else's rights.
    pub fn has_caught(&self) -> bool {
        let caught = "SELECT is_called FROM planted.caught";
        self.admin().query_one(caught, &[]).unwrap().get(0)
    }

    /// No role has gained rights, and the server has not crashed.
    pub fn assert_sound(&mut self) {
        self.witness.batch_execute("SELECT 1").expect("the server has crashed");
        let superusers = "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'attack%' AND rolsuper";
        let superusers: i64 = self.witness.query_one(superusers, &[]).unwrap().get(0);
        assert_eq!(superusers, 0, "a role has become superuser");
    }
}

/// The one text that a statement gives.
pub fn text(client: &mut Client, statement: &str) -> String {
    client.query_one(statement, &[]).unwrap_or_else(|error| panic!("{statement}: {error:?}")).get(0)
}

/// The status in an export's attestation; tokens are there exactly when it is attested.
pub fn status(export: &str) -> String {
    let export: serde_json::Value = serde_json::from_str(export).unwrap();
    let status = export["attestation"]["status"].as_str().unwrap();
    for token in [&export["admissibility_token"], &export["attestation"]["token"]] {
        assert_eq!(token.is_string(), status == "attested", "{export}");
    }
    status.to_owned()
}

/// The role in an export's attestation.
pub fn role(export: &str) -> String {
    let export: serde_json::Value = serde_json::from_str(export).unwrap();
    export["attestation"]["role"].as_str().unwrap().to_owned()
}

/// How many turns an export has.
pub fn turn_count(export: &str) -> usize {
    let export: serde_json::Value = serde_json::from_str(export).unwrap();
    export["turns"].as_array().unwrap().len()
}

/// Fails with all faults that were found.
pub fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
