//! `GET /api/history?recipe=R`: one recipe over time and hosts.

use crate::digest::{RunDigest, TreatmentDigest};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use pgdyno_store::ListedRun;
use serde::Deserialize;

use super::documents::{History, HistoryPoint, TreatmentHistory, respond};
use crate::app::{App, Shared, blocking};
use crate::digest::fill;
use crate::response::ApiError;

/// Most runs that one request analyses; others are found in the background.
const ANALYSED_MOST: usize = 8;

/// Which recipe.
#[derive(Deserialize)]
pub(crate) struct Asked {
    recipe: String,
}

/// `GET /api/history?recipe=R`.
pub(crate) async fn history(
    State(app): Shared,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(asked) = asked?;
    blocking(&app, move |app| respond(&of_recipe(app, asked.recipe)?)).await
}

fn of_recipe(app: &App, recipe: String) -> Result<History, ApiError> {
    let contents = app.contents()?;
    let runs: Vec<&ListedRun> =
        contents.runs.iter().filter(|run| run.summary.recipe == recipe).collect();
    if runs.is_empty() {
        return Err(ApiError::not_found(format!("no run of `{recipe}` is in the store")));
    }
    let is_missing = |run: &&&ListedRun| app.digests().get(run).is_none();
    let missing: Vec<&&ListedRun> = runs.iter().filter(is_missing).take(ANALYSED_MOST).collect();
    for run in missing {
        // A damaged run is left out of the history, and counted.
        let _ = fill::add(app, run);
    }
    let mut history = History { recipe, treatments: Vec::new(), pending: 0 };
    // The newest first: its treatments give the order.
    for run in runs {
        let digest = app.digests().get(run).cloned();
        match digest {
            Some(digest) => history.add(run, &digest),
            None => history.pending += 1,
        }
    }
    history.treatments.iter_mut().for_each(|treatment| treatment.points.reverse());
    Ok(history)
}

impl History {
    fn add(&mut self, run: &ListedRun, digest: &RunDigest) {
        for treatment in &digest.treatments {
            let Some(point) = point(run, digest, treatment) else { continue };
            let known = self.treatments.iter_mut().find(|t| t.treatment == treatment.label);
            match known {
                Some(known) => known.points.push(point),
                None => self.treatments.push(TreatmentHistory {
                    treatment: treatment.label.clone(),
                    points: vec![point],
                }),
            }
        }
    }
}

/// Returns a treatment in one run; none without a completed trial.
fn point(run: &ListedRun, digest: &RunDigest, treatment: &TreatmentDigest) -> Option<HistoryPoint> {
    Some(HistoryPoint {
        run: run.summary.id.clone(),
        started_at: run.summary.started_at.to_string(),
        host: digest.host.clone(),
        trials: treatment.trials,
        tps: treatment.tps?,
        ci95: treatment.ci95,
        latency_us_p99: treatment.latency_us_p99,
        pgdyno_version: digest.pgdyno_version.clone(),
        postgres_version: treatment.postgres_version.clone(),
        state: run.summary.state,
    })
}
