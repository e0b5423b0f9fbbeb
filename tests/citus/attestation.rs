//! What is read of tables that Citus reads is never attested, and what is read of others is as ever.

use std::sync::{Arc, Mutex};

use kernel::graph::turn::TurnId;
use postgres::Client;
use postgres::error::DbError;
use serde_json::Value;

use crate::cluster::{Cluster, LAYOUTS, data, load};
use crate::common::Server;
use crate::common::export::slice_text;

fn anchor(client: &mut Client) -> TurnId {
    client.query_one("SELECT id FROM memory_turns ORDER BY id LIMIT 1", &[]).unwrap().get(0)
}

/// The status and both tokens of an export.
fn claim(export: &str) -> (String, Value, Value) {
    let export: Value = serde_json::from_str(export).unwrap();
    let attestation = &export["attestation"];
    let status = attestation["status"].as_str().unwrap().to_owned();
    (status, export["admissibility_token"].clone(), attestation["token"].clone())
}

fn refusal(client: &mut Client, statement: &str) -> DbError {
    let error = client.batch_execute(statement).expect_err(statement);
    error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error}")).clone()
}

#[test]
fn what_citus_reads_is_never_attested() {
    let cluster = Cluster::new("citus_claims");
    let mut client = cluster.database.connect();
    load(&mut client, &data("hard"), &LAYOUTS);
    let at = anchor(&mut client);
    let (status, v2, v3) = claim(&slice_text(&mut client, at, "default"));
    assert_eq!(status, "attested");
    assert!(v2.is_string() && v3.is_string());
    client
        .batch_execute(
            "CREATE TABLE atoms (slice json, turns uuid[]);
             CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms FOR EACH ROW
                 EXECUTE FUNCTION graph_require_admissible('slice', 'turns')",
        )
        .unwrap();
    for layout in &LAYOUTS {
        let mut reading = cluster.reading(layout.name);
        let export = slice_text(&mut reading, at, "default");
        assert_eq!(claim(&export), ("distributed".to_owned(), Value::Null, Value::Null));
        let mut one = |statement: &str| -> String {
            reading.query_one(statement, &[&export]).unwrap().get(0)
        };
        assert_eq!(one("SELECT (graph_verify($1::text::json)).reason"), "distributed");
        let detail = "SELECT detail FROM graph_verify_explain($1::text::json) WHERE NOT ok";
        assert_eq!(
            one(detail),
            "the slice was read from several servers without a snapshot in common"
        );
        let record = format!("graph_messages_record('{at}')");
        let token = format!("SELECT coalesce({record} ->> 'token', 'none') || left($1, 0)");
        assert_eq!(one(&token), "none");
        let search = format!(
            "SELECT provenance::text FROM graph_search_slice('{{1, 2, 3}}', '{at}', limit_count => 1) WHERE $1 <> ''"
        );
        let search: Value = serde_json::from_str(&one(&search)).unwrap();
        assert_eq!((&search["mac"], &search["is_admissible"]), (&Value::Null, &Value::Bool(false)));
        for trusting in [
            format!("graph_messages_json({record})"),
            format!("graph_messages_show({record})"),
            format!("graph_diversity(graph_slice('{at}'))"),
            format!("graph_sufficiency(graph_slice('{at}'))"),
        ] {
            let error = refusal(&mut reading, &format!("SELECT {trusting}"));
            assert_eq!(error.detail(), Some("NOT_ADMISSIBLE: distributed"));
            assert!(error.hint().unwrap().contains("Citus"), "{error:?}");
        }
        let insert = format!("INSERT INTO atoms VALUES ('{export}', ARRAY['{at}'::uuid])");
        let error = refusal(&mut client, &insert);
        assert_eq!(error.code().code(), "23514");
        assert_eq!(error.detail(), Some("NOT_ADMISSIBLE: distributed"));
        assert!(error.hint().unwrap().contains("Citus"), "{error:?}");
    }
}

#[test]
fn a_notice_says_why_there_is_no_token() {
    let cluster = Cluster::new("citus_notice");
    let mut client = cluster.database.connect();
    load(&mut client, &data("hard"), &LAYOUTS[..1]);
    let at = anchor(&mut client);
    let noted: Arc<Mutex<Vec<DbError>>> = Arc::default();
    let notes = Arc::clone(&noted);
    let mut reading = Server::primary()
        .connect_noting(&cluster.database.name, move |notice| notes.lock().unwrap().push(notice));
    reading.batch_execute("SET graph_kernel.graph = 'by_id'; BEGIN").unwrap();
    noted.lock().unwrap().clear();
    slice_text(&mut reading, at, "default");
    slice_text(&mut reading, at, "default");
    let notices: Vec<_> =
        noted.lock().unwrap().iter().map(|notice| notice.detail().map(str::to_owned)).collect();
    assert_eq!(notices, [Some("DISTRIBUTED".to_owned())]);
}

/// The list of Citus is read when the tables are looked up, and a change of it is seen.
#[test]
fn tables_that_are_distributed_later_are_seen_so() {
    let cluster = Cluster::new("citus_later");
    let mut client = cluster.database.connect();
    load(&mut client, &data("hard"), &[]);
    let at = anchor(&mut client);
    let before = slice_text(&mut client, at, "default");
    assert_eq!(claim(&before).0, "attested");
    let mut other = cluster.database.connect();
    other.batch_execute("SELECT create_distributed_table('memory_turns', 'id')").unwrap();
    let after = slice_text(&mut client, at, "default");
    assert_eq!(claim(&after).0, "distributed");
    // What was attested before is so still.
    let reason: String = client
        .query_one("SELECT (graph_verify($1::text::json)).reason", &[&before])
        .unwrap()
        .get(0);
    assert_eq!(reason, "ok");
    other.batch_execute("SELECT undistribute_table('memory_turns')").unwrap();
    assert_eq!(claim(&slice_text(&mut client, at, "default")).0, "attested");
}

/// A policy of a table on the coordinator that reads one of Citus's makes Citus read both.
#[test]
fn a_policy_that_has_citus_read_the_table_is_refused() {
    let cluster = Cluster::new("citus_policy");
    let mut client = cluster.database.connect();
    load(&mut client, &data("hard"), &[]);
    let at = anchor(&mut client);
    client
        .batch_execute(
            "DROP ROLE IF EXISTS citus_reader;
             CREATE ROLE citus_reader;
             CREATE TABLE allowed (id uuid PRIMARY KEY);
             SELECT create_distributed_table('allowed', 'id');
             INSERT INTO allowed SELECT id FROM memory_turns;
             GRANT SELECT ON allowed, memory_turns, memory_turn_edges TO citus_reader;
             CREATE POLICY allowed ON memory_turns USING (id IN (SELECT id FROM public.allowed));
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
             SET ROLE citus_reader",
        )
        .unwrap();
    let error = refusal(&mut client, &format!("SELECT graph_slice('{at}')"));
    assert_eq!((error.code().code(), error.detail()), ("0A000", Some("GRAPH_TABLES")), "{error:?}");
    client.batch_execute("RESET ROLE; DROP OWNED BY citus_reader; DROP ROLE citus_reader").unwrap();
}
