//! Judges whether a server keeps what it acknowledged. Pure: what was acknowledged and what is
//! there come in, a verdict comes out. Small enough for a sceptic to read.
//!
//! [`judge()`] takes the clients' [`History`](pgdyno_model::ledger::History), what was [`Found`]
//! after a fault, and what the settings [`Promise`]. Every [oracle](oracles::ORACLES) is one
//! function. One that could not look gives *unknown*, and so does one that panics. What a server's
//! errors and its log tell of damage is in two lists: [`is_damage`] and [`damage_in`].

mod agreement;
mod damage;
mod found;
mod judge;
pub mod oracles;

pub use agreement::{Agreement, agreement};
pub use damage::{damage_in, is_damage, refuses_writes};
pub use found::{
    Aftermath, AsynchronousCommit, Found, Observed, Promise, Row, TableRows, Unseen, Wal,
};
pub use judge::{Judgement, judge};
