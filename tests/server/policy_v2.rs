//! Slices of SlicePolicy v2 through the server: as an independent program computed them from its text, in created
//! tables and in those of applications.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::database::{Database, load_graph};
use crate::common::shape::{Ids, Shape};
use crate::common::small_graphs_v2::{Case, check, store, taken};
use graph_kernel_tests::data::read_json_lines;
use graph_kernel_tests::shared::shared_or_skip;
use graph_kernel_tests::vectors::{RecordedSliceV2, RecordedValues};
use kernel::graph::content::sha256_hex;
use kernel::graph::turn::TurnId;
use kernel::slicing::slice::Part;
use postgres::Client;

/// Its slice is the expected one, and many slices that are taken together are those that are taken one by one.
fn check_both_ways(case: &Case, client: &mut Client, what: &str) {
    check(case, client, what);
    let sql = "SELECT count(*), count(*) FILTER (WHERE slice::text IS NOT DISTINCT FROM one)
                 FROM (SELECT b.slice, CASE WHEN b.error IS NULL
                              THEN graph_slice(b.anchor_turn_id, $2::text::slice_policy)::text END AS one
                         FROM graph_slices(ARRAY(SELECT (t ->> 'id')::uuid \
                         FROM json_array_elements($1::text::json) AS t),
                                           $2::text::slice_policy) AS b) AS both_ways";
    let row = client.query_one(sql, &[&case.turns.to_string(), &case.policy.to_string()]).unwrap();
    let (all, same): (i64, i64) = (row.get(0), row.get(1));
    assert_eq!(all, same, "case {} {what}: slices taken together", case.case);
}

#[test]
fn small_graphs_are_sliced_as_the_text_asks() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/data/small-graphs-v2.jsonl.gz");
    let cases: Vec<Case> = read_json_lines(&file);
    assert_eq!(cases.len(), 800);
    let database = Database::with_loose_tables("policy_v2_small");
    let mut client = database.connect();
    for case in cases {
        client.batch_execute("TRUNCATE public.memory_turns, public.memory_turn_edges").unwrap();
        store(&case, &mut client);
        client.batch_execute("SELECT graph_kernel.unbind_tables()").unwrap();
        check_both_ways(&case, &mut client, "created tables");
        let shape = Shape::numbered(case.case);
        shape.bind(&mut client);
        check_both_ways(&case, &mut client, &format!("{shape:?}"));
    }
}

/// A copy of a turn of a case, which nobody sees.
const HIDDEN: &str = "ffffffff-ffff-4fff-bfff-ffffffffffff";

/// With row security, a turn that is hidden is as if it were not there: also as a pin, as a seed, and as the child of
/// every turn.
#[test]
fn hidden_turns_pins_and_seeds_are_as_if_they_were_not_there() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/data/small-graphs-v2.jsonl.gz");
    let cases: Vec<Case> = read_json_lines(&file);
    let database = Database::with_loose_tables("policy_v2_rls");
    let mut client = database.connect();
    client
        .batch_execute(&format!(
            "DO $$ BEGIN CREATE ROLE gk_test_v2_reader; EXCEPTION WHEN duplicate_object THEN END $$;
             GRANT SELECT ON public.memory_turns, public.memory_turn_edges TO gk_test_v2_reader;
             ALTER TABLE public.memory_turns ENABLE ROW LEVEL SECURITY;
             CREATE POLICY visible ON public.memory_turns TO gk_test_v2_reader USING (id <> '{HIDDEN}')"
        ))
        .unwrap();
    let is_chosen = |case: &Case| case.case.is_multiple_of(8) && case.expected.is_some();
    for mut case in cases.into_iter().filter(is_chosen) {
        client.batch_execute("TRUNCATE public.memory_turns, public.memory_turn_edges").unwrap();
        store(&case, &mut client);
        client
            .batch_execute(&format!(
                "INSERT INTO public.memory_turns (id, role, salience_score, created_at)
                     SELECT '{HIDDEN}', 'user', 1, max(created_at) FROM public.memory_turns;
                 INSERT INTO public.memory_turn_edges (parent_turn_id, child_turn_id, edge_type)
                     SELECT id, '{HIDDEN}', 'default' FROM public.memory_turns WHERE id <> '{HIDDEN}'"
            ))
            .unwrap();
        if let Some(pins) = case.policy["pins"].as_array_mut().filter(|pins| pins.len() < 64) {
            pins.insert(0, HIDDEN.into());
        }
        if let Some(seeds) = case.policy["seeds"].as_object_mut() {
            seeds.insert(HIDDEN.to_owned(), 1.into());
        }
        client.batch_execute("SET ROLE gk_test_v2_reader").unwrap();
        check_both_ways(&case, &mut client, "a turn is hidden");
        client.batch_execute("RESET ROLE").unwrap();
    }
}

#[test]
fn slices_of_shared_graphs_are_as_the_text_asks() {
    let test = "slices_of_shared_graphs_are_as_the_text_asks (server)";
    let Some(shared) = shared_or_skip(test) else { return };
    let slices: Vec<RecordedSliceV2> = read_json_lines(&shared.join("vectors/slices-v2.jsonl.gz"));
    assert_eq!(slices.len(), 1045);
    for name in ["agent_sessions", "oasst1"] {
        let database = Database::with_loose_tables(&format!("policy_v2_{name}"));
        let mut client = database.connect();
        load_graph(&mut client, &shared.join("data").join(name));
        for bound in [false, true] {
            if bound {
                let shape =
                    Shape { ids: Ids::Text, parents: true, expressions: true, partitions: false };
                shape.bind(&mut client);
                client.batch_execute("ANALYZE").unwrap();
            }
            for slice in slices.iter().filter(|slice| slice.data == name) {
                let taken = taken(&mut client, slice.anchor, &slice.policy).map(|taken| {
                    let sha256 = |ids: &[TurnId]| {
                        let ids: Vec<String> = ids.iter().map(TurnId::to_string).collect();
                        sha256_hex(ids.join("\n").as_bytes())
                    };
                    let expected = slice.expected.as_ref();
                    let mut parts: BTreeMap<String, usize> =
                        Part::ALL.iter().map(|part| (part.name().to_owned(), 0)).collect();
                    for part in taken.parts.values() {
                        *parts.entry(part.clone()).or_default() += 1;
                    }
                    RecordedValues {
                        policy_params_hash: taken.policy_params_hash,
                        turns: taken.turn_ids.len(),
                        edges: taken.edges.len(),
                        tokens: taken.tokens,
                        slice_id: taken.slice_id,
                        // An explanation has those that were recalled again once.
                        cut: expected.map_or(0, |expected| expected.cut.max(taken.cut.len())),
                        limited: expected.is_some_and(|expected| expected.limited),
                        selection_order_sha256: sha256(&taken.selection_order),
                        parts,
                        messages_sha256: sha256(&taken.messages),
                    }
                });
                let about =
                    format!("{} at {} of {name}, bound {bound}", slice.policy_name, slice.anchor);
                assert_eq!(taken, slice.expected, "{about}");
            }
        }
    }
}

/// A name over 4 KiB counts as its hash, wherever a turn is read.
#[test]
fn turns_of_a_session_with_a_long_name_are_of_one_session() {
    let database = Database::with_tables("v2_long_sessions");
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE FUNCTION turn(n int) RETURNS uuid LANGUAGE sql IMMUTABLE AS
                 $$ SELECT ('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid $$;
             INSERT INTO memory_turns (id, session_id) SELECT turn(n), repeat('s', 4097) FROM generate_series(0, \
             400) AS n;
             INSERT INTO memory_turn_edges SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(0, 199) AS n;
             INSERT INTO memory_turn_edges SELECT turn(200), turn(n), 'reply' FROM generate_series(201, 400) AS n",
        )
        .unwrap();
    let policy = r#"{"version": "slice_policy_v2", "max_radius": 1000, "max_nodes": 1000, "same_session": true}"#;
    for anchor in [0, 200] {
        let count = "SELECT count(*) FROM graph_slice_turns(turn($1), $2::text::slice_policy)";
        let count: i64 = client.query_one(count, &[&anchor, &policy]).unwrap().get(0);
        assert_eq!(count, 401, "from turn {anchor}");
    }
    let slices = "SELECT count(*) FROM graph_slices(ARRAY(SELECT id FROM memory_turns), $1::text::slice_policy)
                  WHERE json_array_length(slice -> 'turns') = 401";
    let whole: i64 = client.query_one(slices, &[&policy]).unwrap().get(0);
    assert_eq!(whole, 401);
}
