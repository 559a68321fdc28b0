//! Observes the host and the server: telemetry while load runs, and the rules of `pgdyno doctor`.
//!
//! Everything here reads and nothing changes the host, so that it works without root. The one
//! exception is an extension that a probe needs, which it creates on servers that pgdyno runs.
//!
//! [`telemetry`] samples many sources on one time base. Create a
//! [`TelemetryContext`](telemetry::TelemetryContext), pass its [`probes`](telemetry::probes) to
//! [`Sampler::start`](telemetry::Sampler::start), run the load, and call
//! [`Sampler::finish`](telemetry::Sampler::finish). The result is one table a probe. A probe that
//! cannot work here has a table without samples that says why.
//!
//! [`doctor`] examines the host once and judges it by rules, each with its source.
//!
//! ```no_run
//! use std::time::{Duration, Instant};
//!
//! use pgdyno_model::experiment::Telemetry;
//! use pgdyno_model::target::{Address, Target};
//! use pgdyno_model::units::Span;
//! use pgdyno_observe::telemetry::{MonitoredServer, Sampler, TelemetryContext, probes};
//!
//! let address = Address::Unix { directory: "/run/postgresql".into(), port: 5432 };
//! let server = MonitoredServer {
//!     data: Some("/var/lib/postgresql/18/main".into()),
//!     control: Target::new(address.clone(), "postgres", "postgres"),
//!     loaded: Target::new(address, "postgres", "shop"),
//!     managed: false,
//! };
//! let wanted = Telemetry {
//!     interval: Span::from_secs(1),
//!     fsync: Span::from_secs(0),
//!     wait_events: Span::from_secs(0),
//!     statements: false,
//!     buffercache: false,
//!     keep_serials: false,
//! };
//! let context = TelemetryContext::new(server, wanted);
//! let sampler = Sampler::start(probes(&context), Duration::from_secs(1));
//! let opened = Instant::now();
//! std::thread::sleep(Duration::from_secs(10));
//! for table in sampler.finish(opened, Instant::now()) {
//!     println!("{}: {} samples", table.probe, table.samples.len());
//! }
//! ```
//!
//! # Adding a probe
//!
//! 1. Write `src/telemetry/NAME.rs`: a type that implements [`Probe`](telemetry::Probe), and a
//!    function `make` that takes the path of the data, or the context if it is about the server. It
//!    returns none where this kernel or server version has no such source, and an error where the
//!    source should exist and cannot be read.
//! 2. Add its line to `HOST_PROBES` or `SERVER_PROBES` in `src/telemetry/mod.rs`, and the line `mod
//!    NAME;`.
//! 3. Name columns as the source does, with its units. Counters stay raw; reports compute
//!    differences.

pub mod doctor;
pub mod telemetry;
