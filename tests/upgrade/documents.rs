//! What released versions have signed verifies, and is made again byte for byte: exports, proofs and records of
//! searches that each of them left in tests/upgrade/documents, and those that this version leaves here.

use std::fs;
use std::path::{Path, PathBuf};

use postgres::Client;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::common::variable;
use crate::graph::{install, reason, text};
use crate::released::released;
use crate::secret_file;

/// Slices whose exports are kept.
const SLICES: [&str; 4] = [
    "graph_slice('00000000-0000-4000-8000-000000000003')",
    "graph_slice('00000000-0000-4000-8000-000000000001', 'focused')",
    r#"graph_slice('00000000-0000-4000-8000-000000000004', '{"max_nodes": 3, "phase_weights": {"planning": 0.25}}')"#,
    r#"graph_slice('00000000-0000-4000-8000-000000000006', '{"version": "slice_policy_v2", "max_tokens": 9}')"#,
];

const SEARCH: &str = "SELECT provenance::text FROM graph_search_slice(ARRAY[0.5, 1]::real[], \
                      '00000000-0000-4000-8000-000000000003') LIMIT 1";

fn file(version: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("upgrade/documents");
    folder.join(format!("{version}.json"))
}

/// A cluster with these bytes as the root of its keys, and a graph.
fn graph_with_root(root: &[u8]) -> (Cluster, Client) {
    let cluster = Cluster::start("");
    secret_file::use_root(&cluster, root);
    let mut client = cluster.client();
    install(&mut client);
    client
        .batch_execute(
            "ALTER TABLE public.memory_turns ADD embedding real[];
             UPDATE public.memory_turns SET embedding = ARRAY[salience_score, 1]",
        )
        .unwrap();
    (cluster, client)
}

/// Writes what this version signs.
fn write(file: &Path) {
    let root = "the root of the keys that signed these documents";
    let (_cluster, mut client) = graph_with_root(root.as_bytes());
    let exports = SLICES.map(|slice| {
        let export = text(&mut client, &format!("SELECT {slice}::text"));
        let proof = format!("SELECT graph_proof('{export}')::text");
        json!({"slice": slice, "export": export, "proof": text(&mut client, &proof)})
    });
    let public_key = text(&mut client, "SELECT public_key FROM graph_kernel.proof_keys");
    let documents = json!({"root": root, "public_key": public_key, "exports": exports,
                           "provenance": text(&mut client, SEARCH)});
    let text = serde_json::to_string_pretty(&documents).unwrap() + "\n";
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// What is in the file verifies, and this version makes the same bytes.
fn check(file: &Path) {
    let name = file.display();
    let documents = fs::read_to_string(file).unwrap_or_else(|error| panic!("{name}: {error}"));
    let documents: Value = serde_json::from_str(&documents).unwrap();
    let part = |value: &Value, name: &str| value[name].as_str().unwrap().to_owned();
    let root = part(&documents, "root");
    let (_cluster, mut client) = graph_with_root(root.as_bytes());
    let public_key = part(&documents, "public_key");
    let exports = documents["exports"].as_array().unwrap();
    assert_eq!(exports.len(), SLICES.len());
    for export in exports {
        let (slice, export, proof) =
            (part(export, "slice"), part(export, "export"), part(export, "proof"));
        assert_eq!(reason(&mut client, &export), "ok", "{name}: {slice}");
        let again = text(&mut client, &format!("SELECT {slice}::text"));
        assert_eq!(again, export, "{name}: {slice}");
        let statement = "SELECT reason FROM graph_verify_proof($1::text::json, $2::text::json, $3)";
        let row = client.query_one(statement, &[&export, &proof, &public_key]).unwrap();
        assert_eq!(row.get::<_, &str>(0), "ok", "{name}: {slice}");
    }
    let provenance = part(&documents, "provenance");
    let statement = "SELECT graph_is_admissible_result($1::text::jsonb)";
    assert!(client.query_one(statement, &[&provenance]).unwrap().get::<_, bool>(0));
}

#[test]
fn what_a_released_version_has_signed_verifies() {
    for (version, _) in released() {
        let file = file(&version);
        // Only a version that is being released writes.
        if !file.exists() && std::env::var_os("GRAPH_KERNEL_BLESS").is_some() {
            write(&file);
        }
        check(&file);
    }
}

#[test]
fn what_this_version_signs_verifies_in_another_cluster() {
    let name = format!("documents.{}.json", std::process::id());
    let file = Path::new(&variable("GRAPH_KERNEL_SCRATCH")).join(name);
    write(&file);
    check(&file);
    fs::remove_file(&file).unwrap();
}
