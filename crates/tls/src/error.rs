//! What can be wrong with TLS.

use std::io;
use std::path::PathBuf;

use pgdyno_model::target::SslMode;

/// A connection cannot be encrypted as it should be.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read the {what} {}: {cause}", path.display())]
    Read {
        /// What it should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A file does not hold what it should.
    #[error("cannot use the {what} {}: {found}", path.display())]
    Content {
        /// What it should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        found: String,
    },
    /// Others may read the private key.
    #[error("cannot use the private key {}: its permissions are {mode:04o}, so that others may read it", path.display())]
    KeyPermissions {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A certificate without a key.
    #[error("there is no private key for the certificate {}", .0.display())]
    NoKey(PathBuf),
    /// Nobody to trust, and certificates are to be checked.
    #[error(
        "sslmode={0} checks the server's certificate, and there is no root certificate to check it by"
    )]
    NoRoot(SslMode),
    /// The system trusts nobody, or does not tell.
    #[error("cannot find the root certificates of this system{}", .0.as_ref().map_or_else(String::new, |why| format!(": {why}")))]
    NoSystemRoots(Option<String>),
    /// A certificate can never be made out to this.
    #[error("`{0}` is no host name, so that no certificate can be made out to it")]
    HostName(String),
    /// The handshake failed.
    #[error("the TLS handshake failed: {0}")]
    Handshake(String),
}

impl TlsError {
    /// The failure of a handshake with `host`, in words.
    #[must_use]
    pub fn handshake(error: &rustls::Error) -> Self {
        use rustls::{AlertDescription, CertificateError, Error};
        Self::Handshake(match error {
            Error::InvalidCertificate(wrong) => match wrong {
                CertificateError::UnknownIssuer => {
                    "the server's certificate is not signed by a root certificate that is trusted"
                        .into()
                }
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => {
                    format!("the server's certificate is not made out to this host ({wrong})")
                }
                other => format!("the server's certificate is not valid ({other})"),
            },
            Error::AlertReceived(
                AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure,
            ) => format!("{error}; it may want a client certificate"),
            other => other.to_string(),
        })
    }

    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::KeyPermissions { path, .. } => Some(format!("chmod 0600 {}", path.display())),
            Self::NoKey(_) => Some("name it with sslkey".into()),
            Self::NoRoot(_) => Some(
                "name the root certificate with sslrootcert (`system`: those of this system), or use sslmode=require \
                 to trust any server"
                    .into(),
            ),
            Self::NoSystemRoots(_) => Some("install ca-certificates, or name a file with sslrootcert".into()),
            Self::Handshake(why) if why.contains("not signed by") => {
                Some("name the root certificate that signed it with sslrootcert".into())
            }
            Self::Handshake(why) if why.contains("not made out") => {
                Some("connect by the name in the certificate, or use sslmode=verify-ca".into())
            }
            _ => None,
        }
    }
}
