//! PostgreSQL servers: found, fetched, made and run by pgdyno, or given by a DSN.

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

pub use pgdyno_exec::journal::RecordedSettings;
// facade: removed at integration
#[doc(hidden)]
pub use external as given;
#[doc(hidden)]
pub use external::{ExternalServer as Given, ExternalServerError as GivenError};
#[doc(hidden)]
pub use pgdyno_connect::control;
#[doc(hidden)]
pub use pgdyno_connect::control::{
    CancelToken, Client, ControlClient, ControlError, CopyInWriter, Transaction,
};

pub use cluster::{
    Applied, Cluster, ClusterError, ClusterSpec, Copied, KeptTemplate, StopMode, Template,
    template_path,
};
pub use crash::{Checksums, KillSwitch};
pub use external::{ExternalServer, ExternalServerError};
pub use fetch::{FETCHABLE, FetchError, FetchProgress, cached, fetch};
pub use find::{FindError, find, find_all};
pub use install::Install;
pub use judge::{Judgement, judge};
pub use schema::RecordedSchema;
pub use server_wide::{ServerWide, ServerWideError};
pub use settings::SettingsError;
