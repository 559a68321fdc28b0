//! Errors of TLS.

use std::io;
use std::path::PathBuf;

use pgdyno_model::target::SslMode;
use pgdyno_model::{Advice, FailureKind};

/// A connection cannot be encrypted as `sslmode` demands.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read the {what} {}: {cause}", path.display())]
    Read { what: &'static str, path: PathBuf, cause: io::Error },
    /// A file has the wrong content.
    #[error("cannot use the {what} {}: {found}", path.display())]
    Content {
        what: &'static str,
        path: PathBuf,
        /// Fault of the content.
        found: String,
    },
    /// Other users may read the private key.
    #[error(
        "cannot use the private key {}: its permissions are {mode:04o}, so that others may read it",
        path.display()
    )]
    KeyPermissions { path: PathBuf, mode: u32 },
    /// The client certificate has no private key.
    #[error("there is no private key for the certificate {}", .0.display())]
    NoKey(PathBuf),
    /// `sslmode` verifies certificates, and there is no root certificate.
    #[error(
        "sslmode={0} checks the server's certificate, and there is no root \
         certificate to check it by"
    )]
    NoRoot(SslMode),
    /// The system has no root certificates, or they cannot be read.
    #[error(
        "cannot find the root certificates of this system{}",
        .0.as_ref().map_or_else(String::new, |why| format!(": {why}"))
    )]
    NoSystemRoots(Option<String>),
    /// `sslmode=verify-full` with a host that no certificate can name.
    #[error("`{0}` is not a host name, so no certificate can name it")]
    HostName(String),
    /// No trusted root certificate signed the server's certificate.
    #[error(
        "the TLS handshake failed: the server's certificate is not signed by a root certificate \
         that is trusted"
    )]
    UnknownIssuer,
    /// The server's certificate names another host.
    #[error("the TLS handshake failed: the server's certificate is for another host ({0})")]
    OtherHost(String),
    /// The handshake failed for any other reason.
    #[error("the TLS handshake failed: {0}")]
    Handshake(String),
}

impl TlsError {
    /// Classifies the failure of a handshake.
    pub fn handshake(error: &rustls::Error) -> Self {
        use rustls::{AlertDescription, CertificateError, Error};
        match error {
            Error::InvalidCertificate(CertificateError::UnknownIssuer) => Self::UnknownIssuer,
            Error::InvalidCertificate(
                wrong @ (CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. }),
            ) => Self::OtherHost(wrong.to_string()),
            Error::InvalidCertificate(other) => {
                Self::Handshake(format!("the server's certificate is not valid ({other})"))
            }
            Error::AlertReceived(
                AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure,
                // As the server does where it wants a client certificate.
            ) => Self::Handshake(format!("{error}; the server may want a client certificate")),
            other => Self::Handshake(other.to_string()),
        }
    }
}

impl Advice for TlsError {
    fn help(&self) -> Option<String> {
        match self {
            Self::KeyPermissions { path, .. } => Some(format!("chmod 0600 {}", path.display())),
            Self::NoKey(_) => Some("name it with sslkey".into()),
            Self::NoRoot(_) => Some(
                "name the root certificate with sslrootcert (`system`: those of this system), or \
                 use sslmode=require to trust any server"
                    .into(),
            ),
            Self::NoSystemRoots(_) => {
                Some("install ca-certificates, or name a file with sslrootcert".into())
            }
            Self::UnknownIssuer => {
                Some("name the root certificate that signed it with sslrootcert".into())
            }
            Self::OtherHost(_) => {
                Some("connect by the name in the certificate, or use sslmode=verify-ca".into())
            }
            _ => None,
        }
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Server
    }
}
