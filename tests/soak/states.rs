//! A graph of about 400 turns that is moved between a few states, each time in one transaction.

use std::io::{Read, Write};

use postgres::{Client, Transaction};

use crate::graph::text;

/// How many states there are.
pub const STATES: i32 = 6;

/// The names of the two graphs' tables end so.
pub const GRAPHS: [&str; 2] = ["", "_aside"];

/// Turns 1 to 400 are in the states or not; turns 401 to 420 of the session `extra` stay, with their edges.
const SETUP: &str = "
    CREATE SCHEMA soak;
    CREATE FUNCTION soak.number(n int, salt text) RETURNS int IMMUTABLE LANGUAGE sql
        RETURN ('x' || substr(md5(n || salt), 1, 7))::bit(28)::int;
    CREATE FUNCTION soak.turn(n int) RETURNS uuid IMMUTABLE LANGUAGE sql RETURN md5('turn ' || n)::uuid;
    CREATE TABLE soak.states AS SELECT generate_series(0, 5) AS state;

    CREATE TABLE soak.turns AS
    SELECT state, soak.turn(n) AS id, 's' || n % 7 AS session_id,
           (ARRAY['user', 'assistant', 'tool', 'system'])[1 + n % 4] AS role,
           (ARRAY['synthesis', 'planning', 'debugging', 'exploration', NULL])[1 + soak.number(n, 'p' || state % 3) % 5]
               AS trajectory_phase,
           (soak.number(n, 's' || state) % 1000 / 1000.0)::real AS salience_score,
           to_timestamp(1000000000 + n * 60 + state * (n % 2)) AS created_at,
           'turn ' || n || repeat('.', soak.number(n, 't' || state) % 50) AS content_text
      FROM soak.states, generate_series(1, 400) AS n
     WHERE n % 50 = 1 OR soak.number(n, 'in ' || state) % 20 > 0;
    ALTER TABLE soak.turns ADD content_hash text, ADD token_count int;
    UPDATE soak.turns SET content_hash = graph_content_hash(content_text) WHERE soak.number(state, id::text) % 3 > 0;
    UPDATE soak.turns SET token_count = length(content_text) WHERE soak.number(state, id::text) % 2 = 0;
    CREATE INDEX ON soak.turns (state, id);

    CREATE TABLE soak.edges AS
    SELECT DISTINCT state, p.id AS parent_turn_id, c.id AS child_turn_id, edge_type
      FROM (SELECT state, soak.turn(greatest(1, n - 1 - soak.number(n, CASE n % 3 WHEN 0 THEN 'e' || state \
      ELSE 'e' END) % 30))
                              AS parent, soak.turn(n) AS child,
                   (ARRAY['reply', 'branch', 'reference', 'default'])[1 + soak.number(n, \
                   'k' || state % 2) % 4] AS edge_type
              FROM soak.states, generate_series(2, 400) AS n
            UNION ALL
            SELECT state, soak.turn(1 + soak.number(n, 'f' || state) % (n - 1)), soak.turn(n), 'reference'
              FROM soak.states, generate_series(2, 400, 4) AS n) AS e
      JOIN soak.turns AS p USING (state) JOIN soak.turns AS c USING (state)
     WHERE p.id = e.parent AND c.id = e.child;
    CREATE INDEX ON soak.edges (state);

    CREATE TABLE soak.position (turns regclass PRIMARY KEY, state int);
    ANALYZE";

const EXTRA: &str = "
    INSERT INTO public.memory_turns{} (id, session_id, role, salience_score, created_at, content_text)
    SELECT soak.turn(n), 'extra', 'user', 0.9, to_timestamp(1000000000 + n), 'extra ' || n
      FROM generate_series(401, 420) AS n;
    INSERT INTO public.memory_turn_edges{}
    SELECT soak.turn(1 + n % 8 * 50), soak.turn(n), 'reply' FROM generate_series(401, 420) AS n";

/// The created tables and the same under another name. Turns that edges refer to are deleted and come again.
const PLAIN_TABLES: &str = "
    SELECT graph_kernel.create_tables(options => jsonb_build_object('content_hash', false));
    ALTER TABLE public.memory_turn_edges
        ALTER CONSTRAINT memory_turn_edges_parent_turn_id_fkey DEFERRABLE INITIALLY DEFERRED,
        ALTER CONSTRAINT memory_turn_edges_child_turn_id_fkey DEFERRABLE INITIALLY DEFERRED;
    CREATE TABLE public.memory_turns_aside (LIKE public.memory_turns INCLUDING ALL);
    CREATE TABLE public.memory_turn_edges_aside (LIKE public.memory_turn_edges INCLUDING ALL)";

/// The same with partitions of turns: those of the session `extra` are in one of their own.
const PARTITIONED_TABLES: &str = "
    SELECT graph_kernel.create_tables('soak');
    CREATE TABLE public.memory_turns (LIKE soak.memory_turns) PARTITION BY LIST (session_id);
    ALTER TABLE public.memory_turns ADD PRIMARY KEY (id, session_id);
    CREATE TABLE public.memory_turns_rest PARTITION OF public.memory_turns
        FOR VALUES IN ('s0', 's1', 's2', 's3', 's4', 's5', 's6');
    CREATE TABLE public.memory_turns_extra PARTITION OF public.memory_turns FOR VALUES IN ('extra');
    CREATE TABLE public.memory_turn_edges (LIKE soak.memory_turn_edges INCLUDING ALL)";

/// Turns that are in every state, from all over the graph.
pub const ANCHORS: [i32; 5] = [1, 101, 201, 301, 351];

/// The extension and the graphs with these endings, each in state 0.
pub fn set_up(client: &mut Client, partitioned: bool) {
    client.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    client.batch_execute(SETUP).unwrap();
    let (tables, graphs) =
        if partitioned { (PARTITIONED_TABLES, &GRAPHS[..1]) } else { (PLAIN_TABLES, &GRAPHS[..]) };
    client.batch_execute(tables).unwrap();
    for graph in graphs {
        client
            .batch_execute(&format!(
                "INSERT INTO soak.position VALUES ('public.memory_turns{graph}', -1)"
            ))
            .unwrap();
        put(client, graph, 0);
        client.batch_execute(&EXTRA.replace("{}", graph)).unwrap();
    }
    client.batch_execute("VACUUM ANALYZE").unwrap();
}

/// Moves a graph that nobody else writes to into a state.
pub fn put(client: &mut Client, graph: &str, state: i32) {
    let mut transaction = client.transaction().unwrap();
    transaction.batch_execute(&replace(graph, state)).unwrap();
    transaction.batch_execute(&set_position(graph, state)).unwrap();
    transaction.commit().unwrap();
}

/// The columns that the states have, and how they are compared.
const COLUMNS: &str = "id, session_id, role, trajectory_phase, salience_score, created_at, content_text, \
    content_hash, token_count";

fn set_position(graph: &str, state: i32) -> String {
    format!(
        "UPDATE soak.position SET state = {state} WHERE turns = 'public.memory_turns{graph}'::regclass"
    )
}

/// Everything but the turns of the session `extra` goes.
fn delete(graph: &str) -> String {
    format!(
        "DELETE FROM public.memory_turn_edges{graph} WHERE child_turn_id NOT IN (SELECT soak.turn(n) \
        FROM generate_series(401, 420) AS n);
         DELETE FROM public.memory_turns{graph} WHERE session_id <> 'extra'"
    )
}

fn replace(graph: &str, state: i32) -> String {
    format!(
        "{};
         INSERT INTO public.memory_turns{graph} ({COLUMNS}) SELECT {COLUMNS} FROM soak.turns WHERE state = {state};
         INSERT INTO public.memory_turn_edges{graph}
         SELECT parent_turn_id, child_turn_id, edge_type FROM soak.edges WHERE state = {state}",
        delete(graph)
    )
}

/// The rows that differ, and nothing else.
fn update(graph: &str, state: i32) -> String {
    let values = COLUMNS.trim_start_matches("id, session_id, ");
    let new = values.split(", ").map(|column| format!("s.{column}")).collect::<Vec<_>>().join(", ");
    let old = new.replace("s.", "t.");
    format!(
        "DELETE FROM public.memory_turn_edges{graph} AS e
         WHERE child_turn_id NOT IN (SELECT soak.turn(n) FROM generate_series(401, 420) AS n)
           AND NOT EXISTS (SELECT FROM soak.edges AS s WHERE s.state = {state}
                           AND (s.parent_turn_id, s.child_turn_id, s.edge_type) = (e.parent_turn_id, e.child_turn_id, \
                           e.edge_type));
         DELETE FROM public.memory_turns{graph} AS t
         WHERE session_id <> 'extra' AND NOT EXISTS (SELECT FROM soak.turns AS s WHERE s.state = {state} \
         AND s.id = t.id);
         UPDATE public.memory_turns{graph} AS t SET ({values}) = ROW ({new})
           FROM soak.turns AS s WHERE s.state = {state} AND s.id = t.id AND ({new}) IS DISTINCT FROM ({old});
         INSERT INTO public.memory_turns{graph} ({COLUMNS}) SELECT {COLUMNS} FROM soak.turns AS s
         WHERE state = {state} AND NOT EXISTS (SELECT FROM public.memory_turns{graph} AS t WHERE t.id = s.id);
         INSERT INTO public.memory_turn_edges{graph}
         SELECT parent_turn_id, child_turn_id, edge_type FROM soak.edges WHERE state = {state} ON CONFLICT DO NOTHING"
    )
}

/// A connection that moves graphs.
pub struct Writer {
    client: Client,
    /// The rows of each state as COPY writes them: turns and edges.
    rows: Vec<[Vec<u8>; 2]>,
    random: fastrand::Rng,
}

impl Writer {
    pub fn new(mut client: Client, seed: u64) -> Self {
        let mut copy_out = |query: String| {
            let mut rows = Vec::new();
            let mut reader = client.copy_out(&format!("COPY ({query}) TO STDOUT")).unwrap();
            reader.read_to_end(&mut rows).unwrap();
            rows
        };
        let rows = (0..STATES)
            .map(|state| {
                [
                    copy_out(format!("SELECT {COLUMNS} FROM soak.turns WHERE state = {state}")),
                    copy_out(format!(
                        "SELECT parent_turn_id, child_turn_id, edge_type FROM soak.edges WHERE state = {state}"
                    )),
                ]
            })
            .collect();
        Writer { client, rows, random: fastrand::Rng::with_seed(seed) }
    }

    /// Moves the graph with this ending to another state, or tries and goes back.
    pub fn advance(&mut self, graph: &str) {
        let mut transaction = self.client.transaction().unwrap();
        // Both at once, and by name: the names may be given to other tables meanwhile.
        transaction
            .batch_execute(&format!(
                "LOCK TABLE public.memory_turns{graph}, public.memory_turn_edges{graph} IN ROW EXCLUSIVE MODE;
                 SELECT FROM soak.position WHERE turns = 'public.memory_turns{graph}'::regclass FOR UPDATE"
            ))
            .unwrap();
        let states = &mut || self.random.i32(0..STATES);
        let (target, other) = (states(), states());
        let [method, circumstance] = [self.random.u8(..), self.random.u8(..)];
        match circumstance % 5 {
            0 => {
                transaction.batch_execute("SAVEPOINT before").unwrap();
                move_rows(&mut transaction, &self.rows, graph, other, method / 3);
                transaction.batch_execute("ROLLBACK TO SAVEPOINT before").unwrap();
                move_rows(&mut transaction, &self.rows, graph, target, method);
                transaction.batch_execute("RELEASE SAVEPOINT before").unwrap();
            }
            1 => {
                transaction.batch_execute("SAVEPOINT before").unwrap();
                move_rows(&mut transaction, &self.rows, graph, other, method / 3);
                transaction.batch_execute("RELEASE SAVEPOINT before").unwrap();
                move_rows(&mut transaction, &self.rows, graph, target, method);
            }
            2 => {
                move_rows(&mut transaction, &self.rows, graph, other, method);
                if method < 128 {
                    transaction.batch_execute(&delete(graph)).unwrap();
                }
                transaction.rollback().unwrap();
                return;
            }
            _ => move_rows(&mut transaction, &self.rows, graph, target, method),
        }
        transaction.batch_execute(&set_position(graph, target)).unwrap();
        transaction.commit().unwrap();
    }

    /// A random pause of at most so many milliseconds.
    pub fn pause(&mut self, most: u64) {
        std::thread::sleep(std::time::Duration::from_millis(self.random.u64(..=most)));
    }
}

fn move_rows(
    transaction: &mut Transaction<'_>,
    rows: &[[Vec<u8>; 2]],
    graph: &str,
    state: i32,
    method: u8,
) {
    match method % 3 {
        0 => transaction.batch_execute(&replace(graph, state)).unwrap(),
        1 => transaction.batch_execute(&update(graph, state)).unwrap(),
        _ => {
            transaction.batch_execute(&delete(graph)).unwrap();
            let [turns, edges] = &rows[state as usize];
            let tables = [
                (format!("public.memory_turns{graph} ({COLUMNS})"), turns),
                (
                    format!(
                        "public.memory_turn_edges{graph} (parent_turn_id, child_turn_id, edge_type)"
                    ),
                    edges,
                ),
            ];
            for (table, rows) in tables {
                let mut copy = transaction.copy_in(&format!("COPY {table} FROM STDIN")).unwrap();
                copy.write_all(rows).unwrap();
                copy.finish().unwrap();
            }
        }
    }
}

/// The id of a turn.
pub fn id(client: &mut Client, turn: i32) -> String {
    text(client, &format!("SELECT soak.turn({turn})::text"))
}
