//! Connections to PostgreSQL, for load and for control.
//!
//! 1. [`conninfo::resolve`] turns options, a connection string, services, the environment and
//!    `.pgpass` into [`Servers`](pgdyno_model::target::Servers), by libpq's rules.
//! 2. [`connect`] or [`connect_any`] opens a session for load: socket, TLS, authentication, and the
//!    check of `target_session_attrs`. The result is a socket that does not block, which an event
//!    loop drives. [`cancel`] asks the server to cancel such a session's statement.
//! 3. [`control`] opens sessions for pgdyno's own questions. They block, run with a `search_path`
//!    that nobody else can write to, and end when [`interruption`] begins.
//!
//! Both kinds of session share sockets, time limits, TLS and the rules by which one `sslmode` may
//! try twice. Errors name the address and never a password.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use pgdyno_connect::conninfo::{ConnectOptions, resolve};
//! use pgdyno_connect::{CONNECT_TIMEOUT, cancel, connect};
//!
//! let dsn_or_dbname = Some("host=db.example".into());
//! let options = ConnectOptions { dsn_or_dbname, ..Default::default() };
//! let servers = resolve(&options)?.servers;
//! let session = connect(&servers.targets[0], CONNECT_TIMEOUT)?;
//! if let Some(key) = &session.key {
//!     cancel(&servers.targets[0], key, Duration::from_secs(1))?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod conninfo;
pub mod control;
mod error;
mod handshake;
pub mod interruption;
mod limit;
mod session;
mod socket;
mod stream;
pub mod tls;
mod tls_stream;

pub use error::{ConnectError, ServerKind};
pub use handshake::Connection;
pub use session::{CONNECT_TIMEOUT, cancel, connect, connect_any};
pub use stream::Stream;
pub use tls_stream::TlsStream;
