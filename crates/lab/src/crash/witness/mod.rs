//! A witness: a process, on another machine where a plug is to be pulled, that keeps the ledger
//! durably while load runs here.
//!
//! Both sides share a secret and prove that to each other before anything is said (`channel`). What
//! a client does is on the witness's disk before the client goes on. A witness hears and tells of
//! deeds alone: what is run when the machine is back stands in this machine's own state (`local`).

mod channel;
mod connection;
mod judge_return;
mod ledger;
mod local;
mod plug;
mod secret;
mod server;

pub use connection::Witness;
pub use pgdyno_model::target::Secret;
pub use plug::{Plugged, plug};
pub use secret::{SecretError, shared_secret};
pub use server::serve;
