//! Errors in the form of the published service.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::serve::errors::{JsonText, Refusal};

/// An error as the published service answers it.
#[derive(Serialize)]
pub(super) struct ServiceError {
    #[serde(skip)]
    pub(super) status: StatusCode,
    /// The fact, for people.
    pub(super) error: String,
    /// A stable word.
    pub(super) code: String,
    /// What the error is about, or what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) details: Option<String>,
}

impl ServiceError {
    /// One without details.
    pub(super) fn new(status: StatusCode, code: &str, error: String) -> Self {
        ServiceError { status, error, code: code.to_owned(), details: None }
    }
}

impl From<Refusal> for ServiceError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { status, sqlstate, message, detail, hint, .. } = refusal;
        // Words stand alone; another detail is PostgreSQL's own sentence.
        let is_word = |text: &String| {
            let word = text.split(':').next().unwrap_or_default();
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        };
        let (code, details) = match detail {
            Some(word) if is_word(&word) => (word, hint),
            detail => {
                let code = match (status, sqlstate.as_deref()) {
                    (StatusCode::FORBIDDEN, _) => "FORBIDDEN",
                    (StatusCode::SERVICE_UNAVAILABLE, _) => "SERVICE_UNAVAILABLE",
                    (StatusCode::GATEWAY_TIMEOUT, _) => "TIMEOUT",
                    (_, Some(code)) if code.starts_with("22") => "INVALID_REQUEST",
                    _ => "DATABASE_ERROR",
                };
                (code.to_owned(), hint.or(detail))
            }
        };
        ServiceError { status, error: message, code, details }
    }
}

impl IntoResponse for ServiceError {
    fn into_response(self) -> Response {
        (self.status, json(&self)).into_response()
    }
}

/// A body.
pub(super) fn json(value: &impl Serialize) -> JsonText {
    JsonText(serde_json::to_string(value).expect("structures of texts and numbers are JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_code() {
        let of = |status, sqlstate: Option<&str>, detail: Option<&str>| {
            let error = ServiceError::from(Refusal {
                status,
                sqlstate: sqlstate.map(str::to_owned),
                message: "m".to_owned(),
                detail: detail.map(str::to_owned),
                hint: None,
                is_own: true,
                retry_seconds: None,
            });
            (error.code, error.details)
        };
        let is = |code: &str, details: Option<&str>| (code.to_owned(), details.map(str::to_owned));
        let bad = StatusCode::BAD_REQUEST;
        assert_eq!(of(bad, Some("22023"), Some("INVALID_POLICY")), is("INVALID_POLICY", None));
        let reason = "NOT_ADMISSIBLE: malformed";
        assert_eq!(of(bad, Some("22023"), Some(reason)), is(reason, None));
        let sentence = "Token \"x\" is invalid.";
        assert_eq!(of(bad, Some("22P02"), Some(sentence)), is("INVALID_REQUEST", Some(sentence)));
        assert_eq!(of(StatusCode::FORBIDDEN, Some("42501"), None), is("FORBIDDEN", None));
        assert_eq!(of(StatusCode::GATEWAY_TIMEOUT, Some("57014"), None), is("TIMEOUT", None));
        assert_eq!(
            of(StatusCode::INTERNAL_SERVER_ERROR, Some("XX000"), None),
            is("DATABASE_ERROR", None)
        );
    }
}
