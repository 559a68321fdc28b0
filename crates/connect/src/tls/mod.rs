//! TLS for connections to PostgreSQL: which servers libpq's `sslmode` trusts, and which
//! certificate the client presents.
//!
//! [`Connector::shared`] reads the files that a [`Tls`](pgdyno_model::target::Tls) names.
//! [`Connector::connection`] then starts one [`rustls::ClientConnection`], which the caller feeds
//! with bytes. After the handshake, [`end_point`] hashes the server's certificate for SCRAM's
//! channel binding.

mod certificate;
mod connector;
mod error;
mod verify;

pub use certificate::end_point;
pub use connector::Connector;
pub use error::TlsError;
