//! Judges whether a server kept what it acknowledged.
//!
//! This crate is pure: a ledger and observations go in, a verdict comes out. It is small so that a
//! sceptic can read all of it.
//!
//! 1. The load's clients keep a ledger of their transactions, a
//!    [`History`](pgdyno_model::ledger::History).
//! 2. After the fault and the recovery, the caller looks at the server and fills in [`Found`].
//!    Whatever could not be looked at is an [`Unseen`].
//! 3. [`judge()`] asks every oracle of [`oracles::ORACLES`]. One failure makes the round fail. An
//!    oracle that could not run, or that panicked, makes it *unknown*, never *pass*.
//!
//! [`history_at`] gives the ledger for a cut that was not made, at an event of a recorded disk, and
//! [`early_acknowledgements`] accounts for its flushes.
//!
//! Without a fault, [`agreement()`] compares counts of rows with acknowledgements. [`is_damage`]
//! and [`damage_in`] list the SQLSTATEs and log lines that mean damage.
//!
//! ```
//! use std::time::Duration;
//!
//! use pgdyno_durability::{Aftermath, Promise, judge};
//! use pgdyno_model::crash::{Failing, Verdict};
//! use pgdyno_model::ledger::History;
//!
//! let promise = Promise { asynchronous: None, struck_at: Duration::from_secs(5) };
//! let aftermath = Aftermath::WillNotStart("PANIC: could not locate a valid checkpoint".into());
//! let judgement = judge(&History::default(), &aftermath, &promise);
//! assert_eq!(judgement.verdict, Verdict::Fail(Failing::WillNotStart));
//! ```

mod agreement;
mod cut;
mod damage;
mod excerpt;
mod flush;
mod found;
mod judge;
pub mod oracles;

pub use agreement::{Agreement, agreement};
pub use cut::{CutWindow, history_at, shrinkage};
pub use damage::{damage_in, is_damage, refuses_writes};
pub use excerpt::ledger_excerpt;
pub use flush::{FlushEvent, early_acknowledgements};
pub use found::{
    Aftermath, Amounts, AsynchronousCommit, Census, Contents, EffectKey, Found, Numbers, Objects,
    Observed, Promise, Row, TableRows, Unseen, Wal,
};
pub use judge::{Judgement, judge};
