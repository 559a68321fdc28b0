//! Crash tests: what is broken on purpose, and what is said of what was found.
//!
//! A [`Round`] is judged by its oracles ([`Check`]). Rounds of one [`Fault`] come to a
//! [`FaultOutcome`], faults and their [`Control`]s to a [`CrashOutcome`], which a [`CrashRecord`]
//! keeps. In place of rounds, a [`StatesOutcome`] tells of all states of a recorded stretch.

mod fault;
mod filesystem;
mod power;
mod rollup;
mod round;
mod round_power;
mod session;
mod states;
#[cfg(test)]
mod tests;
mod verdict;
mod workload;

pub use fault::{Aim, Fault, Under};
pub use filesystem::{FilesystemRecovery, Fsck};
pub use power::{FaultPower, chance_at_most, skip_seen};
pub use rollup::{Control, FaultOutcome, median_fsck_ms, median_mount_ms};
pub use round::{Lost, Round};
pub use round_power::RoundPower;
pub use session::{CrashOptions, CrashOutcome, CrashRecord};
pub use states::{
    FailedState, FailureCause, FilePart, MissingFlush, MissingWrite, PageKind, RecordedStretch,
    StateCount, StateKind, StatePhases, States, StatesOutcome,
};
pub use verdict::{Check, CheckOutcome, Failing, Verdict};
pub use workload::CrashWorkload;
