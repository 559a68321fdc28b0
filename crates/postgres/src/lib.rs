//! PostgreSQL servers: found, fetched, created and run by pgdyno, or external.
//!
//! A managed server takes these calls, in this order:
//!
//! 1. [`find()`] or [`fetch()`] returns an [`Install`], the programs of one version.
//! 2. [`ClusterSpec::new`] plans a cluster below a directory of
//!    [`cluster_directory`](cluster::cluster_directory). Its steps can be printed before anything
//!    is done.
//! 3. [`Cluster::create`] runs initdb, [`Cluster::start`] starts the server, and [`Cluster::apply`]
//!    sets a treatment's settings and reads them back.
//! 4. [`Cluster::target`] says how to connect. [`Template`] keeps loaded data for the next cluster,
//!    and [`KillSwitch`] crashes the server.
//! 5. [`Cluster::remove`], or a drop, stops the server and removes everything.
//!
//! An external server is only driven and queried: [`ExternalServer::connect`]. The exceptions,
//! settings ([`ServerWide`]) and objects ([`schema`]), are recorded in the journal before they are
//! changed, and put back at the end or by the next [`sweep`].
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::sync::atomic::AtomicBool;
//!
//! use pgdyno_exec::{Journal, server_account};
//! use pgdyno_postgres::cluster::cluster_directory;
//! use pgdyno_postgres::{Cluster, ClusterSpec, fetch};
//!
//! let stop = AtomicBool::new(false);
//! let journal = Journal::open("/var/lib/pgdyno".as_ref())?;
//! let install = fetch(17, &server_account()?, &stop, &|_| {})?;
//! let spec = ClusterSpec::new(install, cluster_directory("/mnt/disk".as_ref())?)?;
//! let mut cluster = Cluster::create(spec, &journal, &stop)?;
//! let settings = BTreeMap::from([("shared_buffers".to_owned(), "1GB".to_owned())]);
//! cluster.apply(&settings, &stop)?;
//! println!("{}", cluster.facts()?.version);
//! cluster.remove()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
pub mod cluster;
mod crash;
pub mod error;
pub mod external;
pub mod facts;
pub mod fetch;
pub mod find;
pub mod install;
mod judge;
pub mod schema;
mod server;
pub mod server_wide;
pub mod settings;
pub mod spec;
pub mod sweep;

pub use cluster::{
    Applied, Cluster, ClusterError, ClusterSpec, CopySummary, KeptTemplate, StopMode, Template,
    template_path,
};
pub use crash::{Checksums, KillSwitch};
pub use external::{ExternalServer, ExternalServerError};
pub use fetch::{FETCHABLE, FetchError, FetchProgress, cached, fetch};
pub use find::{FindError, find, find_all};
pub use install::Install;
pub use judge::{Judgement, judge, value_read};
pub use pgdyno_exec::journal::RecordedSettings;
pub use schema::RecordedSchema;
pub use server_wide::{ServerWide, ServerWideError};
pub use settings::SettingsError;
