//! Many slices of real conversations: in seconds, and what SQL makes of the slices one by one.

use std::time::Instant;

use crate::common::database::{Database, load_graph};
use crate::common::tell;
use graph_kernel_tests::shared::shared_or_skip;
use postgres::Client;

const ANCHORS: &str = "
    CREATE TABLE public.anchors AS
    SELECT array_agg(id) AS ids FROM (
        SELECT id FROM public.memory_turns ORDER BY md5(id::text) LIMIT 1000
    ) AS a";

/// The slices one by one, a row a turn.
const MEMBERS: &str = "
    CREATE TABLE public.members AS
    WITH slices AS MATERIALIZED (
        SELECT s.slice ->> 'slice_id' AS slice_id, s.anchor_turn_id, s.slice -> 'turns' AS turns
        FROM public.anchors, graph_slices(ids) AS s
    )
    SELECT s.slice_id, (m ->> 'id')::uuid AS turn_id,
           max(m ->> 'phase') FILTER (WHERE m ->> 'id' = s.anchor_turn_id::text)
               OVER (PARTITION BY s.slice_id) AS anchor_phase
    FROM slices AS s, json_array_elements(s.turns) AS m;
    CREATE TABLE public.sizes AS
    SELECT slice_id, count(*)::int AS turns FROM public.members GROUP BY slice_id;
    ANALYZE public.members, public.sizes";

/// Rows that only one of two queries gives.
fn difference(client: &mut Client, a: &str, b: &str) -> i64 {
    let statement =
        format!("SELECT count(*) FROM (({a} EXCEPT ALL {b}) UNION ALL ({b} EXCEPT ALL {a})) AS d");
    client.query_one(&statement, &[]).unwrap().get(0)
}

/// Keeps what a function answers about the anchors in a table of its name.
fn keep(client: &mut Client, function: &str) {
    let statement = format!(
        "CREATE TABLE public.kept_{function} AS SELECT r.* FROM public.anchors, {function}(ids) AS r"
    );
    let start = Instant::now();
    client.batch_execute(&statement).unwrap();
    tell(&format!("{function} of 1000 anchors: {:.1?}", start.elapsed()));
}

#[test]
fn a_thousand_slices_of_real_data_are_compared_truly() {
    let Some(shared) = shared_or_skip("a thousand slices of real data") else { return };
    let database = Database::with_loose_tables("atlas");
    let mut client = database.connect();
    load_graph(&mut client, &shared.join("data/agent_sessions"));
    client.batch_execute(ANCHORS).unwrap();
    for function in ["graph_overlap", "graph_influence", "graph_atlas"] {
        keep(&mut client, function);
    }

    client.batch_execute(MEMBERS).unwrap();
    let overlaps = "
        SELECT s.a, s.b, s.shared, s.shared::real / (x.turns + y.turns - s.shared)::real
        FROM (SELECT a.slice_id AS a, b.slice_id AS b, count(*)::int AS shared
              FROM public.members AS a JOIN public.members AS b USING (turn_id)
              WHERE a.slice_id COLLATE \"C\" < b.slice_id
              GROUP BY 1, 2) AS s
        JOIN public.sizes AS x ON x.slice_id = s.a
        JOIN public.sizes AS y ON y.slice_id = s.b";
    assert_eq!(difference(&mut client, "SELECT * FROM public.kept_graph_overlap", overlaps), 0);
    let influences = "
        SELECT turn_id, count(*)::int, count(*)::real / 1000::real,
               count(DISTINCT anchor_phase) > 1,
               count(*) FILTER (WHERE anchor_phase = 'planning')::int
        FROM public.members GROUP BY turn_id";
    let answered = "
        SELECT turn_id, slice_count, slice_fraction, is_bridge, (phases ->> 'planning')::int
        FROM public.kept_graph_influence";
    assert_eq!(difference(&mut client, answered, influences), 0);
    let row = client
        .query_one(
            "SELECT (SELECT count(*) FROM public.kept_graph_overlap),
                    (SELECT count(*) FROM public.kept_graph_influence WHERE is_bridge),
                    a.r #>> '{stats,overlap_edge_count}', a.r #>> '{stats,bridge_turn_count}'
             FROM public.kept_graph_atlas AS a",
            &[],
        )
        .unwrap();
    let counted = [row.get::<_, i64>(0), row.get::<_, i64>(1)].map(|count| count.to_string());
    assert_eq!(counted, [row.get::<_, String>(2), row.get::<_, String>(3)]);
    assert_ne!(counted[0], "0");
}
