//! `/api/live`: runs in progress.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use pgdyno_lab::live;

use super::documents::{LiveRow, LiveRuns, StopAsked, respond};
use crate::app::{App, Shared, blocking};
use crate::live::events;
use crate::response::ApiError;

/// `GET /api/live`: the runs that have a live file.
pub(crate) async fn live_runs(State(app): Shared) -> Result<Response, ApiError> {
    let work = |app: &App| {
        let runs = live::runs(app.path())?.into_iter().map(|run| {
            let (ended, error) = run.ended.unzip();
            LiveRow {
                id: run.run,
                recipe: run.recipe,
                started_at: run.started_at.to_string(),
                is_alive: run.is_alive,
                ended: ended.map(|end| <&str>::from(end).to_owned()),
                error: error.flatten().map(|failure| failure.to_string()),
            }
        });
        let version = app.contents()?.version;
        respond(&LiveRuns { runs: runs.collect(), version })
    };
    blocking(&app, work).await
}

/// `GET /api/live/{run}`: the state of a run, then its records as they come (server-sent events).
pub(crate) async fn watch(
    State(app): Shared,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    let ending = app.ending();
    let feed = blocking(&app, move |app| app.watched.feed(app.path(), &run, app.ending())).await?;
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        // A proxy that collects what it passes on would hold events back.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(events(feed, ending))).into_response())
}

/// `POST /api/live/{run}/stop`: asks a run to end after the trial in progress.
pub(crate) async fn stop(
    State(app): Shared,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    if !app.allow_control {
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            format!("cannot ask run {run} to stop: this server only shows"),
        )
        .with_help(format!(
            "start it with `pgdyno serve --allow-control`, or type `pgdyno stop {run}`"
        )));
    }
    let work = move |app: &App| {
        live::ask_to_stop(app.path(), &run)?;
        respond(&StopAsked { run })
    };
    Ok((StatusCode::ACCEPTED, blocking(&app, work).await?).into_response())
}
