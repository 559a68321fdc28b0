//! The version of pgbench whose command line and report are meant.

use std::fmt;

/// A pgbench version whose command line is meant: the major.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dialect(pub(crate) u8);

impl Dialect {
    /// The oldest dialect. Reports, logs and progress lines of pgbench before 15 are others.
    pub(crate) const OLDEST: Self = Self(15);
    /// The newest dialect, which is the default.
    pub(crate) const NEWEST: Self = Self(18);
    /// The last one whose `-d` is debug, and not the database's name.
    pub(crate) const BEFORE_DBNAME: Self = Self(16);

    /// Returns all dialects, the newest first.
    pub(crate) fn all() -> impl DoubleEndedIterator<Item = Self> {
        (Self::OLDEST.0..=Self::NEWEST.0).rev().map(Self)
    }

    /// Whether its scripts have `\syncpipeline` (from 17).
    pub(crate) fn has_sync_pipeline(self) -> bool {
        self.0 >= 17
    }

    /// Whether a report counts, for each script, what was begun, and goes on where nothing ended
    /// well (from 18).
    pub(crate) fn reports_all_transactions(self) -> bool {
        self.0 >= 18
    }

    /// Whether `--unlogged-tables` with partitions makes only these unlogged (from 18).
    pub(crate) fn unlogs_partitions_alone(self) -> bool {
        self.0 >= 18
    }

    /// Whether lines on initialization name the table (from 17).
    pub(crate) fn names_table_in_progress(self) -> bool {
        self.0 >= 17
    }

    /// Reads `17`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::all().find(|dialect| dialect.to_string() == text)
    }
}

impl Default for Dialect {
    fn default() -> Self {
        Self::NEWEST
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
