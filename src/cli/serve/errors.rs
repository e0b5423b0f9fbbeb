//! Errors as a client gets them: a status, and JSON with the SQLSTATE, the word in DETAIL and the hint of the server.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use postgres::error::{DbError, SqlState};
use serde_json::json;

use crate::database::{self, Fault, FaultKind};
use crate::output::{shortened, tell};

/// The longest text of an error, in bytes: one may repeat what a client has sent.
const MAX_TEXT_BYTES: usize = 8 << 10;

/// The word of the extension where a graph has no words to search by.
const NO_WORDS: &str = "NO_WORDS";

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The status of the response.
    pub(crate) status: StatusCode,
    /// The SQLSTATE, of an error of the database.
    pub(crate) sqlstate: Option<String>,
    /// The fact, for people.
    pub(crate) message: String,
    /// A stable word, such as `ANCHOR_NOT_FOUND`.
    pub(crate) detail: Option<String>,
    /// What to do.
    pub(crate) hint: Option<String>,
    /// Whether word and hint are the extension's or the service's own, and not those of code of the tables' owner.
    pub(crate) is_own: bool,
    /// In how many seconds the same request may have an answer.
    pub(crate) retry_seconds: Option<u64>,
}

impl Refusal {
    /// A refusal of the service's own.
    pub(crate) fn new(status: StatusCode, word: &str, message: impl Into<String>) -> Self {
        let (message, detail) = (message.into(), Some(word.to_owned()));
        Refusal {
            status,
            sqlstate: None,
            message,
            detail,
            hint: None,
            is_own: true,
            retry_seconds: None,
        }
    }

    /// What the client sent is not what is asked for.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Refusal::new(StatusCode::BAD_REQUEST, "INVALID_REQUEST", message)
    }

    /// The database cannot be asked. Why stands in the log alone: addresses are not for clients.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE", message);
        Refusal { retry_seconds: Some(1), ..refusal }
    }

    /// An error that the server raised.
    pub(crate) fn of_server(error: &DbError) -> Self {
        let is_own = database::is_own(error);
        Refusal {
            // That there are no words is not a fault of the service.
            status: match error.detail() {
                Some(NO_WORDS) if is_own => StatusCode::UNPROCESSABLE_ENTITY,
                _ => status_of(error.code()),
            },
            is_own,
            sqlstate: Some(error.code().code().to_owned()),
            message: shortened(error.message(), MAX_TEXT_BYTES),
            detail: error.detail().map(|text| shortened(text, MAX_TEXT_BYTES)),
            hint: error.hint().map(|text| shortened(text, MAX_TEXT_BYTES)),
            retry_seconds: None,
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        match fault.kind {
            FaultKind::Server(error) => Refusal::of_server(&error),
            FaultKind::Busy => Refusal::unavailable(fault.text),
            FaultKind::Late => Refusal::new(StatusCode::GATEWAY_TIMEOUT, "TIMEOUT", fault.text),
            FaultKind::Unreachable => {
                tell(&fault.text);
                Refusal::unavailable(
                    "the database cannot be asked; the log of the service says why",
                )
            }
            FaultKind::TooLong => {
                Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "ANSWER_TOO_LARGE", fault.text)
            }
            FaultKind::Forbidden => Refusal::new(StatusCode::FORBIDDEN, "FORBIDDEN", fault.text),
            FaultKind::Own => {
                tell(&fault.text);
                let message = "the request has failed; the log of the service says why";
                Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", message)
            }
        }
    }
}

/// The status that belongs to a SQLSTATE; `PT400` and the like name theirs, of an error.
fn status_of(code: &SqlState) -> StatusCode {
    let text = code.code();
    if let Some(status) = text.strip_prefix("PT").and_then(|digits| digits.parse().ok())
        && (400..600).contains(&status)
        && let Ok(status) = StatusCode::from_u16(status)
    {
        return status;
    }
    match text {
        "42501" | "25006" => StatusCode::FORBIDDEN,
        "02000" | "42704" => StatusCode::NOT_FOUND,
        "57014" => StatusCode::GATEWAY_TIMEOUT,
        "23505" | "40001" | "40P01" => StatusCode::CONFLICT,
        _ => match text.get(..2) {
            Some("22") => StatusCode::BAD_REQUEST,
            Some("54") => StatusCode::UNPROCESSABLE_ENTITY,
            Some("08" | "53" | "57") => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        },
    }
}

impl Refusal {
    /// Whether the extension says that the graph has no words to search by.
    pub(crate) fn lacks_words(&self) -> bool {
        self.is_own && self.detail.as_deref() == Some(NO_WORDS)
    }
}

impl IntoResponse for Refusal {
    /// Of a graph without words the page says it in its own words.
    fn into_response(mut self) -> Response {
        if !self.is_own && self.detail.as_deref() == Some(NO_WORDS) {
            (self.detail, self.hint) = (None, None);
        }
        let body = json!({"error": {
            "message": self.message,
            "sqlstate": self.sqlstate,
            "detail": self.detail,
            "hint": self.hint,
        }});
        let mut response = (self.status, JsonText(body.to_string())).into_response();
        if let Some(seconds) = self.retry_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// A text that is JSON, as a response.
pub(crate) struct JsonText(pub(crate) String);

impl IntoResponse for JsonText {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sqlstate_has_a_status() {
        for (code, status) in [
            ("22023", 400),
            ("22P02", 400),
            ("02000", 404),
            ("42704", 404),
            ("42501", 403),
            ("25006", 403),
            ("54000", 422),
            ("57014", 504),
            ("57P01", 503),
            ("53300", 503),
            ("23505", 409),
            ("PT413", 413),
            ("PT999", 500),
            ("PT204", 500),
            ("PTabc", 500),
            ("XX000", 500),
        ] {
            assert_eq!(status_of(&SqlState::from_code(code)).as_u16(), status, "{code}");
        }
    }
}
