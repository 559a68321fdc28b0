//! Which handler answers which path.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{any, get, post, put};

use crate::access::{self, Access};
use crate::api;
use crate::app::{App, Shared};
use crate::response::ApiError;

/// Most bytes of a request's body: a note of the longest text in any writing.
const BODY_MOST: usize = 64 << 10;

/// Time that a client has to send a request's body.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// Returns the server's routes.
pub(crate) fn router(app: Arc<App>, access: Arc<Access>) -> Router {
    Router::new()
        .route("/api/schema", get(api::schema))
        .route("/api/info", get(api::info))
        .route("/api/runs", get(api::runs))
        .route("/api/page/{id}", get(api::page))
        .route("/api/page/{id}/trials/{index}", get(api::trial))
        .route("/api/show/{id}", get(api::show))
        .route("/api/compare", get(api::compare))
        .route("/api/history", get(api::history))
        .route("/api/live", get(api::live_runs))
        .route("/api/live/{run}", get(api::watch))
        .route("/api/live/{run}/stop", post(api::stop))
        .route("/api/notes/{id}", put(api::write_note).layer(from_fn(in_time)).get(api::note))
        .route("/api/{*path}", any(api::unknown))
        .route("/favicon.ico", get(StatusCode::NO_CONTENT))
        .fallback(get(front_end))
        .layer(DefaultBodyLimit::max(BODY_MOST))
        .layer(from_fn_with_state(access, access::check))
        .layer(from_fn(access::add_headers))
        .with_state(app)
}

/// Refuses a note that does not come in time.
async fn in_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(BODY_WITHIN, next.run(request)).await {
        Ok(response) => response,
        Err(_) => ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("cannot read the note: it did not come within {} s", BODY_WITHIN.as_secs()),
        )
        .into_response(),
    }
}

/// Returns the front end: it finds its page by the path.
async fn front_end(State(app): Shared) -> Response {
    ([(header::CACHE_CONTROL, "no-cache")], Html(app.front_end.clone())).into_response()
}
