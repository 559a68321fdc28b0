//! Serves a store over HTTP: `pgdyno serve`. And the figures of one run: [`serve_metrics`].
//!
//! [`serve`] listens, answers, and returns once its stop flag is set. The order of a request:
//!
//! 1. `server` accepts the connection, within bounds of number and time.
//! 2. `access` refuses foreign hosts and origins, and whoever lacks the token.
//! 3. `routes` finds the handler of the path. Paths outside `/api` get the front end (`web/`),
//!    which asks for its data.
//! 4. `api` reads the store, on a thread that may block, and answers with JSON.
//!
//! The store is opened for reading only. Notes and digests of runs lie in files of their own beside
//! it. Runs in progress tell of themselves through their live files; the store's lock is not
//! needed.

mod access;
mod api;
mod app;
mod base_path;
mod digest;
mod error;
mod listing;
mod live;
mod metrics;
mod pages;
mod response;
mod routes;
#[cfg(all(test, feature = "schema"))]
mod schema;
mod server;
mod stores;

pub use access::AccessOptions;
pub use base_path::{BasePath, BasePathError};
pub use error::ServeError;
pub use metrics::serve_metrics;
pub use server::{Options, Ready, serve};
