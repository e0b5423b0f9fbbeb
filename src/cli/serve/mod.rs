//! `graph-kernel serve`: a page, and an HTTP API, over the SQL functions of one database.
//!
//! Routes are added in [`routes`]: what needs the token in `guarded`, what everybody may have in `open`. A handler
//! takes `State<Shared>`, asks the database by [`Service::read`], and answers with [`errors::JsonText`] or
//! [`errors::Refusal`].

mod api;
mod clients;
mod errors;
mod guard;
mod keys;
mod page;
mod rate;
mod transaction;

use std::env;
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Extension, Json, Router};
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use self::clients::{Client, Clients, Taking};
use self::errors::Refusal;
use self::guard::{Guard, check_address, new_token, token_of};
pub(crate) use self::keys::check_body;
use self::rate::Rate;
use crate::arguments::ServeArguments;
use crate::database::{Place, Pool};
use crate::mcp::{HttpTools, Tools, parsed};
use crate::output::tell;
use crate::{Failure, Outcome};

/// The port where nothing else says one.
const DEFAULT_PORT: u16 = 8001;

/// The longest body of a request where a route does not say another, in bytes.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;

/// The longest document that is checked, in bytes.
const MAX_DOCUMENT_BYTES: usize = 16 << 20;

/// How many requests are worked on, or wait for a connection to the database, at once.
const MAX_REQUESTS: usize = 64;

/// How long a client may take to send the head of a request; a connection without one is closed after it.
const HEAD_SECONDS: Duration = Duration::from_secs(30);

/// How much longer than a statement a whole request may take, with its body and the wait for a connection.
const MORE_SECONDS: u64 = 30;

/// How long requests that are being answered have when the service ends.
const END_SECONDS: Duration = Duration::from_secs(10);

/// What a browser must not do with an answer.
const HEADERS: [(&str, &str); 8] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
];

/// What every request is answered with.
pub(crate) struct Service {
    pub(crate) pool: Arc<Pool>,
    /// The tools for a model.
    tools: HttpTools,
    guard: Guard,
    rate: Rate,
    health: api::LastHealth,
    /// One permit for each request that is worked on, or whose answer is not sent yet.
    requests: Arc<Semaphore>,
    /// How long a request may take.
    request_seconds: Duration,
}

/// The state of handlers.
pub(crate) type Shared = Arc<Service>;

/// Serves until it is told to end, by SIGINT or SIGTERM.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<Outcome, Failure> {
    check_address(arguments.listen, arguments.token_file.is_some())?;
    let token = match (&arguments.token_file, arguments.no_token) {
        (Some(path), _) => Some(token_of(path)?),
        (None, true) => None,
        (None, false) => Some(new_token()?),
    };
    let place = Place::of(&arguments.connection, "DATABASE_URL")?;
    // What is wrong with the connection is said now, and not to the first client.
    place.connect()?.check()?;
    let pool = Arc::new(Pool::new(place, arguments.connections, arguments.timeout));
    let tools = Tools::new(Arc::clone(&pool), arguments.allow_writes);
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let ended = runtime.block_on(listen(arguments, Arc::clone(&pool), tools, token));
    // A statement that still runs is left to its timeout.
    runtime.shutdown_timeout(Duration::from_secs(1));
    // Connections are closed here, outside: closing one waits.
    drop(pool);
    ended.map(|()| Outcome::Success)
}

async fn listen(
    arguments: &ServeArguments,
    pool: Arc<Pool>,
    tools: Tools,
    token: Option<String>,
) -> Result<(), Failure> {
    let wanted = SocketAddr::new(arguments.listen, port(arguments.port)?);
    let failed = |error: io::Error| format!("{wanted}: {error}");
    let listener = TcpListener::bind(wanted).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let fragment = token.as_ref().map(|token| format!("#token={token}")).unwrap_or_default();
    let service = Arc::new(Service {
        pool,
        tools: tools.over_http(),
        guard: Guard::new(token, address, &arguments.hosts),
        rate: Rate::new(arguments.rate),
        health: api::LastHealth::default(),
        requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
        request_seconds: Duration::from_secs(u64::from(arguments.timeout) + MORE_SECONDS),
    });
    // The part after # is not sent to any server, nor written to its log.
    let shown = match arguments.token_file {
        Some(_) => format!("http://{address}/"),
        None => format!("http://{address}/{fragment}"),
    };
    _ = writeln!(anstream::stdout(), "{shown}").and_then(|()| anstream::stdout().flush());
    accept(listener, routes(&service)).await
}

/// The routes. What stands in `guarded` needs the token; what stands in `open` does not, and shows no row.
fn routes(service: &Shared) -> Router {
    let guarded = Router::new()
        .merge(page::data())
        .merge(api::guarded())
        .route("/mcp", any(tools))
        .route_layer(from_fn_with_state(Arc::clone(service), with_token));
    let open = Router::new().merge(page::assets()).merge(api::open());
    Router::new()
        .merge(guarded)
        .merge(open)
        .fallback(|| async {
            Refusal::new(StatusCode::NOT_FOUND, "NO_SUCH_ROUTE", "there is nothing at this address")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(Arc::clone(service), within_limits))
        .layer(from_fn(with_headers))
        .with_state(Arc::clone(service))
}

/// The Model Context Protocol.
async fn tools(State(service): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    match Bytes::from_request(Request::from_parts(parts.clone(), body), &service).await {
        Ok(body) => {
            if parts.method == Method::POST
                && let Err(error) = parsed(&body)
            {
                return (StatusCode::BAD_REQUEST, Json(error)).into_response();
            }
            let request = Request::from_parts(parts, Body::from(body));
            service.tools.handle(request).await.map(Body::new)
        }
        Err(rejection) => rejection.into_response(),
    }
}

/// Refuses what [`Guard::check_token`] refuses, and what is too much. What has no token takes nothing from the others.
async fn with_token(
    State(service): State<Shared>,
    Extension(client): Extension<Arc<Client>>,
    request: Request,
    next: Next,
) -> Response {
    let checked = service.guard.check_token(request.headers());
    if let Err(refusal) = checked.and_then(|()| service.rate.take(Instant::now())) {
        return refusal.into_response();
    }
    let Ok(permit) = Arc::clone(&service.requests).try_acquire_owned() else {
        return Refusal::unavailable("there are too many requests at once").into_response();
    };
    let answering = client.answer(permit);
    next.run(request).await.map(|body| client.body(body, answering))
}

/// Refuses what [`Guard::check_origin`] refuses, and what takes too long.
async fn within_limits(State(service): State<Shared>, request: Request, next: Next) -> Response {
    if let Err(refusal) = service.guard.check_origin(request.uri(), request.headers()) {
        return refusal.into_response();
    }
    match timeout(service.request_seconds, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            "REQUEST_TIMEOUT",
            "the request took too long",
        )
        .into_response(),
    }
}

async fn with_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Takes connections until the end is asked for, and then waits for those that are being answered.
async fn accept(listener: TcpListener, routes: Router) -> Result<(), Failure> {
    let clients = Arc::new(Clients::default());
    let graceful = GracefulShutdown::new();
    let mut end = Box::pin(end_asked_for());
    loop {
        let entered = async {
            let (stream, _) = listener.accept().await?;
            Ok::<_, io::Error>((stream, clients.enter().await))
        };
        let entered = tokio::select! {
            entered = entered => entered,
            asked = &mut end => break asked?,
        };
        let (stream, place) = match entered {
            Ok((stream, Some(place))) => (stream, place),
            Ok((_, None)) => continue,
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
            Err(_) => {
                // Until there are files again.
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        _ = stream.set_nodelay(true);
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_SECONDS);
        let (inner, client) =
            (TowerToHyperService::new(routes.clone()), Arc::clone(place.client()));
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(Arc::clone(&client));
            inner.call(request)
        });
        let stream = TokioIo::new(Taking::new(stream, Arc::clone(place.client())));
        let connection = graceful.watch(builder.serve_connection(stream, service));
        tokio::spawn(async move {
            // A client that has gone away is no error of the service. The stream is closed before the place is free.
            tokio::select! {
                _ = connection => {}
                () = place.displaced() => {}
            }
        });
    }
    drop(listener);
    if timeout(END_SECONDS, graceful.shutdown()).await.is_err() {
        tell("ended before every request was answered");
    }
    Ok(())
}

/// Waits until the program is told to end.
#[cfg(unix)]
async fn end_asked_for() -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |error: io::Error| error.to_string();
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        asked = tokio::signal::ctrl_c() => asked.map_err(failed),
    }
}

/// As [`end_asked_for`], or the terminal is closed.
#[cfg(unix)]
pub(crate) async fn end_or_hangup() -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangup = signal(SignalKind::hangup()).map_err(|error| error.to_string())?;
    tokio::select! {
        _ = hangup.recv() => Ok(()),
        asked = end_asked_for() => asked,
    }
}

#[cfg(not(unix))]
pub(crate) use self::end_asked_for as end_or_hangup;

#[cfg(not(unix))]
async fn end_asked_for() -> Result<(), Failure> {
    tokio::signal::ctrl_c().await.map_err(|error| error.to_string())
}

/// The port of the argument, else of PORT.
fn port(given: Option<u16>) -> Result<u16, Failure> {
    match (given, env::var("PORT")) {
        (Some(port), _) => Ok(port),
        (None, Ok(text)) if !text.is_empty() => {
            text.parse().map_err(|_| "PORT is not a number from 0 to 65535".to_owned())
        }
        (None, _) => Ok(DEFAULT_PORT),
    }
}
