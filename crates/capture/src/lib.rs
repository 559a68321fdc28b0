//! Captures the load of a PostgreSQL server as a workload, and says how alike a replay is.
//!
//! [`capture()`] watches `pg_stat_statements` and reads the schema and `pg_stats`. The folder that
//! it writes holds statements, tables and shares of values, and no value: a workload like any
//! other, with [`Captured`] beside it. [`replay()`] runs it on another server and compares what
//! that server did ([`Fidelity`]).
//!
//! 1. `ask` looks at statistics; [`activity`] is the difference between two looks.
//! 2. `statement` and `place` say which tables and columns a statement's parameters belong to.
//! 3. `inspect` reads tables, `fill` decides how their columns are filled, `draw` how values of
//!    parameters are drawn; `script` joins the two.
//! 4. `mix` guesses which statements ran in one transaction.
//! 5. `schema_sql`, `toml_column`, `workload_file` and `folder` write the files.

pub mod activity;
mod ask;
mod capture;
mod catalog;
pub mod document;
mod draw;
mod error;
mod fidelity;
mod fill;
mod folder;
mod inspect;
mod mix;
mod place;
mod replay;
mod schema_sql;
mod script;
mod statement;
mod toml_column;
mod workload_file;

pub use capture::{CaptureOptions, capture};
pub use document::Captured;
pub use error::CaptureError;
pub use fidelity::{Agreement, Fidelity, StatementFidelity};
pub use folder::read;
pub use pgdyno_connect::conninfo::ConnectOptions;
pub use replay::{ReplayOptions, ReplayRate, replay};
