//! Searches as the documents have them, and what the extension gives besides: messages, recall, verification.

use std::collections::HashMap;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use postgres::types::Type;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::answers::ServiceError;
use crate::serve::Shared;
use crate::serve::errors::{JsonText, Refusal};

type Body<T> = Result<Json<T>, JsonRejection>;

/// The columns of messages, of which the times are as the document of a slice cannot have them: with microseconds.
const MESSAGE: &str =
    "n, turn_id, part, role, content, payload, session_id, created_at, tokens, cumulative_tokens";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessagesRequest {
    anchor_turn_id: Option<Uuid>,
    session_id: Option<String>,
    policy: Option<Value>,
    #[serde(default)]
    record: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecallRequest {
    query: Option<String>,
    query_embedding: Option<Vec<f32>>,
    policy: Option<Value>,
    anchor_turn_id: Option<Uuid>,
    filter: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
pub(super) struct GlobalQuery {
    query: String,
    limit: Option<i32>,
}

/// The policy of a request as a text, and how a statement reads it from the parameter of this number.
fn policy(given: Option<Value>, preset: &str, parameter: u8) -> Result<(String, String), Refusal> {
    match given {
        None => Ok((preset.to_owned(), format!("${parameter}::text::{{schema}}.slice_policy"))),
        // A name may be that of a registered policy.
        Some(Value::String(name)) => {
            Ok((name, format!("{{schema}}.graph_policy(${parameter}::text)")))
        }
        Some(policy @ Value::Object(_)) => {
            Ok((policy.to_string(), format!("${parameter}::text::{{schema}}.slice_policy")))
        }
        Some(_) => Err(Refusal::invalid("policy must be a name or an object")),
    }
}

/// PostgreSQL stores no NUL character.
fn without_nul(texts: &[Option<&str>]) -> Result<(), Refusal> {
    match texts.iter().flatten().any(|text| text.contains('\0')) {
        true => Err(Refusal::invalid("a text holds a NUL character")),
        false => Ok(()),
    }
}

/// The messages at a turn or at the end of a session, and maybe the record of them, of one snapshot.
pub(super) async fn messages(
    State(service): State<Shared>,
    body: Body<MessagesRequest>,
) -> Result<Response, ServiceError> {
    let request = match body {
        Ok(Json(request)) => request,
        Err(rejection) => return Ok(rejection.into_response()),
    };
    let (anchor, session, with_record) =
        (request.anchor_turn_id, request.session_id, request.record);
    if anchor.is_some() == session.is_some() {
        return Err(Refusal::invalid("give one of anchor_turn_id and session_id").into());
    }
    let (policy, call) = policy(request.policy, "chat", 2)?;
    without_nul(&[session.as_deref(), Some(&policy)])?;
    let answer = service.read(move |transaction| {
        let query = "SELECT anchor_turn_id::text FROM {schema}.graph_anchor($1, $2, NULL::real[])";
        let parameters: crate::database::Parameters =
            &[(&anchor, Type::UUID), (&session, Type::TEXT)];
        let anchor = transaction.text(query, parameters)?.unwrap_or_default();
        let parameters: crate::database::Parameters =
            &[(&anchor, Type::TEXT), (&policy, Type::TEXT)];
        let messages = transaction.rows_as_json(
            &format!(
                "SELECT {MESSAGE} FROM {{schema}}.graph_messages($1::text::uuid, {call}) ORDER BY n"
            ),
            parameters,
        )?;
        let record = match with_record {
            false => None,
            true => transaction.text(
                &format!(
                    "SELECT {{schema}}.graph_messages_record($1::text::uuid, {call}, NULL::text)::text"
                ),
                parameters,
            )?,
        };
        let record = record.map(|record| format!(",\"record\":{record}")).unwrap_or_default();
        Ok(format!("{{\"anchor_turn_id\":\"{anchor}\",\"messages\":{messages}{record}}}"))
    });
    Ok(JsonText(answer.await?).into_response())
}

/// What a search of the whole graph finds, with what was said around it.
pub(super) async fn recall(
    State(service): State<Shared>,
    body: Body<RecallRequest>,
) -> Result<Response, ServiceError> {
    let request = match body {
        Ok(Json(request)) => request,
        Err(rejection) => return Ok(rejection.into_response()),
    };
    let RecallRequest { query, query_embedding, anchor_turn_id, filter, .. } = request;
    if query.is_none() && query_embedding.is_none() {
        return Err(Refusal::invalid("give query, query_embedding or both").into());
    }
    let (policy, call) = policy(request.policy, "recall", 3)?;
    let filter = filter.unwrap_or_default();
    without_nul(&[query.as_deref(), Some(&policy)])?;
    let filter = Value::Object(filter).to_string();
    let statement = format!(
        "WITH recalled AS MATERIALIZED ( \
             SELECT * FROM {{schema}}.graph_recall($1, $2, {call}, $4, $5::text::jsonb)) \
         SELECT json_build_object( \
             'messages', coalesce((SELECT json_agg(to_json(m) ORDER BY n) FROM ( \
                 SELECT {MESSAGE}, distance, score, seed FROM recalled) AS m), '[]'), \
             'slice', (SELECT slice FROM recalled WHERE slice IS NOT NULL))::text"
    );
    let answer = service.read(move |transaction| {
        let parameters: crate::database::Parameters = &[
            (&query_embedding, Type::FLOAT4_ARRAY),
            (&query, Type::TEXT),
            (&policy, Type::TEXT),
            (&anchor_turn_id, Type::UUID),
            (&filter, Type::TEXT),
        ];
        transaction.text(&statement, parameters)
    });
    Ok(JsonText(answer.await?.unwrap_or_default()).into_response())
}

/// Whether a document is what the kernel has made: an export, or the record of a prompt.
pub(super) async fn verify(
    State(service): State<Shared>,
    body: String,
) -> Result<Response, ServiceError> {
    if let Err(rejection) = Json::<IgnoredAny>::from_bytes(body.as_bytes()) {
        return Ok(rejection.into_response());
    }
    without_nul(&[Some(&body)])?;
    let query = "SELECT to_json(v)::text FROM {schema}.graph_verify($1::text::json) AS v";
    let answer = service.read(move |transaction| transaction.text(query, &[(&body, Type::TEXT)]));
    Ok(JsonText(answer.await?.unwrap_or_default()).into_response())
}

pub(super) async fn search_slice(
    State(service): State<Shared>,
    body: String,
) -> Result<Response, ServiceError> {
    if let Err(rejection) = Json::<HashMap<String, IgnoredAny>>::from_bytes(body.as_bytes()) {
        return Ok(rejection.into_response());
    }
    search(&service, "graph_api_search_slice", body).await
}

pub(super) async fn search_global(
    State(service): State<Shared>,
    query: Result<Query<GlobalQuery>, QueryRejection>,
) -> Result<Response, ServiceError> {
    let Query(GlobalQuery { query, limit }) = match query {
        Ok(query) => query,
        Err(rejection) => return Ok(rejection.into_response()),
    };
    let request = json!({"query": query, "limit": limit.unwrap_or(10)});
    search(&service, "graph_api_search_global", request.to_string()).await
}

async fn search(
    service: &Shared,
    function: &'static str,
    request: String,
) -> Result<Response, ServiceError> {
    let query = format!("SELECT {{schema}}.{function}($1::text::json)::text");
    let answer =
        service.read(move |transaction| transaction.text(&query, &[(&request, Type::TEXT)]));
    Ok(JsonText(answer.await?.unwrap_or_default()).into_response())
}
