//! Judges whether a server keeps what it acknowledged. Pure: what was acknowledged and what is there come in, a
//! verdict comes out. Small enough for a sceptic to read.
//!
//! [`judge()`] takes the clients' [`History`](pgdyno_model::ledger::History), what was [`Found`] after a fault, and what
//! the settings [`Promise`]. Every [oracle](oracles::ORACLES) is one function. One that could not look gives *unknown*,
//! and so does one that panics.

mod agreement;
mod found;
mod judge;
pub mod oracles;

pub use agreement::{Agreement, agreement};
pub use found::{Aftermath, Found, Observed, Promise, Row, Unseen, Wal};
pub use judge::{Judgement, judge};
