//! The worker's side.

use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::error::JoinError;
use super::stream::{Reader, Writer, shake_hands};
use super::token::Token;
use super::{Answer, Greeting, HANDSHAKE, tls};
use crate::error::WorkerError;
use crate::protocol::frame;
use crate::serve::{ABANDONED, serve};

/// Joins the coordinator at `address` (`HOST:PORT`) with the token in a file, which is standard
/// input if it is `-`, and serves one load. Reports call the worker `name`, or by its host's name.
///
/// # Errors
/// The coordinator cannot be reached, is another, or refuses; or the load came to nothing.
pub fn serve_joined(
    address: &str,
    token_file: &Path,
    name: Option<&str>,
    cpus_allowed: Option<f64>,
) -> Result<(), WorkerError> {
    let name = name.map_or_else(host, str::to_owned);
    let (reader, writer) = join(address, token_file, name).map_err(WorkerError::Join)?;
    serve(reader, writer, cpus_allowed)
}

fn join(address: &str, token_file: &Path, host: String) -> Result<(Reader, Writer), JoinError> {
    let token = Arc::new(Token::read(token_file).map_err(JoinError::Token)?);
    let socket = connect(address)
        .map_err(|error| JoinError::Connect { address: address.to_owned(), error })?;
    let until = Instant::now() + HANDSHAKE;
    let shaken = tls::client(Arc::clone(&token))
        .map_err(io::Error::other)
        .and_then(|client| shake_hands(socket, client, until, tls::channel));
    let (mut reader, mut writer, channel) =
        shaken.map_err(|error| no_coordinator(address, &error))?;
    let greeting = Greeting { proof: token.proof(&channel), host };
    let ended = |error: String| JoinError::Ended { address: address.to_owned(), error };
    frame::write(&mut writer, &greeting).map_err(|error| ended(error.to_string()))?;
    loop {
        match frame::read::<Answer>(&mut reader) {
            Ok(Some(Answer::Accepted | Answer::Waiting)) => {}
            Ok(Some(Answer::Refused(reason))) => {
                return Err(JoinError::Refused { address: address.to_owned(), reason });
            }
            Ok(Some(Answer::Begin)) => break,
            Ok(None) => return Err(ended("it closed the connection".to_owned())),
            Err(error) => return Err(ended(error.to_string())),
        }
        let deadline = reader.set_deadline(Some(Instant::now() + ABANDONED));
        deadline.map_err(|error| ended(error.to_string()))?;
    }
    reader.set_deadline(None).map_err(|error| ended(error.to_string()))?;
    Ok((reader, writer))
}

/// Connects to the first address of a host that answers.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "no such host");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, HANDSHAKE) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Says why hands could not be shaken.
fn no_coordinator(address: &str, error: &io::Error) -> JoinError {
    let address = address.to_owned();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let reason = match inner {
        Some(rustls::Error::InvalidCertificate(_)) => return JoinError::Certificate(address),
        Some(rustls::Error::InvalidMessage(_)) => "it does not speak TLS".to_owned(),
        Some(error) => error.to_string(),
        None if error.kind() == ErrorKind::TimedOut => {
            format!("it says nothing for {} s", HANDSHAKE.as_secs())
        }
        None if error.kind() == ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        None => error.to_string(),
    };
    JoinError::NoCoordinator { address, reason }
}

/// This host's name.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
