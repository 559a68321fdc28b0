//! Kinds of errors that fail a transaction.

use pgdyno_model::measurement::Sums;

use crate::sqlstate;

/// What kind of error failed a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// It could not be serialized with others (SQLSTATE 40001).
    Serialization,
    /// It waited for one that waited for it (SQLSTATE 40P01).
    Deadlock,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// The kind of SQLSTATE `code`.
    #[must_use]
    pub fn from_sqlstate(code: &str) -> Self {
        match code {
            sqlstate::SERIALIZATION_FAILURE => Self::Serialization,
            sqlstate::DEADLOCK_DETECTED => Self::Deadlock,
            _ => Self::Other,
        }
    }

    /// Where `sums` counts it.
    pub(crate) fn counter_of(self, sums: &mut Sums) -> &mut u64 {
        match self {
            Self::Serialization => &mut sums.serialization_failures,
            Self::Deadlock => &mut sums.deadlock_failures,
            Self::Other => &mut sums.other_failures,
        }
    }

    /// Whether another try may fare better.
    #[must_use]
    pub fn is_transient(self) -> bool {
        self != Self::Other
    }
}
