//! Control connections: pgdyno's own sessions, beside the load.
//!
//! [`connect`] opens a session whose unqualified names mean PostgreSQL's own, so that the owner of
//! a database cannot have pgdyno run code ([`SEARCH_PATH`]). [`connect_to_own`] serves servers that
//! pgdyno itself made. [`ControlClient`] also works behind a pooler. All of them block, and fail
//! when [`crate::interruption`] begins. A statement that waits for somebody else at the server is
//! reported, and given up ([`wait`]).
//!
//! ```no_run
//! use pgdyno_connect::control;
//! use pgdyno_model::target::{Address, Target};
//!
//! let address = Address::Unix { directory: "/run/postgresql".into(), port: 5432 };
//! let mut client = control::connect(&Target::new(address, "postgres", "postgres"))?;
//! let row = client.query_one("SELECT pg_catalog.version()", &[])?;
//! let version: String = row.try_get(0)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cancel;
mod client;
mod config;
mod error;
mod open;
mod questions;
mod session;
mod transport;
pub mod wait;
mod watcher;

pub use cancel::CancelToken;
pub use client::{Client, CopyInWriter, NoticeHandler, Transaction};
pub use config::SEARCH_PATH;
pub use error::{ControlError, error_text, server_error};
pub use open::{
    connect, connect_to_own, connect_to_schema, path_of_schema, schemas_of_user, try_settings,
};
pub use session::ControlClient;
