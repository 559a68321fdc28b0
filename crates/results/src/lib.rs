//! What becomes of results: the store that keeps them, the statistics over them, the reports that
//! show them.
//!
//! Opens old runs anywhere: needs neither PostgreSQL nor root nor the machine that measured.

pub mod analysis;
pub mod gate;
mod prose;
pub mod report;
pub mod store;

pub use analysis::{RunView, analyse};
pub use store::{SessionId, Store, StoreError};

// facade: removed at integration
#[doc(hidden)]
pub use pgdyno_audit as audit;
#[doc(hidden)]
pub use pgdyno_stats as stats;
