//! The JSON API over a store. Each handler reads on a thread that may block.

pub(crate) mod documents;
mod history;
mod live;
mod notes;
mod runs;

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;
use pgdyno_analysis::comparison::runs::CompareOptions;
use pgdyno_model::record::RunState;
use pgdyno_report::{Page, json};
use pgdyno_store::notes::Notes;
use serde::Deserialize;

use self::documents::{Info, respond};
pub(crate) use self::history::history;
pub(crate) use self::live::{live_runs, stop, watch};
pub(crate) use self::notes::{note, write_note};
pub(crate) use self::runs::runs;
use crate::app::{App, Shared, blocking};
use crate::pages::ServedPage;
use crate::response::{ApiError, JSON, json_text};

/// The JSON Schema of all answers. A test makes it from the documents' types.
pub(crate) const SCHEMA: &str = include_str!("../../schema/api.json");

/// `GET /api/schema`: the JSON Schema of all answers.
pub(crate) async fn schema() -> Response {
    json_text(SCHEMA)
}

/// `GET /api/info`: what is served, and what the visitor may do.
pub(crate) async fn info(State(app): Shared) -> Result<Response, ApiError> {
    blocking(&app, |app| {
        let notes = Notes::open(app.path());
        respond(&Info {
            pgdyno_version: env!("CARGO_PKG_VERSION"),
            store: app.path().display().to_string(),
            can_write_notes: notes.is_ok(),
            notes_reason: notes.err().map(|error| ApiError::from(error).text()),
            allows_control: app.allow_control,
        })
    })
    .await
}

/// `GET /api/page/{id}`: the document that the page of a result embeds.
pub(crate) async fn page(State(app): Shared, Path(id): Path<String>) -> Result<Response, ApiError> {
    let page = blocking(&app, move |app| page_of(app, &id)).await?;
    Ok(json_text(page.document.clone()))
}

/// `GET /api/page/{id}/trials/{index}`: seconds and telemetry of one trial.
pub(crate) async fn trial(
    State(app): Shared,
    path: Result<Path<(String, usize)>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Path((id, index)) = path?;
    let name = id.clone();
    let page = blocking(&app, move |app| page_of(app, &id)).await?;
    let Some(packed) = page.details.get(&index) else {
        let what = format!("no seconds or telemetry of trial {index} are stored in {name}");
        return Err(ApiError::not_found(what));
    };
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    if accepts_gzip(accepted.unwrap_or_default()) {
        let headers = [(header::CONTENT_TYPE, JSON), (header::CONTENT_ENCODING, "gzip")];
        return Ok((headers, packed.clone()).into_response());
    }
    let mut text = Vec::new();
    // It was packed by this program: unpacking cannot fail.
    GzDecoder::new(packed.as_ref()).read_to_end(&mut text).map_err(serde_json::Error::io)?;
    Ok(json_text(text))
}

/// `GET /api/show/{id}`: a result as `pgdyno show --json` prints it.
pub(crate) async fn show(State(app): Shared, Path(id): Path<String>) -> Result<Response, ApiError> {
    let work = move |app: &App| {
        app.stores.with(|store| Ok(json::stored(store, &store.resolve_any(&id)?)?))
    };
    Ok(json_text(json::for_browser(&blocking(&app, work).await?)))
}

/// Query of a comparison: two runs, and what may differ between them.
#[derive(Deserialize)]
pub(crate) struct Comparison {
    a: String,
    b: String,
    /// Factors that may differ, separated by commas.
    #[serde(default)]
    by: String,
    /// Whether to compare although something that must be equal is not.
    #[serde(default)]
    force: bool,
}

/// `GET /api/compare?a=RUN&b=RUN`: the document of a comparison's page.
pub(crate) async fn compare(
    State(app): Shared,
    asked: Result<Query<Comparison>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(Comparison { a, b, by, force }) = asked?;
    let by = by.split(',').map(str::trim).filter(|name| !name.is_empty());
    let options =
        CompareOptions { by: by.map(str::to_owned).collect(), force, ..Default::default() };
    let work = move |app: &App| {
        app.stores.with(|store| Ok(Page::comparison(store, &a, &b, &options)?.page))
    };
    Ok(json_text(blocking(&app, work).await?.document()))
}

/// Answers a path below `/api` that there is not.
pub(crate) async fn unknown() -> ApiError {
    ApiError::not_found("there is nothing at this path of the API")
        .with_help("docs/serve.md lists every path")
}

/// Returns the page of the result that `name` names.
fn page_of(app: &App, name: &str) -> Result<Arc<ServedPage>, ApiError> {
    let contents = app.contents()?;
    let run = contents.run(name);
    let stored = app.stores.with(|store| Ok(store.resolve_any(name)?))?;
    let run = run.or_else(|| contents.run(stored.id()));
    // The noise floor of a run's page depends on the other runs that are complete.
    let done = contents.runs.iter().filter(|run| run.summary.state == RunState::Completed).count();
    let key = match run {
        Some(run) => format!("{} {:?} {:?} {done}", stored.id(), run.head, run.summary.state),
        None => stored.id().to_owned(),
    };
    app.pages.get(&key, || app.stores.with(|store| Ok(Page::stored(store, &stored)?)))
}

/// Whether a value of `Accept-Encoding` allows gzip.
fn accepts_gzip(accepted: &str) -> bool {
    let weights: HashMap<&str, &str> = accepted
        .split(',')
        .map(|part| part.split_once(';').unwrap_or((part, "q=1")))
        .map(|(name, weight)| (name.trim(), weight.trim()))
        .collect();
    let is_zero = |weight: &&str| {
        weight.strip_prefix("q=").and_then(|q| q.parse::<f64>().ok()).is_some_and(|q| q <= 0.0)
    };
    weights.get("gzip").is_some_and(|weight| !is_zero(weight))
}

#[cfg(test)]
mod tests {
    use super::accepts_gzip;

    #[test]
    fn gzip_is_used_where_it_is_accepted() {
        assert!(accepts_gzip("gzip, deflate, br, zstd"));
        assert!(accepts_gzip("br;q=1.0, gzip;q=0.8"));
        assert!(!accepts_gzip("gzip;q=0, identity"));
        assert!(!accepts_gzip("br"));
        assert!(!accepts_gzip(""));
    }
}
