//! The works that are measured.

use std::cell::RefCell;
use std::fs::read_to_string;
use std::sync::Arc;
use std::time::{Duration, Instant};

use graph_kernel_tests::data::Graph;
use postgres::{Client, NoTls, Statement};
use uuid::Uuid;

use crate::connections;
use crate::graphs;
use crate::peer;
use crate::report::{Goal, Report};
use crate::sample::{Contestant, Times, anchors, race};
use crate::tables::{Ids, Result, connect, load, load_as_messages, load_for_peer};

/// How much is measured.
pub struct Size {
    /// Turns of the generated graphs.
    pub turns: usize,
    /// Anchors of each graph.
    pub anchors: usize,
    /// Times that each anchor is sliced, the first not counted.
    pub rounds: usize,
    /// Turns of the largest graph of the growth.
    pub largest: usize,
    /// Children of the hub.
    pub hub: usize,
    /// The server's shared_buffers.
    pub buffers: &'static str,
}

impl Size {
    pub fn full(largest: usize) -> Self {
        Size { turns: 100_000, anchors: 200, rounds: 3, largest, hub: 1_000_000, buffers: "2GB" }
    }
}

/// A statement with the anchor as its parameter; every row is fetched.
fn statement<'a>(
    client: &'a RefCell<Client>,
    name: &'static str,
    sql: &str,
) -> Result<Contestant<'a>> {
    let statement = client.borrow_mut().prepare(sql)?;
    Ok(Contestant::new(name, move |anchor| {
        client.borrow_mut().query(&statement, &[&anchor])?;
        Ok(())
    }))
}

/// S1 to S4: one slice, on five graphs.
pub fn graphs(size: &Size, report: &mut Report) -> Result<()> {
    let recorded = graphs::recorded_sessions();
    let sessions = match &recorded {
        Some(graph) if size.turns >= 100_000 => graph.clone(),
        _ => graphs::sessions(size.turns),
    };
    let origin = if recorded.is_some() && size.turns >= 100_000 { "recorded" } else { "generated" };
    report.note(format!("sessions: {origin}, {} turns", sessions.turns.len()));
    one_slice("sessions", &sessions, size, report)?;
    one_slice("dense", &graphs::dense(size.turns), size, report)?;
    one_slice("commits", &graphs::commits(size.turns), size, report)?;
    one_slice("history", &graphs::history(size.turns / 4), size, report)?;
    one_slice("chat", &graphs::chat(size.turns * 44 / 100), size, report)
}

fn one_slice(name: &'static str, graph: &Graph, size: &Size, report: &mut Report) -> Result<()> {
    let runtime = Arc::new(tokio::runtime::Builder::new_current_thread().enable_all().build()?);
    let mut client = load(name, graph)?;
    let peer_name = format!("{name}_peer");
    load_for_peer(&peer_name, graph)?;
    client.batch_execute(include_str!("../sql/radius_ball.sql"))?;
    client.batch_execute(include_str!("../sql/plpgsql_slice.sql"))?;
    let ids: Vec<Uuid> = graph.turns.iter().map(|turn| turn.id).collect();
    let anchors = anchors(&ids, size.anchors);
    let turns = slice_sizes(&mut client, &anchors)?;
    report.note(format!(
        "{name}: {} turns, {} edges; slices have {} turns in the median, {} at most",
        graph.turns.len(),
        graph.edges.len(),
        turns[turns.len() / 2],
        turns[turns.len() - 1]
    ));
    report.note(agreement(name, &mut client, &anchors)?);

    let in_memory = peer::in_memory(graph, &runtime)?;
    let in_postgres = peer::in_postgres(&peer_name, &runtime)?;
    let floor = Floor::new(&mut client, &anchors)?;
    let client = RefCell::new(client);
    let times = race(
        &mut [
            statement(&client, "graph_slice", "SELECT graph_slice($1)::text")?,
            statement(&client, "graph_slice_turns", "SELECT * FROM graph_slice_turns($1)")?,
            floor.contestant(&client),
            Contestant::new("crate in memory", |anchor| in_memory.slice(anchor).map(drop)),
            statement(&client, "PL/pgSQL", "SELECT * FROM plpgsql_slice($1)")?,
            statement(&client, "recursive CTE", "SELECT * FROM radius_ball($1)")?,
        ],
        &anchors,
        size.rounds,
    )?;
    let [slice, rows, _, memory, plpgsql, ball] = &times[..] else { unreachable!() };
    // By itself: its thousand statements would leave the others cold caches.
    let over_postgres = race(
        &mut [
            statement(&client, "graph_slice", "SELECT graph_slice($1)::text")?,
            Contestant::new("crate over PostgreSQL", |anchor| in_postgres.slice(anchor).map(drop)),
        ],
        &anchors,
        size.rounds,
    )?;
    let [beside, store] = &over_postgres[..] else { unreachable!() };
    let (peer_goal, store_goal) = match name {
        "sessions" => (Goal::at_most(0.4, 0.3), Goal::at_least(8.0, 20.0)),
        "dense" | "commits" => (Goal::at_most(0.6, 0.5), Goal::at_least(20.0, 40.0)),
        _ => (Goal::at_most(1.0, 0.5), Goal::at_least(8.0, 20.0)),
    };
    let row = if name == "sessions" { "S1" } else { "S2" };
    report.compare(row, name, slice, memory, peer_goal);
    report.compare("S3", name, beside, store, store_goal);
    report.compare("S4", name, slice, plpgsql, Goal::at_least(5.0, 5.0));
    report.compare("S4", name, rows, ball, Goal::at_most(1.0, 1.0));
    report.times(name, &[&times[..], &over_postgres[1..]].concat());
    Ok(())
}

/// S10: SlicePolicy v2 beside v1 and, with a budget of tokens, beside a recursive CTE that climbs to the beginning.
pub fn policy_v2(size: &Size, report: &mut Report) -> Result<()> {
    let mut client = connect("sessions")?;
    client.batch_execute(include_str!("../sql/climb.sql"))?;
    // The generated sessions have no texts.
    client.batch_execute(
        "UPDATE memory_turns SET content_text = repeat('word ', 10 + (salience_score * 100)::int)
         WHERE content_text IS NULL",
    )?;
    client.batch_execute("VACUUM ANALYZE memory_turns")?;
    let ids = client.query("SELECT id FROM memory_turns ORDER BY id", &[])?;
    let ids: Vec<Uuid> = ids.iter().map(|row| row.get(0)).collect();
    let anchors = anchors(&ids, size.anchors);
    client.batch_execute(include_str!("../sql/recall.sql"))?;
    client.execute(
        "INSERT INTO recall (anchor, policy)
         SELECT a, jsonb_build_object('preset', 'recall', 'max_tokens', 4000, 'seeds', jsonb_object_agg(id, 0.5))
           FROM unnest($1::uuid[]) AS a,
                LATERAL (SELECT t.id FROM memory_turns AS t ORDER BY md5(a::text || t.id::text) LIMIT 128) AS t
          GROUP BY a",
        &[&anchors],
    )?;
    client.batch_execute(
        "UPDATE recall AS r SET turns = ARRAY(
             SELECT turn_id FROM graph_slice_turns(r.anchor, r.policy::slice_policy)); ANALYZE recall",
    )?;
    let client = RefCell::new(client);
    let times = race(
        &mut [
            statement(&client, "v1", "SELECT graph_slice($1)::text")?,
            statement(
                &client,
                "v2 at its defaults",
                r#"SELECT graph_slice($1, '{"version": "slice_policy_v2"}')::text"#,
            )?,
            statement(
                &client,
                "graph_slice_turns, lineage of 4000 tokens",
                r#"SELECT * FROM graph_slice_turns($1, '{"preset": "lineage", "max_tokens": 4000}')"#,
            )?,
            statement(&client, "recursive CTE", "SELECT * FROM climb($1, 4000)")?,
            statement(
                &client,
                "chat of 4000 tokens",
                r#"SELECT graph_slice($1, '{"preset": "chat", "max_tokens": 4000}')::text"#,
            )?,
            statement(
                &client,
                "the same without a cut",
                r#"SELECT graph_slice($1, '{"preset": "chat", "max_tokens": 4000, "cut_share": 0,
                                           "cut_to_user": false}')::text"#,
            )?,
            statement(
                &client,
                "recall, 128 seeds, 4000 tokens",
                "SELECT s.* FROM recall AS r, LATERAL graph_slice_turns(r.anchor, r.policy::slice_policy) AS s
                  WHERE r.anchor = $1",
            )?,
            statement(&client, "its turns with parents and children", "SELECT * FROM around($1)")?,
        ],
        &anchors,
        size.rounds,
    )?;
    report.compare("S10", "sessions", &times[1], &times[0], Goal::at_most(1.05, 1.05));
    report.compare("S10", "sessions", &times[2], &times[3], Goal::at_most(1.5, 1.5));
    report.compare("S10", "sessions", &times[4], &times[5], Goal::at_most(1.3, 1.3));
    report.compare("S10", "sessions", &times[6], &times[7], Goal::at_most(2.5, 2.5));
    report.times("policy v2", &times);
    Ok(())
}

/// S9: the same graph in the created tables and in tables as applications have them.
pub fn bindings(size: &Size, report: &mut Report) -> Result<()> {
    let sessions = graphs::recorded_sessions().filter(|_| size.turns >= 100_000);
    let sessions = sessions.unwrap_or_else(|| graphs::sessions(size.turns));
    bound("bound sessions", &sessions, size, report)?;
    bound("bound commits", &graphs::commits(size.turns), size, report)
}

fn bound(name: &'static str, graph: &Graph, size: &Size, report: &mut Report) -> Result<()> {
    let graph = graphs::two_parents(graph);
    let plain = RefCell::new(load("bound_plain", &graph)?);
    let parents = RefCell::new(load_as_messages("bound_parents", &graph, Ids::Uuid)?);
    let expressions = RefCell::new(load_as_messages("bound_expressions", &graph, Ids::Text)?);
    let ids: Vec<Uuid> = graph.turns.iter().map(|turn| turn.id).collect();
    let anchors = anchors(&ids, size.anchors);
    let mut slices = Vec::new();
    for client in [&plain, &parents, &expressions] {
        let sql = "SELECT array_agg(s::text ORDER BY s.anchor_turn_id, s.ord)
                     FROM unnest($1::uuid[]) AS a,
                          LATERAL (SELECT a AS anchor_turn_id, turn_id, ordinality AS ord, distance, phase, salience
                                     FROM graph_slice_turns(a) WITH ORDINALITY) AS s";
        slices.push(client.borrow_mut().query_one(sql, &[&anchors])?.get::<_, Vec<String>>(0));
    }
    if slices.iter().any(|slice| *slice != slices[0]) {
        return Err(format!("{name}: the bindings give different slices").into());
    }
    report.note(format!(
        "{name}: {} edges; all three bindings select the same turns",
        graph.edges.len()
    ));
    let slice = "SELECT graph_slice($1)::text";
    let times = race(
        &mut [
            statement(&plain, "created tables", slice)?,
            statement(&parents, "parent columns, uuid ids", slice)?,
            statement(&expressions, "text ids, expressions", slice)?,
        ],
        &anchors,
        size.rounds,
    )?;
    report.compare("S9", name, &times[1], &times[0], Goal::at_most(1.2, 1.2));
    report.compare("S9", name, &times[2], &times[0], Goal::at_most(2.0, 2.0));
    report.times(name, &times);
    Ok(())
}

/// The number of turns of each slice, ascending.
fn slice_sizes(client: &mut Client, anchors: &[Uuid]) -> Result<Vec<i64>> {
    let rows = client.query(
        "SELECT n FROM unnest($1::uuid[]) AS a, LATERAL (SELECT count(*) AS n FROM graph_slice_turns(a)) AS s
         ORDER BY n",
        &[&anchors],
    )?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Whether the PL/pgSQL function selects what the extension does.
fn agreement(name: &str, client: &mut Client, anchors: &[Uuid]) -> Result<String> {
    let row = client.query_one(
        "SELECT count(*) FILTER (WHERE ARRAY(SELECT turn_id FROM graph_slice_turns(a))
                                     = ARRAY(SELECT p FROM plpgsql_slice(a) AS p ORDER BY p))
           FROM unnest($1::uuid[]) AS a",
        &[&anchors],
    )?;
    let same: i64 = row.get(0);
    Ok(format!(
        "{name}: the PL/pgSQL function selects the same turns at {same} of {} anchors",
        anchors.len()
    ))
}

/// The least that any slicer over these tables has to read: the edges of each selected turn, both
/// ways, and its row.
struct Floor {
    statement: Statement,
    slices: Vec<(Uuid, Vec<Uuid>)>,
}

impl Floor {
    fn new(client: &mut Client, anchors: &[Uuid]) -> Result<Self> {
        let statement = client.prepare(
            "SELECT count(e), count(t.created_at)
               FROM unnest($1::uuid[]) AS k(id)
               CROSS JOIN LATERAL (
                   SELECT parent_turn_id FROM memory_turn_edges WHERE child_turn_id = k.id
                   UNION ALL
                   SELECT child_turn_id FROM memory_turn_edges WHERE parent_turn_id = k.id) AS e
               JOIN memory_turns AS t ON t.id = k.id",
        )?;
        let mut slices = Vec::new();
        for anchor in anchors {
            let rows = client.query("SELECT turn_id FROM graph_slice_turns($1)", &[anchor])?;
            slices.push((*anchor, rows.iter().map(|row| row.get(0)).collect()));
        }
        slices.sort_unstable();
        Ok(Floor { statement, slices })
    }

    fn contestant<'a>(&'a self, client: &'a RefCell<Client>) -> Contestant<'a> {
        Contestant::new("index probes alone", move |anchor| self.probe(client, anchor))
    }

    fn probe(&self, client: &RefCell<Client>, anchor: Uuid) -> Result<()> {
        let at = self.slices.binary_search_by_key(&anchor, |(id, _)| *id);
        let (_, ids) = &self.slices[at.map_err(|_| "no such anchor")?];
        client.borrow_mut().query(&self.statement, &[ids])?;
        Ok(())
    }
}

/// S7: a thousand slices in one call.
pub fn batch(size: &Size, report: &mut Report) -> Result<()> {
    let mut client = connect("sessions")?;
    let ids: Vec<Uuid> = client
        .query("SELECT id FROM memory_turns ORDER BY id", &[])?
        .iter()
        .map(|row| row.get(0))
        .collect();
    let many = anchors(&ids, 5 * size.anchors);
    client.batch_execute(
        "CREATE OR REPLACE FUNCTION slice_one_by_one(anchors uuid[]) RETURNS bigint LANGUAGE plpgsql AS $$
         DECLARE a uuid; total bigint := 0;
         BEGIN
             FOREACH a IN ARRAY anchors LOOP total := total + octet_length(graph_slice(a)::text); END LOOP;
             RETURN total;
         END $$",
    )?;
    let client = RefCell::new(client);
    let whole = |name, sql: &'static str| {
        let (client, many) = (&client, &many);
        Contestant::new(name, move |_| {
            client.borrow_mut().query(sql, &[many])?;
            Ok(())
        })
    };
    let times = race(
        &mut [
            whole("graph_slices", "SELECT sum(octet_length(slice::text)) FROM graph_slices($1)"),
            whole("loop of graph_slice", "SELECT slice_one_by_one($1)"),
        ],
        &[Uuid::nil()],
        10 * size.rounds,
    )?;
    report.compare("S7", "sessions", &times[0], &times[1], Goal::at_most(0.8, 0.8));
    report.times("a thousand slices", &times);
    Ok(())
}

/// S8: ranking inside the slice by pgvector.
pub fn vectors(size: &Size, report: &mut Report) -> Result<()> {
    let mut client = connect("dense")?;
    let available: i64 = client
        .query_one("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'", &[])?
        .get(0);
    if available == 0 {
        report.note("S8: not measured, pgvector is not installed (make pgvector)".to_owned());
        return Ok(());
    }
    client.batch_execute(
        "CREATE EXTENSION vector;
         CREATE TABLE embeddings (id uuid PRIMARY KEY, embedding vector(384) NOT NULL);
         ALTER TABLE embeddings ALTER embedding SET STORAGE PLAIN;
         INSERT INTO embeddings
             SELECT t.id, array_agg(random() - 0.5)::vector
             FROM (SELECT id FROM memory_turns ORDER BY created_at LIMIT 20000) AS t
             CROSS JOIN generate_series(1, 384)
             GROUP BY t.id",
    )?;
    client.batch_execute("VACUUM ANALYZE embeddings")?;
    let ids: Vec<Uuid> = client
        .query("SELECT id FROM memory_turns ORDER BY created_at LIMIT 19000", &[])?
        .iter()
        .map(|row| row.get(0))
        .collect();
    let anchors = anchors(&ids, size.anchors);
    let floor = Floor::new(&mut client, &anchors)?;
    let question: String = client
        .query_one(
            "SELECT (array_agg(random() - 0.5)::vector)::text FROM generate_series(1, 384)",
            &[],
        )?
        .get(0);
    let by_ids = client.prepare(&format!(
        "SELECT id FROM embeddings WHERE id = ANY ($1) ORDER BY embedding <=> '{question}' LIMIT 10"
    ))?;
    let client = RefCell::new(client);
    let times = race(
        &mut [
            statement(
                &client,
                "slice joined to ranking",
                &format!(
                    "SELECT e.id FROM graph_slice_turns($1) AS s JOIN embeddings AS e ON e.id = s.turn_id
                     ORDER BY e.embedding <=> '{question}' LIMIT 10"
                ),
            )?,
            statement(&client, "graph_slice_turns", "SELECT * FROM graph_slice_turns($1)")?,
            Contestant::new("ranking by id = ANY", |anchor| {
                let at = floor.slices.binary_search_by_key(&anchor, |(id, _)| *id);
                let (_, ids) = &floor.slices[at.map_err(|_| "no such anchor")?];
                client.borrow_mut().query(&by_ids, &[ids])?;
                Ok(())
            }),
        ],
        &anchors,
        size.rounds,
    )?;
    let bound = times[1].median_ms() + 1.2 * times[2].median_ms();
    report.value(
        "S8",
        "dense",
        "slice joined to a ranking of its turns, against the slice + 1.2 × the ranking",
        times[0].median_ms() / bound,
        Goal::at_most(1.0, 1.0),
    );
    report.times("ranking in a slice", &times);
    Ok(())
}

/// Who slices the graphs of the growth, by the graph's place among the sizes.
const GROWTH: [(&str, [&str; 3]); 4] = [
    ("graph_slice", ["graph_slice, smallest graph", "ten times larger", "a hundred times larger"]),
    (
        "index probes alone",
        [
            "index probes, smallest graph",
            "probes, ten times larger",
            "probes, a hundred times larger",
        ],
    ),
    (
        "recursive CTE",
        ["recursive CTE, smallest graph", "CTE, ten times larger", "CTE, a hundred times larger"],
    ),
    (
        "crate in memory",
        ["crate, smallest graph", "crate, ten times larger", "crate, a hundred times larger"],
    ),
];
/// Turns of the largest graph of which the crate holds a copy.
const MAX_TURNS_OF_CRATE: usize = 1_000_000;

/// S5: the same slices in ever larger graphs.
pub fn growth(size: &Size, report: &mut Report) -> Result<()> {
    let mut sizes = vec![size.largest];
    while sizes[0] / 10 >= size.turns {
        sizes.insert(0, sizes[0] / 10);
    }
    let runtime = Arc::new(tokio::runtime::Builder::new_current_thread().enable_all().build()?);
    let mut graphs = Vec::new();
    for turns in &sizes {
        let graph = graphs::sessions(*turns);
        let mut client = load("growth", &graph)?;
        let name = format!("growth_{turns}");
        drop(client);
        let mut server = connect("postgres")?;
        server.batch_execute(&format!("DROP DATABASE IF EXISTS {name}; "))?;
        server.batch_execute(&format!("ALTER DATABASE growth RENAME TO {name}"))?;
        client = connect(&name)?;
        client.batch_execute(include_str!("../sql/radius_ball.sql"))?;
        let ids: Vec<Uuid> = graph.turns.iter().map(|turn| turn.id).collect();
        let anchors = anchors(&ids, size.anchors);
        let floor = Floor::new(&mut client, &anchors)?;
        let slice = client.prepare("SELECT graph_slice($1)::text")?;
        let ball = client.prepare("SELECT * FROM radius_ball($1)")?;
        let copied = *turns <= MAX_TURNS_OF_CRATE;
        let in_memory = copied.then(|| peer::in_memory(&graph, &runtime)).transpose()?;
        graphs.push((RefCell::new(client), slice, floor, ball, in_memory, anchors));
    }
    // Each graph has anchors of its own: the race hands out their positions.
    let positions: Vec<Uuid> = (0..size.anchors as u128).map(Uuid::from_u128).collect();
    let at =
        |anchors: &[Uuid], position: Uuid| anchors[position.as_u128() as usize % anchors.len()];
    let mut contestants = Vec::new();
    for ((_, names), kind) in GROWTH.iter().zip(0..) {
        for ((client, slice, floor, ball, in_memory, anchors), name) in graphs.iter().zip(names) {
            contestants.push(match (kind, in_memory) {
                (0 | 2, _) => Contestant::new(name, move |position| {
                    let statement = if kind == 0 { slice } else { ball };
                    client.borrow_mut().query(statement, &[&at(anchors, position)])?;
                    Ok(())
                }),
                (1, _) => Contestant::new(name, move |position| {
                    floor.probe(client, at(anchors, position))
                }),
                (_, Some(peer)) => Contestant::new(name, move |position| {
                    peer.slice(at(anchors, position)).map(drop)
                }),
                (_, None) => continue,
            });
        }
    }
    let times = race(&mut contestants, &positions, size.rounds)?;
    let curves: Vec<(&str, &[Times])> =
        GROWTH.iter().map(|(kind, _)| *kind).zip(times.chunks(sizes.len())).collect();
    for ((_, times), goal) in
        curves.iter().zip([Goal::at_most(1.3, 1.1), Goal::none(), Goal::none(), Goal::none()])
    {
        for (pair, turns) in times.windows(2).zip(sizes.windows(2)) {
            let name = if turns[1] >= 10_000_000 { "to 10 000 000" } else { "to 1 000 000" };
            report.compare("S5", name, &pair[1], &pair[0], goal);
        }
    }
    report.curves("growth", &sizes, &curves);
    Ok(())
}

/// S13: cold data. The server has buffers for a small part of the largest graph of the growth, and where that is
/// allowed the system's cache of files is dropped: by root. Each anchor is asked for once, and each way to ask has
/// anchors of its own, as pages that one reads would be warm for the others.
pub fn cold(size: &Size, report: &mut Report) -> Result<()> {
    let database = format!("growth_{}", size.largest);
    let mut client = connect(&database)?;
    let ids = client
        .query("SELECT id FROM memory_turns TABLESAMPLE BERNOULLI (5) REPEATABLE (1)", &[])?;
    let ids: Vec<Uuid> = ids.iter().map(|row| row.get(0)).collect();
    drop(client);
    let anchors = anchors(&ids, 2 * size.anchors);
    connections::restart("SET shared_buffers = '16MB'")?;
    let dropped = std::process::Command::new("sync").status().is_ok()
        && std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
    report.note(format!(
        "cold: {} turns, shared_buffers 16MB, the system's cache of files {}",
        size.largest,
        if dropped { "dropped" } else { "warm, as only root may drop it" }
    ));
    let mut client = connect(&database)?;
    let mut times = ["graph_slice_turns, cold", "recursive CTE, cold"].map(Times::new);
    times.iter_mut().for_each(Times::begin_round);
    for statement in ["graph_slice_turns", "radius_ball"] {
        // The catalogs, the plan and the upper pages of the indexes.
        client.query(&format!("SELECT * FROM {statement}($1)"), &[&ids[0]])?;
    }
    for (place, anchor) in anchors.iter().enumerate() {
        let statement = ["graph_slice_turns", "radius_ball"][place % 2];
        let start = Instant::now();
        client.query(&format!("SELECT * FROM {statement}($1)"), &[anchor])?;
        times[place % 2].push(start.elapsed());
    }
    drop(client);
    report.compare("S13", "cold", &times[0], &times[1], Goal::none());
    report.times("cold data", &times);
    connections::restart(&format!("SET shared_buffers = '{}'", size.buffers))
}

/// S6: a turn with very many children.
pub fn hub(size: &Size, report: &mut Report) -> Result<()> {
    let graph = graphs::hub(size.hub);
    let anchor = graph.turns[0].id;
    let mut client = load("hub", &graph)?;
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    client.query("SELECT graph_slice($1)::text", &[&graph.turns[1].id])?;
    let before = anonymous_kib(pid)?;
    let client = RefCell::new(client);
    let times = race(
        &mut [
            statement(&client, "graph_slice", "SELECT graph_slice($1)::text")?,
            statement(
                &client,
                "one range scan, each child looked up",
                "SELECT count(t.salience_score) FROM memory_turn_edges AS e
                   JOIN LATERAL (SELECT * FROM memory_turns AS t WHERE t.id = e.child_turn_id OFFSET 0) AS t ON true
                  WHERE e.parent_turn_id = $1",
            )?,
        ],
        &[anchor],
        size.rounds,
    )?;
    let growth = anonymous_kib(pid)?.saturating_sub(before) as f64 / 1024.0;
    report.value(
        "S6",
        "hub",
        "growth of the backend's own memory, MiB",
        growth,
        Goal::at_most(64.0, 64.0),
    );
    report.compare("S6", "hub", &times[0], &times[1], Goal::none());
    let late = cancel_p99(anchor, (times[0].median_ms() / 2.0) as u64, 20 * size.anchors.min(5))?;
    report.value(
        "S6",
        "hub",
        "99th percentile of 100 cancels, ms",
        late,
        Goal::at_most(50.0, 50.0),
    );
    report.times("hub", &times);
    Ok(())
}

fn anonymous_kib(pid: i32) -> Result<u64> {
    let status = read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).ok_or("no RssAnon")?;
    Ok(line.split_whitespace().nth(1).ok_or("no RssAnon")?.parse()?)
}

/// How long a slice of the hub goes on after it was cancelled, in milliseconds.
fn cancel_p99(anchor: Uuid, longest_wait: u64, times: usize) -> Result<f64> {
    let mut random = fastrand::Rng::with_seed(8);
    let mut late = Vec::new();
    for _ in 0..times {
        let mut client = connect("hub")?;
        client.query("SELECT 1", &[])?;
        let token = client.cancel_token();
        let wait = Duration::from_millis(random.u64(1..=longest_wait.max(1)));
        let canceller = std::thread::spawn(move || {
            std::thread::sleep(wait);
            let sent = Instant::now();
            token.cancel_query(NoTls).map(|()| sent)
        });
        let answer = client.query("SELECT graph_slice($1)::text", &[&anchor]);
        let end = Instant::now();
        let sent = canceller.join().map_err(|_| "the canceller panicked")??;
        if answer.is_err() {
            late.push(end.duration_since(sent));
        }
    }
    late.sort_unstable();
    let at = (late.len() * 99 / 100).min(late.len().saturating_sub(1));
    Ok(late.get(at).ok_or("no slice was cancelled")?.as_secs_f64() * 1e3)
}
