//! What the published service answers: slices, policies, tokens, health.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use postgres::types::Type;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::spawn;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::answers::{self, ServiceError};
use crate::output::tell;
use crate::serve::Shared;
use crate::serve::errors::{JsonText, Refusal};

/// A body that is of this form, or the refusal in the words of the published service.
type Body<T> = Result<Json<T>, JsonRejection>;

/// A registered policy.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct PolicyRef {
    policy_id: String,
    params_hash: String,
}

#[derive(Deserialize, Serialize)]
pub(super) struct SliceRequest {
    anchor_turn_id: String,
    policy_ref: Option<PolicyRef>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct BatchRequest {
    anchor_turn_ids: Vec<String>,
    policy_ref: Option<PolicyRef>,
}

/// A policy, whose keys the server reads.
#[derive(Deserialize)]
pub(super) struct RegisterRequest {
    #[serde(rename = "policy")]
    _policy: IgnoredAny,
}

#[derive(Deserialize, Serialize)]
pub(super) struct TokenRequest {
    admissibility_token: String,
    slice_id: String,
    anchor_turn_id: String,
    policy_id: String,
    policy_params_hash: String,
    graph_snapshot_hash: String,
    schema_version: String,
}

/// A slice as the published service shows it: those of the server's answer have their edges, too.
#[derive(Deserialize, Serialize)]
struct Slice {
    slice_id: String,
    anchor_turn_id: String,
    turn_ids: Vec<String>,
    edge_count: u64,
    policy_id: String,
    policy_params_hash: String,
    schema_version: String,
    graph_snapshot_hash: String,
    /// None of what is not committed.
    admissibility_token: Option<String>,
}

#[derive(Deserialize, Serialize)]
struct SliceAnswer {
    slice: Slice,
    policy_ref: PolicyRef,
}

#[derive(Deserialize, Serialize)]
struct BatchAnswer {
    slices: Vec<Slice>,
    policy_ref: PolicyRef,
    success_count: u64,
    errors: Vec<BatchError>,
}

#[derive(Deserialize, Serialize)]
struct BatchError {
    anchor_turn_id: String,
    error: String,
}

#[derive(Deserialize, Serialize)]
struct Health {
    status: String,
    version: String,
    schema_version: String,
    policy_count: u64,
    registry_fingerprint: String,
    database: DatabaseHealth,
}

#[derive(Deserialize, Serialize)]
struct DatabaseHealth {
    connected: bool,
    #[serde(default)]
    pool_size: usize,
    #[serde(default)]
    pool_idle: usize,
    #[serde(default)]
    pool_max: usize,
}

/// Asks a function of the extension that takes a request as JSON.
async fn ask(service: &Shared, function: &'static str, request: String) -> Result<String, Refusal> {
    let query = format!("SELECT {{schema}}.{function}($1::text::json)::text");
    let answer =
        service.read(move |transaction| transaction.text(&query, &[(&request, Type::TEXT)]));
    Ok(answer.await?.unwrap_or_default())
}

/// An answer of the server that is of this form.
fn parsed<'a, T: Deserialize<'a>>(answer: &'a str) -> Result<T, Refusal> {
    serde_json::from_str(answer).map_err(|error| {
        let message = format!("the database's answer is not what it was asked for: {error}");
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "DATABASE_ERROR", message)
    })
}

/// The message of an anchor that is no id, in the words of the service; None for another message.
fn not_an_id(message: &str) -> Option<&str> {
    message.strip_prefix("invalid turn id: ")
}

/// The message of an anchor that is not there, in the words of the service.
fn not_found(anchor: &str) -> String {
    let id = anchor.parse().map_or_else(|_| anchor.to_owned(), |id: Uuid| id.to_string());
    format!("Anchor turn not found: {id}")
}

/// The error of the server about a policy that is not registered, in the words of the service.
fn about_policy(refusal: Refusal, policy: Option<&PolicyRef>) -> ServiceError {
    match (refusal.detail.as_deref(), policy) {
        (Some("POLICY_NOT_FOUND"), Some(policy)) => ServiceError::new(
            StatusCode::NOT_FOUND,
            "POLICY_NOT_FOUND",
            format!("Policy not found: {policy:?}"),
        ),
        _ => refusal.into(),
    }
}

pub(super) async fn slice(
    State(service): State<Shared>,
    body: Body<SliceRequest>,
) -> Result<Response, ServiceError> {
    let request = match body {
        Ok(Json(request)) => request,
        Err(rejection) => return Ok(rejection.into_response()),
    };
    let asked = ask(&service, "graph_api_slice", answers::json(&request).0).await;
    let answer = asked.map_err(|refusal| match refusal.detail.as_deref() {
        Some("INVALID_TURN_ID") => {
            let why = not_an_id(&refusal.message).unwrap_or(&refusal.message);
            ServiceError {
                details: Some(request.anchor_turn_id.clone()),
                ..ServiceError::new(
                    StatusCode::BAD_REQUEST,
                    "INVALID_TURN_ID",
                    format!("Invalid anchor turn ID: {why}"),
                )
            }
        }
        Some("SLICE_FAILED") => {
            let why = match refusal.status {
                StatusCode::NOT_FOUND => not_found(&request.anchor_turn_id),
                _ => refusal.message,
            };
            ServiceError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "SLICE_FAILED",
                format!("Slice generation failed: {why}"),
            )
        }
        _ => about_policy(refusal, request.policy_ref.as_ref()),
    })?;
    Ok(answers::json(&parsed::<SliceAnswer>(&answer)?).into_response())
}

pub(super) async fn slices(
    State(service): State<Shared>,
    body: Body<BatchRequest>,
) -> Result<Response, ServiceError> {
    let request = match body {
        Ok(Json(request)) => request,
        Err(rejection) => return Ok(rejection.into_response()),
    };
    let asked = ask(&service, "graph_api_slice_batch", answers::json(&request).0).await;
    let answer = asked.map_err(|refusal| about_policy(refusal, request.policy_ref.as_ref()))?;
    let mut answer: BatchAnswer = parsed(&answer)?;
    for error in &mut answer.errors {
        if let Some(why) = not_an_id(&error.error) {
            error.error = format!("Invalid turn ID: {why}");
        } else if error.error.starts_with("anchor turn ") {
            error.error = not_found(&error.anchor_turn_id);
        }
    }
    Ok(answers::json(&answer).into_response())
}

pub(super) async fn policies(State(service): State<Shared>) -> Result<JsonText, ServiceError> {
    let query = "SELECT {schema}.graph_api_policies()::text";
    let answer = service.read(move |transaction| transaction.text(query, &[])).await?;
    Ok(JsonText(answer.unwrap_or_default()))
}

pub(super) async fn register(
    State(service): State<Shared>,
    body: String,
) -> Result<Response, ServiceError> {
    // The text goes on as it is: the server sees a key that is given twice.
    if let Err(rejection) = Json::<RegisterRequest>::from_bytes(body.as_bytes()) {
        return Ok(rejection.into_response());
    }
    let query = "SELECT {schema}.graph_api_register_policy($1::text::json)::text";
    let answer = service.write(move |transaction| transaction.text(query, &[(&body, Type::TEXT)]));
    Ok(JsonText(answer.await?.unwrap_or_default()).into_response())
}

pub(super) async fn verify_token(
    State(service): State<Shared>,
    body: Body<TokenRequest>,
) -> Result<Response, ServiceError> {
    match body {
        Ok(Json(request)) => {
            let answer = ask(&service, "graph_api_verify_token", answers::json(&request).0).await?;
            Ok(JsonText(answer).into_response())
        }
        Err(rejection) => Ok(rejection.into_response()),
    }
}

/// What the database last said of its health, or why it did not, and when. Probes need no token: however many there
/// are, they are one question a second.
pub(in crate::serve) type LastHealth = Arc<Mutex<Option<(Instant, Result<String, String>)>>>;

/// How long such an answer is given again.
const HEALTH_HOLDS: Duration = Duration::from_secs(1);

async fn asked_for_health(service: &Shared) -> Result<String, String> {
    let mut last = Arc::clone(&service.health).lock_owned().await;
    if let Some((when, answer)) = &*last
        && when.elapsed() < HEALTH_HOLDS
    {
        return answer.clone();
    }
    // A question goes on where who asked it has gone: else the next one would ask again.
    let service = Arc::clone(service);
    let question = spawn(async move {
        let answer = answer_of_health(&service).await;
        *last = Some((Instant::now(), answer.clone()));
        answer
    });
    question.await.unwrap_or_else(|_| Err("the question has failed within the program".to_owned()))
}

async fn answer_of_health(service: &Shared) -> Result<String, String> {
    let query = "SELECT {schema}.graph_api_health()::text";
    let asked = service.read(move |transaction| transaction.text(query, &[])).await;
    // Who asks has no token: what the server says is not for him.
    asked.map(Option::unwrap_or_default).map_err(|refusal| match refusal.sqlstate {
        None => refusal.message,
        Some(sqlstate) => {
            tell(&format!("the database is not ready: SQLSTATE {sqlstate}"));
            "the database is not ready; the log of the service has the SQLSTATE".to_owned()
        }
    })
}

pub(super) async fn health(State(service): State<Shared>) -> Result<Response, ServiceError> {
    let asked = asked_for_health(&service).await;
    let (status, mut health) = match &asked {
        Ok(answer) => (StatusCode::OK, parsed::<Health>(answer)?),
        Err(_) => {
            let database =
                DatabaseHealth { connected: false, pool_size: 0, pool_idle: 0, pool_max: 0 };
            let health = Health {
                status: "unhealthy".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                schema_version: kernel::graph::SCHEMA_VERSION.to_owned(),
                policy_count: 0,
                registry_fingerprint: String::new(),
                database,
            };
            (StatusCode::SERVICE_UNAVAILABLE, health)
        }
    };
    let (size, idle, max) = service.pool.sizes();
    let connected = health.database.connected;
    health.database = DatabaseHealth { connected, pool_size: size, pool_idle: idle, pool_max: max };
    Ok((status, answers::json(&health)).into_response())
}

/// That the process answers.
pub(super) async fn live() -> JsonText {
    answers::json(&json!({"status": "alive"}))
}

/// Whether slices can be taken.
pub(super) async fn ready(State(service): State<Shared>) -> Response {
    readiness(&service, None).await
}

pub(super) async fn startup(State(service): State<Shared>) -> Response {
    readiness(&service, Some("Service started successfully")).await
}

#[derive(Serialize)]
struct Readiness<'a> {
    ready: bool,
    database: bool,
    details: Option<&'a str>,
}

async fn readiness(service: &Shared, details: Option<&str>) -> Response {
    match asked_for_health(service).await {
        Ok(_) => answers::json(&Readiness { ready: true, database: true, details }).into_response(),
        Err(why) => {
            let details = Some(why.as_str());
            let answer = answers::json(&Readiness { ready: false, database: false, details });
            (StatusCode::SERVICE_UNAVAILABLE, answer).into_response()
        }
    }
}
