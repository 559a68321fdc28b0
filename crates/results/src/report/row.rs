//! Rows of a description: a subject and its text.

use serde::Serialize;

/// One subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What was found.
    pub text: String,
    /// Whether it is for those who look closely.
    pub detail: bool,
}
