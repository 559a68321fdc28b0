//! Responses: JSON documents, and errors that say what to do.

use std::error::Error;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use pgdyno_lab::live::LiveError;
use pgdyno_model::Advice;
use pgdyno_model::advice::with_causes;
use pgdyno_provision::BenchError;
use pgdyno_report::ReportError;
use pgdyno_report::json::for_browser;
use pgdyno_report::text::plain;
use pgdyno_store::notes::NoteError;
use pgdyno_store::{SideFileError, StoreError};
use pgdyno_text::printable::escape_text;
use serde::Serialize;

/// Why a request cannot be answered.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ApiError {
    #[serde(skip)]
    status: StatusCode,
    /// Message: the attempt, its object, and what was found.
    error: String,
    /// Advice; null where there is none.
    help: Option<String>,
    /// Factors that could be named by `by`, where two results differ in something that must be
    /// equal; null for any other error.
    comparable_by: Option<Vec<String>>,
}

impl ApiError {
    /// Creates an error without advice.
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: plain(&error.into()), help: None, comparable_by: None }
    }

    /// Creates the error of a request for what is not there.
    pub(crate) fn not_found(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    /// Adds advice.
    pub(crate) fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(plain(&help.into())), ..self }
    }

    /// Returns the message, without advice.
    pub(crate) fn text(self) -> String {
        self.error
    }

    fn with_status(status: StatusCode, error: &dyn Error, help: Option<String>) -> Self {
        let error = escape_text(&with_causes(error)).into_owned();
        Self { status, error, help: help.map(|help| plain(&help)), comparable_by: None }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let status = match &error {
            StoreError::UnknownRun { .. }
            | StoreError::NoRuns { .. }
            | StoreError::NotARun { .. } => StatusCode::NOT_FOUND,
            StoreError::AmbiguousRun { .. } => StatusCode::CONFLICT,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::with_status(status, &error, error.help())
    }
}

impl From<BenchError> for ApiError {
    fn from(error: BenchError) -> Self {
        let status = match error.cause::<LiveError>() {
            Some(LiveError::NotRunning { .. }) => StatusCode::NOT_FOUND,
            Some(LiveError::Gone { .. }) => StatusCode::CONFLICT,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::with_status(status, &error, error.help())
    }
}

impl From<ReportError> for ApiError {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Store(error) => error.into(),
            ReportError::Compare(ref refused) => {
                let names = refused.comparable_by();
                let by = names.map(|names| names.into_iter().map(plain).collect());
                let answer =
                    Self::with_status(StatusCode::UNPROCESSABLE_ENTITY, &error, error.help());
                Self { comparable_by: by, ..answer }
            }
            _ => Self::with_status(StatusCode::INTERNAL_SERVER_ERROR, &error, error.help()),
        }
    }
}

impl From<SideFileError> for ApiError {
    fn from(error: SideFileError) -> Self {
        Self::with_status(StatusCode::SERVICE_UNAVAILABLE, &error, error.help())
    }
}

impl From<NoteError> for ApiError {
    fn from(error: NoteError) -> Self {
        match error {
            NoteError::File(error) => error.into(),
            error => Self::with_status(StatusCode::UNPROCESSABLE_ENTITY, &error, error.help()),
        }
    }
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        Self::new(rejection.status(), format!("cannot read the path: {}", rejection.body_text()))
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(rejection.status(), format!("cannot read the query: {}", rejection.body_text()))
            .with_help("docs/serve.md lists what each path takes")
    }
}

impl From<serde_json::Error> for ApiError {
    fn from(error: serde_json::Error) -> Self {
        Self::with_status(StatusCode::INTERNAL_SERVER_ERROR, &error, None)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        // Two texts: their serializer cannot fail.
        let body = for_browser(&serde_json::to_string(&self).unwrap_or_default());
        (self.status, [(header::CONTENT_TYPE, JSON)], body).into_response()
    }
}

pub(crate) const JSON: &str = "application/json";

/// Returns a document that is JSON already.
pub(crate) fn json_text(body: impl Into<axum::body::Body>) -> Response {
    ([(header::CONTENT_TYPE, JSON)], body.into()).into_response()
}

/// Returns an error as a page.
pub(crate) fn html_error(error: &ApiError) -> Response {
    let escape = |text: &str| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let help =
        error.help.as_deref().map_or_else(String::new, |help| format!("<p>{}</p>\n", escape(help)));
    let body = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>pgdyno</title>\n\
         <h1>pgdyno</h1>\n<p>{}</p>\n{help}",
        escape(&error.error)
    );
    (error.status, axum::response::Html(body)).into_response()
}
