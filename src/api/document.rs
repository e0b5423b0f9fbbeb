use pgrx::prelude::*;

use crate::pg::error::OrRaise;
use crate::pg::sql::types::JsonText;
use crate::pg::text::JsonArg;
use crate::service::{documents, published};

// Stable, so that no index is made of it: another version of zstd makes other bytes.
#[pg_extern(stable, parallel_safe, cost = 4000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_document_bytes(document: JsonArg) -> Vec<u8> {
    documents::packed(&document).or_raise()
}

#[pg_extern(immutable, parallel_safe, cost = 2000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_document_json(bytes: &[u8]) -> JsonText {
    JsonText(documents::unpacked(bytes).or_raise())
}

// Reads the graph where the document names turns by their ids alone.
#[pg_extern(stable, parallel_restricted, cost = 10000)]
#[search_path(pg_catalog, pg_temp)]
fn graph_export_from_published(document: JsonArg) -> JsonText {
    JsonText(published::export(&document).or_raise())
}

extension_sql!(
    r"
COMMENT ON FUNCTION graph_document_bytes(json) IS
    'an export or a record of a prompt in few bytes, to be kept';
COMMENT ON FUNCTION graph_document_json(bytea) IS
    'the document that graph_document_bytes has made into bytes';
COMMENT ON FUNCTION graph_export_from_published(json) IS
    'an export or an answer of the published crate or its service as an export that is not attested';
",
    name = "document_comments",
    requires = [graph_document_bytes, graph_document_json, graph_export_from_published]
);
