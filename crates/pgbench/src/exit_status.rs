//! Exit statuses, as pgbench has them.

/// Everything asked for was done.
pub(crate) const SUCCESS: i32 = 0;
/// Nothing was done.
pub(crate) const REFUSED: i32 = 1;
/// A part was done, and then an error came.
pub(crate) const INCOMPLETE: i32 = 2;
/// A signal ended it: the status that a shell reports of pgbench then.
pub(crate) const INTERRUPTED: i32 = 130;
