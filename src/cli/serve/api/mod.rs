//! The HTTP API: the requests and answers of the published service, and of this extension's other calls.
//!
//! What the published service answers is answered with the same bodies, statuses and codes.

mod answers;
mod recorded;
mod retrieval;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn;
use axum::routing::{get, post};

pub(super) use self::recorded::LastHealth;
use super::keys::with_checked_body;
use super::{MAX_DOCUMENT_BYTES, Shared};

/// The description of every route and field, which a test compares with what is answered.
const OPENAPI: &str = include_str!("openapi.json");

/// What needs the token.
pub(super) fn guarded() -> Router<Shared> {
    Router::new()
        .route("/api/slice", post(recorded::slice))
        .route("/api/slice/batch", post(recorded::slices))
        .route("/api/policies", get(recorded::policies).post(recorded::register))
        .route("/api/verify_token", post(recorded::verify_token))
        .route(
            "/api/verify",
            post(retrieval::verify).layer(DefaultBodyLimit::max(MAX_DOCUMENT_BYTES)),
        )
        .route("/api/messages", post(retrieval::messages).layer(from_fn(with_checked_body)))
        .route("/api/recall", post(retrieval::recall).layer(from_fn(with_checked_body)))
        .route("/api/rag/search/slice", post(retrieval::search_slice))
        .route("/api/rag/search/global", get(retrieval::search_global))
}

/// What probes ask for, and the description.
pub(super) fn open() -> Router<Shared> {
    Router::new()
        .route("/health", get(recorded::health))
        .route("/health/live", get(recorded::live))
        .route("/health/ready", get(recorded::ready))
        .route("/health/startup", get(recorded::startup))
        .route(
            "/api/openapi.json",
            get(|| async { ([(CONTENT_TYPE, "application/json")], OPENAPI) }),
        )
}
