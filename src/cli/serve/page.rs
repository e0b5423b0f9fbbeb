//! The page: its files, and what it asks for below `/page`.

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;

use super::Shared;
use super::errors::{JsonText, Refusal};

/// The files of the page.
pub(super) fn assets() -> Router<Shared> {
    const HTML: &str = "text/html; charset=utf-8";
    Router::new().route("/", get(|| async { file(HTML, include_str!("assets/index.html")) }))
}

fn file(content_type: &'static str, text: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, content_type)], text)
}

/// What the page asks for. It needs the token.
pub(super) fn data() -> Router<Shared> {
    Router::new().route("/page/about", get(about))
}

/// The graph that is read, the role, the versions.
async fn about(State(service): State<Shared>) -> Result<JsonText, Refusal> {
    let query = "SELECT json_build_object('version', {schema}.graph_kernel_version(), 'server', \
                 current_setting('server_version'), 'role', current_user, 'database', current_database(), \
                 'graph', graph_kernel.chosen_graph())::text";
    let text = service.pool.read(move |transaction| transaction.text(query, &[])).await?;
    Ok(JsonText(text.unwrap_or_default()))
}
