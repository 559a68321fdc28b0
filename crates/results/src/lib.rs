//! What becomes of results: the store that keeps them, the statistics over them, the reports that
//! show them.
//!
//! Opens old runs anywhere: needs neither PostgreSQL nor root nor the machine that measured.

pub mod analysis;
pub mod audit;
pub mod gate;
mod number;
pub mod report;
pub mod stats;
pub mod store;

pub use analysis::{RunView, analyse};
pub use store::{SessionId, Store, StoreError};
