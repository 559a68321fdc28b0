//! Load from several processes or hosts, measured as one.
//!
//! [`run_load`] does what [`pgdyno_engine::run_load`] does, with the load dealt to
//! [`Generators`]. Each runs `pgdyno worker`, which calls [`serve()`]. Placement and shipping are
//! left to programs that people already run: a [`launch`](Place) is one `ssh` command, or workers
//! join by themselves ([`serve_joined`]).
//!
//! - [`protocol`] has the messages, in the order in which they are sent.
//! - [`coordinator`] and [`worker`] are state machines without I/O; tests drive them with a
//!   simulated clock.
//! - [`clock`] estimates how far the clocks of hosts are apart. Latencies are differences on one
//!   worker's clock: offsets enter only the common start.
//!
//! A load is valid only if every generator began within `max_start_skew` of the agreed instant,
//! reported every second, and its seconds add up to its totals. Addition is exact: it does not
//! depend on how the load is dealt.

pub mod clock;
pub mod coordinator;
mod error;
mod fleet;
mod generators;
mod join;
mod launch;
pub mod protocol;
mod run;
mod serve;
pub mod worker;

pub use error::{Fault, GeneratorsError, LoadTime, WorkerError};
pub use generators::{DealError, Generator, Generators, Join, Limits, Place, host_name};
pub use join::{GatherError, JoinError, TokenError, serve_joined};
pub use launch::{Admission, Hands, Launched, StartProgram, launch_on, words_on};
pub use run::run_load;
pub use serve::{ABANDONED, serve};
