//! Why a store cannot be served.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use pgdyno_model::Advice;
use pgdyno_provision::BenchError;

/// Why a store cannot be served.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ServeError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] BenchError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    /// The file of the token cannot be read.
    #[error("cannot read the token in {}", path.display())]
    TokenFile { path: PathBuf, source: io::Error },
    /// The token in the file cannot be used.
    #[error("cannot use the token in {}: {found}", path.display())]
    Token { path: PathBuf, found: String },
    /// The system gives no random numbers for a token.
    #[error("cannot draw a token: {0}")]
    Random(getrandom::Error),
    /// The server's threads cannot be started.
    #[error("cannot start the server's threads")]
    Threads(#[source] io::Error),
}

impl Advice for ServeError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::Store(error) => return error.help(),
            Self::Listen { address, source } => match source.kind() {
                io::ErrorKind::AddrInUse => {
                    let ip = address.ip();
                    return Some(format!(
                        "another program listens there, perhaps another `pgdyno serve`: name \
                         another port with `--listen`, or take a free one with `--listen {}`",
                        SocketAddr::new(ip, 0)
                    ));
                }
                io::ErrorKind::AddrNotAvailable => {
                    "no interface of this machine has that address; `ip address` lists them"
                }
                io::ErrorKind::PermissionDenied => "name a port of 1024 or above with `--listen`",
                _ => return None,
            },
            Self::TokenFile { .. } => {
                "write at least 16 random characters into a file that only you may read, such as \
                 by `(umask 077; openssl rand -hex 32 > FILE)`"
            }
            Self::Token { .. } => {
                "write at least 16 letters, digits, `-`, `_` or `.` into one line, such as by \
                 `(umask 077; openssl rand -hex 32 > FILE)`"
            }
            Self::Random(_) | Self::Threads(_) => return None,
        };
        Some(help.to_owned())
    }
}
