//! A witness: a process, on another machine than the one whose plug is to be pulled, that keeps the
//! ledger durably while load runs here.
//!
//! `ssh` starts it there, and carries what both say (`connection`). What a client does is on the
//! witness's disk before the client goes on (`server`). A witness hears and tells of deeds alone:
//! what is run when the machine is back stands in this machine's own state (`local`).

mod connection;
mod error;
mod judge_return;
mod ledger;
mod local;
mod plug;
mod server;

pub use plug::{Plugged, plug};
pub use server::serve;
