use kernel::content;
use pgrx::prelude::*;

#[pg_extern(immutable, parallel_safe)]
fn graph_normalize_text(content: &str) -> String {
    content::normalize(content).into_owned()
}

#[pg_extern(immutable, parallel_safe)]
fn graph_content_hash(content: &str) -> String {
    content::content_hash(content)
}
