//! Kinds of errors that fail a transaction.

use pgdyno_model::measurement::Sums;

use crate::sqlstate;

/// Kind of the error that failed a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// Serialization failure (SQLSTATE 40001).
    Serialization,
    /// Deadlock (SQLSTATE 40P01).
    Deadlock,
    /// Any other error.
    Other,
}

impl FailureKind {
    /// Returns the kind of SQLSTATE `code`.
    pub fn from_sqlstate(code: &str) -> Self {
        match code {
            sqlstate::SERIALIZATION_FAILURE => Self::Serialization,
            sqlstate::DEADLOCK_DETECTED => Self::Deadlock,
            _ => Self::Other,
        }
    }

    /// Returns the counter of this kind in `sums`.
    pub(crate) fn counter_of(self, sums: &mut Sums) -> &mut u64 {
        match self {
            Self::Serialization => &mut sums.serialization_failures,
            Self::Deadlock => &mut sums.deadlock_failures,
            Self::Other => &mut sums.other_failures,
        }
    }

    /// Returns whether a retry may succeed.
    pub fn is_transient(self) -> bool {
        self != Self::Other
    }
}
