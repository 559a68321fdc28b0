//! The version of pgbench whose command line and report are meant.

use std::fmt;

/// A pgbench version whose command line is meant: major × 100 + minor (904 is 9.4, 1700 is 17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dialect(pub(crate) u16);

impl Dialect {
    /// The oldest dialect.
    pub(crate) const OLDEST: Self = Self(904);
    /// The newest dialect, which is the default.
    pub(crate) const NEWEST: Self = Self(1800);
    /// The last one whose `-d` is debug, and not the database's name.
    pub(crate) const BEFORE_DBNAME: Self = Self(1600);
    /// All, the newest first.
    pub(crate) const ALL: [Self; 12] = [
        Self(1800),
        Self(1700),
        Self(1600),
        Self(1500),
        Self(1400),
        Self(1300),
        Self(1200),
        Self(1100),
        Self(1000),
        Self(906),
        Self(905),
        Self(904),
    ];

    /// Whether its scripts have a statement a line (up to 9.5).
    pub(crate) fn has_old_language(self) -> bool {
        self.0 <= 905
    }

    /// Whether its scripts have `\syncpipeline` (from 17).
    pub(crate) fn has_sync_pipeline(self) -> bool {
        self.0 >= 1700
    }

    /// Whether a report counts, for each script, what was begun, and goes on where nothing ended
    /// well (from 18).
    pub(crate) fn reports_all_transactions(self) -> bool {
        self.0 >= 1800
    }

    /// Whether `--unlogged-tables` with partitions makes only these unlogged (from 18).
    pub(crate) fn unlogs_partitions_alone(self) -> bool {
        self.0 >= 1800
    }

    /// Whether lines on initialization name the table (from 17).
    pub(crate) fn names_table_in_progress(self) -> bool {
        self.0 >= 1700
    }

    /// Reads `9.4` or `17`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.to_string() == text)
    }
}

impl Default for Dialect {
    fn default() -> Self {
        Self::NEWEST
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 100, self.0 % 100) {
            (major, 0) => write!(f, "{major}"),
            (major, minor) => write!(f, "{major}.{minor}"),
        }
    }
}
