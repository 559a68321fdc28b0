//! `/api/notes/{id}`: what users write on a result. The only thing that the server writes.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use pgdyno_model::units::Epoch;
use pgdyno_store::notes::{Note, Notes};

use super::documents::{NoteHistory, respond};
use crate::app::{App, Shared, blocking};
use crate::response::ApiError;

/// `GET /api/notes/{id}`: every version of a note.
pub(crate) async fn note(State(app): Shared, Path(id): Path<String>) -> Result<Response, ApiError> {
    let work = move |app: &App| {
        let id = full_name(app, &id)?;
        let notes = Notes::open_for_reading(app.path())?;
        let versions = notes.map(|notes| notes.history(&id)).transpose()?.unwrap_or_default();
        respond(&NoteHistory { id, versions })
    };
    blocking(&app, work).await
}

/// `PUT /api/notes/{id}`: adds a version of a note.
pub(crate) async fn write_note(
    State(app): Shared,
    Path(id): Path<String>,
    note: Result<Json<Note>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(note) = note.map_err(|rejection| {
        ApiError::new(
            rejection.status(),
            format!("cannot read the note: {}", rejection.body_text()),
        )
        .with_help(r#"send JSON: {"text": "…", "tags": ["…"]}"#)
    })?;
    let work = move |app: &App| {
        let note = note.tidy()?;
        let id = full_name(app, &id)?;
        let notes = Notes::open(app.path())?;
        notes.write(&id, &note, Epoch::now())?;
        respond(&NoteHistory { versions: notes.history(&id)?, id })
    };
    blocking(&app, work).await
}

/// Returns the full name of a result, which must be in the store by just that name.
fn full_name(app: &App, id: &str) -> Result<String, ApiError> {
    let stored = app.stores.with(|store| Ok(store.resolve_any(id)?))?;
    if stored.id() != id {
        let what = format!("cannot note anything on `{id}`: notes belong to a full id");
        return Err(
            ApiError::not_found(what).with_help(format!("perhaps `{}` is meant", stored.id()))
        );
    }
    Ok(id.to_owned())
}
