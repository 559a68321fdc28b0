//! libpq's rules for where to connect: options, connection strings, services, environment and
//! defaults.
//!
//! [`resolve()`] does it all. A connection string outweighs the options beside it (as in
//! `pgbench -h a "host=b"`). Both outweigh a service file, which outweighs the environment, which
//! outweighs the defaults. No message and no `Debug` output holds a password.
//!
//! ```
//! use pgdyno_connect::conninfo::{ConnectOptions, Environment, resolve_in};
//!
//! let options = ConnectOptions {
//!     dsn_or_dbname: Some("postgresql://me@db.example:5433/shop".into()),
//!     ..ConnectOptions::default()
//! };
//! let resolved = resolve_in(&options, &Environment::default())?;
//! let target = &resolved.servers.targets[0];
//! assert_eq!(target.address.to_string(), "db.example:5433");
//! assert_eq!((target.user.as_str(), target.database.as_str()), ("me", "shop"));
//! # Ok::<(), pgdyno_connect::conninfo::ConninfoError>(())
//! ```

mod environment;
mod error;
mod files;
mod keywords;
mod parse;
mod resolve;

pub use environment::Environment;
pub use error::ConninfoError;
pub use parse::{Options, format_options, is_connection_string, parse};
pub use resolve::{ConnectOptions, Resolved, resolve, resolve_in};
