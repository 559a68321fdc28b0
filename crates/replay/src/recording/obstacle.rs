//! Obstacles: why statements of a log cannot be replayed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use strum::IntoStaticStr;

/// Why a statement cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, Serialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Obstacle {
    /// The log lacks its parameters.
    ParametersNotLogged,
    /// A parameter was cut by `log_parameter_max_length`.
    ParametersCut,
    /// The log has its parameters in a form that PostgreSQL does not write.
    ParametersUnreadable,
    /// It reads COPY data of the client's, which no log has.
    CopyData,
    /// It is a replication command.
    Replication,
    /// It sets a `client_encoding` other than UTF8, in which pgdyno sends what the log holds.
    ClientEncoding,
    /// It holds bytes that are not UTF-8.
    NotUtf8,
}

/// Place in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// File.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: u64,
}

/// Statements that cannot be replayed, by obstacle: their number and the place of the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Obstacles {
    by_kind: BTreeMap<Obstacle, (u64, Place)>,
}

impl Obstacles {
    pub(super) fn add(&mut self, obstacle: Obstacle, place: impl FnOnce() -> Place) {
        self.by_kind.entry(obstacle).or_insert_with(|| (0, place())).0 += 1;
    }

    /// Returns the statements that cannot be replayed (count).
    pub fn count(&self) -> u64 {
        self.by_kind.values().map(|(count, _)| count).sum()
    }

    /// Iterates over obstacles with the number of their statements and the place of the first.
    pub fn iter(&self) -> impl Iterator<Item = (Obstacle, u64, &Place)> {
        self.by_kind.iter().map(|(obstacle, (count, place))| (*obstacle, *count, place))
    }
}
