//! The page: its files, and what it asks for below `/page`.

mod context;
mod conversations;
mod documents;
mod request;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use postgres::types::Type;
use tokio::sync::Semaphore;

use super::errors::{JsonText, Refusal};
use super::transaction::Transaction;
use super::{MAX_DOCUMENT_BYTES, Shared};

/// The files of the page: what they are served as, and where.
const FILES: [(&str, &str, &str); 11] = [
    ("/", "text/html; charset=utf-8", include_str!("assets/index.html")),
    ("/assets/page.css", "text/css; charset=utf-8", include_str!("assets/page.css")),
    ("/assets/icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
    ("/assets/page.js", SCRIPT, include_str!("assets/page.js")),
    ("/assets/server.js", SCRIPT, include_str!("assets/server.js")),
    ("/assets/elements.js", SCRIPT, include_str!("assets/elements.js")),
    ("/assets/conversations.js", SCRIPT, include_str!("assets/conversations.js")),
    ("/assets/picture.js", SCRIPT, include_str!("assets/picture.js")),
    ("/assets/prompt.js", SCRIPT, include_str!("assets/prompt.js")),
    ("/assets/policy.js", SCRIPT, include_str!("assets/policy.js")),
    ("/assets/documents.js", SCRIPT, include_str!("assets/documents.js")),
];

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The files of the page.
pub(super) fn assets() -> Router<Shared> {
    let mut router = Router::new();
    for (path, content_type, text) in FILES {
        router = router.route(path, get(async move || file(content_type, text)));
    }
    router
}

fn file(content_type: &'static str, text: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, content_type)], text)
}

/// What the page asks for. It needs the token.
pub(super) fn data() -> Router<Shared> {
    let check = post(documents::check)
        .layer(DefaultBodyLimit::max(MAX_DOCUMENT_BYTES))
        .layer(from_fn(few_at_once));
    Router::new()
        .route("/page/about", get(about))
        .route("/page/sessions", get(conversations::sessions))
        .route("/page/thread", post(conversations::thread))
        .route("/page/turns", post(conversations::turns))
        .route("/page/search", post(conversations::search))
        .route("/page/context", post(context::context))
        .route("/page/why", post(context::why))
        .route("/page/diff", post(context::diff))
        .route("/page/document", post(context::document))
        .route("/page/register", post(documents::register))
        .route("/page/check", check)
}

/// How many documents are taken and checked at a time. Each is held in memory, more than once.
static CHECKS: Semaphore = Semaphore::const_new(4);

/// Lets a document wait before it is read.
async fn few_at_once(request: Request, next: Next) -> Response {
    let permit = CHECKS.acquire().await;
    let response = next.run(request).await;
    drop(permit);
    response
}

/// The graph that is read, the role, the policies, the versions.
async fn about(State(service): State<Shared>) -> Result<JsonText, Refusal> {
    let query = "SELECT json_build_object('version', {schema}.graph_kernel_version(), 'server', \
                 current_setting('server_version'), 'role', current_user, 'database', current_database(), \
                 'graph', graph_kernel.chosen_graph(), 'no_words', $1::text, \
                 'can_register', NOT pg_is_in_recovery() AND EXISTS ( \
                 SELECT FROM pg_proc AS p WHERE p.pronamespace = 'graph_kernel'::regnamespace \
                 AND p.proname = 'register_policy' AND has_function_privilege(p.oid, 'EXECUTE')), \
                 'policies', (SELECT coalesce(json_agg(json_build_object('name', coalesce(p.name, p.params_hash), \
                 'policy', p.policy::json, 'is_preset', p.registered_by IS NULL)), '[]') \
                 FROM {schema}.graph_policies AS p))::text";
    // Whether there are words to search by, a search alone says; its hint is how to have them.
    let probe = "SELECT count(*)::text FROM {schema}.graph_search( \
                 NULL::real[], 'word'::text, 1, '{}'::jsonb)";
    let no_words = match service.read(move |transaction| transaction.text(probe, &[])).await {
        Err(refusal) if refusal.lacks_words() => Some(refusal.hint),
        _ => None,
    }
    .map(Option::unwrap_or_default);
    let work =
        move |transaction: &mut Transaction| transaction.text(query, &[(&no_words, Type::TEXT)]);
    let text = service.read(work).await?;
    Ok(JsonText(text.unwrap_or_default()))
}
