//! Analysis: from a run in the store to what can be said about it, in figures and kinds.
//!
//! [`analyse`] is the entry point for one run, [`comparison::runs::compare`] for two,
//! [`host_noise::noise`] for a host, and [`stopping::wanted`] tells a run in progress which
//! treatments to measure next. Nothing here makes a sentence: `pgdyno-report` does.
//!
//! ```no_run
//! use pgdyno_analysis::{analyse, badge};
//! use pgdyno_store::Store;
//!
//! let store = Store::open_existing("results.sqlite3")?;
//! let view = analyse(&store, &store.resolve("latest")?)?;
//! println!("{:?}: best treatment {:?}", badge::badge(&view), view.best);
//! # Ok::<(), pgdyno_store::StoreError>(())
//! ```

pub mod badge;
mod burst_credit;
mod capacity;
mod charts;
mod client_groups;
pub mod comparison;
mod devices;
pub mod effect;
mod factors;
pub mod gate;
mod generators;
mod growth;
pub mod host_noise;
mod idle_device;
pub mod noise_floor;
mod observations;
mod profile;
mod promise;
pub mod question;
mod rate_stages;
mod rates;
mod records;
mod run;
mod scaling;
mod server_log;
mod stages;
mod steadiness;
pub mod stopping;
mod telemetry;
mod treatment;
mod trial;
mod view;
mod waits;
mod why;

pub use badge::Badge;
pub use idle_device::IdleDevice;
pub use observations::Observations;
pub use run::analyse;
pub use treatment::label;
pub use view::*;
