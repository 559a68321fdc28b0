//! TLS for connections to PostgreSQL: whom libpq's `sslmode` trusts, and what is shown to the
//! server.
//!
//! A [`Connector`] is made from [`Tls`]; it gives a [`rustls::ClientConnection`] for each
//! connection, which the caller feeds. What SCRAM ties itself to is [`end_point`].

mod certificate;
mod connector;
mod error;
mod verify;

pub use certificate::end_point;
pub use connector::Connector;
pub use error::TlsError;
pub use pgdyno_model::target::{RootCert, SslMode, Tls};
pub use rustls;
