use pgrx::prelude::*;

use crate::pg::error::OrRaise;
use crate::pg::sql::types::JsonText;
use crate::pg::text::JsonArg;
use crate::service::documents;

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

extension_sql!(
    r"
COMMENT ON FUNCTION graph_document_bytes(json) IS
    'an export or a record of a prompt in few bytes, to be kept';
COMMENT ON FUNCTION graph_document_json(bytea) IS
    'the document that graph_document_bytes has made into bytes';
",
    name = "document_comments",
    requires = [graph_document_bytes, graph_document_json]
);
