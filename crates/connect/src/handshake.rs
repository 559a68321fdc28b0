//! Encryption, start-up and authentication over one socket.

use std::io;

use pgdyno_model::target::{Address, ChannelBinding, Secret, SslMode, Target};
use pgdyno_wire::auth::{AuthExchange, AuthPolicy, AuthProgress, ScramBinding};
use pgdyno_wire::backend::BackendKey;
use pgdyno_wire::inspect::{MAX_STARTUP_MESSAGE_BYTES, MAX_STARTUP_MESSAGES};
use pgdyno_wire::{Header, Message, ServerError, WireError, frontend, next_frame};

use super::error::{ConnectError, ServerKind};
use super::limit::Limit;
use super::stream::Stream;
use super::tls::{Connector, TlsError, end_point};
use super::tls_stream::{TlsStream, closed_by_server};

/// A session that is ready for its first command. Its socket does not block.
#[derive(Debug)]
pub struct Connection {
    /// The socket.
    pub stream: Stream,
    /// Process id and secret of the backend, which a cancel request names. None if the server sent
    /// none.
    pub key: Option<(u32, Vec<u8>)>,
}

/// How one attempt encrypts its connection.
#[derive(Clone, Copy)]
pub(crate) enum Encryption<'a> {
    /// Not at all.
    No,
    /// With TLS if the server takes it.
    IfTaken(&'a Connector),
    /// With TLS, or the attempt fails.
    Must(&'a Connector),
}

/// An attempt that failed.
pub(crate) struct FailedAttempt {
    pub(crate) error: ConnectError,
    /// Whether the server had agreed to TLS.
    pub(crate) is_encrypted: bool,
}

impl FailedAttempt {
    /// Creates the failure of an attempt that did not come as far as TLS.
    pub(crate) fn before_tls(error: ConnectError) -> Self {
        Self { error, is_encrypted: false }
    }

    /// Whether an attempt with the other kind of encryption could succeed.
    fn may_depend_on_encryption(&self) -> bool {
        match &self.error {
            // Class 28: pg_hba.conf may have other rules for the other kind.
            ConnectError::Server { error, .. } => error.code.starts_with("28"),
            ConnectError::Tls { .. }
            | ConnectError::Lost { .. }
            | ConnectError::Authentication { .. } => true,
            _ => false,
        }
    }
}

/// Calls `attempt` once, or twice where the target's `sslmode` allows to fall back: `allow` begins
/// without TLS, `prefer` with it.
pub(crate) fn with_encryption<T>(
    target: &Target,
    mut attempt: impl FnMut(Encryption<'_>) -> Result<T, FailedAttempt>,
) -> Result<T, ConnectError> {
    let mode = match target.address {
        Address::Unix { .. } => SslMode::Disable,
        Address::Tcp { .. } => target.tls.mode,
    };
    if mode == SslMode::Disable {
        return attempt(Encryption::No).map_err(|failed| failed.error);
    }
    let connector = Connector::shared(&target.tls)
        .map_err(|cause| ConnectError::Tls { address: target.address.clone(), cause })?;
    match mode {
        SslMode::Allow => attempt(Encryption::No).or_else(|plain| {
            if !plain.may_depend_on_encryption() {
                return Err(plain.error);
            }
            attempt(Encryption::Must(&connector)).map_err(|failed| match failed.error {
                ConnectError::NoTls { .. } => plain.error,
                error => error,
            })
        }),
        SslMode::Prefer => attempt(Encryption::IfTaken(&connector)).or_else(|failed| {
            // A server that answers the request for TLS with an error does not know TLS.
            let knows_no_tls = matches!(failed.error, ConnectError::Unexpected { tag: b'E', .. });
            if !(knows_no_tls || failed.is_encrypted && failed.may_depend_on_encryption()) {
                return Err(failed.error);
            }
            // If that fails too, the error of the encrypted attempt says more.
            attempt(Encryption::No).map_err(|_| failed.error)
        }),
        _ => attempt(Encryption::Must(&connector)).map_err(|failed| failed.error),
    }
}

/// The exchange of messages before a session is ready. Call [`Handshake::execute`] once, then
/// [`Handshake::into_session`].
pub(crate) struct Handshake<'a> {
    target: &'a Target,
    stream: Stream,
    limit: Limit<'a>,
    received: Vec<u8>,
    /// Messages received (count).
    messages: u32,
    /// Whether the server agreed to TLS.
    encrypted: bool,
    key: Option<(u32, Vec<u8>)>,
    reported: ReportedSettings,
}

/// Settings that servers from PostgreSQL 14 on report during start-up.
#[derive(Default)]
struct ReportedSettings {
    in_hot_standby: Option<bool>,
    default_read_only: Option<bool>,
}

impl<'a> Handshake<'a> {
    pub(crate) fn new(target: &'a Target, stream: Stream, limit: Limit<'a>) -> Self {
        let (received, reported) = (Vec::new(), ReportedSettings::default());
        Self { target, stream, limit, received, messages: 0, encrypted: false, key: None, reported }
    }

    /// Whether the server agreed to TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Performs the whole exchange, and checks that the session is of the kind that the target
    /// wants.
    pub(crate) fn execute(&mut self, encryption: Encryption<'_>) -> Result<(), ConnectError> {
        self.negotiate_encryption(encryption)?;
        self.start_up()?;
        self.authenticate()?;
        self.until_ready()?;
        if self.target.session_attrs.asks() { self.check_kind() } else { Ok(()) }
    }

    /// Asks the server for TLS and encrypts the connection, as `encryption` demands.
    pub(crate) fn negotiate_encryption(
        &mut self,
        encryption: Encryption<'_>,
    ) -> Result<(), ConnectError> {
        let (connector, is_required) = match encryption {
            Encryption::No => return Ok(()),
            Encryption::IfTaken(connector) => (connector, false),
            Encryption::Must(connector) => (connector, true),
        };
        if self.ask_for_tls()? {
            self.encrypt(connector)
        } else if is_required {
            Err(ConnectError::NoTls { address: self.address(), mode: self.target.tls.mode })
        } else {
            Ok(())
        }
    }

    /// Returns the session, whose socket no longer blocks.
    pub(crate) fn into_session(mut self) -> Result<Connection, ConnectError> {
        self.stream.set_nonblocking().map_err(|e| self.broken(e))?;
        Ok(Connection { stream: self.stream, key: self.key })
    }

    /// Sends the request for TLS, and returns whether the server takes it.
    fn ask_for_tls(&mut self) -> Result<bool, ConnectError> {
        let mut out = Vec::new();
        frontend::ssl_request(&mut out).map_err(|e| self.protocol(e))?;
        self.send(&out)?;
        let mut answer = [0];
        // One byte and no more, since TLS follows it. Bytes that somebody injected before the
        // handshake must not be read as part of the session.
        self.receive(&mut answer, "the request for TLS")?;
        match answer {
            [b'S'] => Ok(true),
            [b'N'] => Ok(false),
            // An error message, whose text nobody has authenticated.
            [tag] => Err(unexpected(self.target, tag)),
        }
    }

    fn encrypt(&mut self, connector: &Connector) -> Result<(), ConnectError> {
        let address = self.address();
        let (Address::Tcp { host, .. }, Stream::Tcp(socket)) = (&address, &self.stream) else {
            unreachable!("only TCP is encrypted");
        };
        self.encrypted = true;
        let tls = |cause| ConnectError::Tls { address: address.clone(), cause };
        let socket = socket.try_clone().map_err(|e| self.broken(e))?;
        let mut stream = TlsStream::new(socket, connector.connection(host).map_err(tls)?);
        loop {
            self.set_limit("the TLS handshake")?;
            match stream.continue_handshake() {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) if is_temporary(&e) => {}
                Err(e) => {
                    return Err(match stream.take_error() {
                        Some(error) => tls(TlsError::handshake(&error)),
                        None => self.broken(e),
                    });
                }
            }
        }
        self.stream = Stream::Tls(Box::new(stream));
        Ok(())
    }

    fn start_up(&mut self) -> Result<(), ConnectError> {
        let target = self.target;
        let identity = [
            ("user", target.user.as_str()),
            ("database", target.database.as_str()),
            ("client_encoding", "UTF8"),
            ("application_name", "pgdyno"),
        ];
        let settings = target.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        // A setting of the target replaces ours of that name.
        let ours = identity
            .into_iter()
            .filter(|(name, _)| !target.settings.iter().any(|(n, _)| n == name));
        let mut out = Vec::new();
        frontend::startup(&mut out, ours.chain(settings)).map_err(|e| self.protocol(e))?;
        self.send(&out)
    }

    /// Returns the channel binding for SCRAM.
    fn binding(&self) -> ScramBinding {
        let end = match &self.stream {
            Stream::Tls(tls) => tls.server_certificate().and_then(end_point),
            Stream::Unix(_) | Stream::Tcp(_) => None,
        };
        match (self.target.tls.channel_binding, end) {
            (ChannelBinding::Disable, _) | (ChannelBinding::Prefer, None) => ScramBinding::None,
            (ChannelBinding::Prefer, Some(end)) => ScramBinding::Offered(end),
            (ChannelBinding::Require, Some(end)) => ScramBinding::Required(end),
            (ChannelBinding::Require, None) if self.encrypted => ScramBinding::Missing(
                "the server's certificate is signed in a way that defines none",
            ),
            (ChannelBinding::Require, None) => {
                ScramBinding::Missing("the connection is not encrypted")
            }
        }
    }

    /// Checks that the session is of the kind that the target wants.
    fn check_kind(&mut self) -> Result<(), ConnectError> {
        let (in_recovery, read_only) =
            match (self.reported.in_hot_standby, self.reported.default_read_only) {
                (Some(standby), Some(read_only)) => (standby, read_only),
                _ => self.ask_kind()?,
            };
        let kind = ServerKind::new(in_recovery, read_only);
        kind.check(self.target)
    }

    fn ask_kind(&mut self) -> Result<(bool, bool), ConnectError> {
        let mut out = Vec::new();
        frontend::query(&mut out, ServerKind::QUERY.as_bytes()).map_err(|e| self.protocol(e))?;
        self.send(&out)?;
        let mut kind = (false, false);
        loop {
            let ready = self.next("the question what it is", |_, _, message| {
                if let Message::DataRow(row) = message {
                    let mut values = row.values().map(|value| value.is_some_and(is_on));
                    kind = (values.next().unwrap_or(false), values.next().unwrap_or(false));
                }
                Ok(matches!(message, Message::ReadyForQuery(_)))
            })?;
            if ready {
                return Ok(kind);
            }
        }
    }

    /// Limits the next read or write, so that the time limit is checked in between.
    fn set_limit(&mut self, step: &'static str) -> Result<(), ConnectError> {
        let wait = self.limit.next_wait(&self.target.address, step)?;
        self.stream.set_limit(wait).map_err(|e| self.broken(e))
    }

    fn address(&self) -> Address {
        self.target.address.clone()
    }

    fn protocol(&self, cause: WireError) -> ConnectError {
        ConnectError::Protocol { address: self.address(), cause }
    }

    fn broken(&mut self, cause: io::Error) -> ConnectError {
        let address = self.address();
        match self.stream.take_tls_error() {
            Some(tls) => ConnectError::Tls { address, cause: TlsError::handshake(&tls) },
            None => ConnectError::Lost { address, cause },
        }
    }

    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> Result<(), ConnectError> {
        while !bytes.is_empty() {
            self.set_limit("start-up")?;
            match self.stream.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if is_temporary(&e) => {}
                Err(e) => return Err(self.broken(e)),
            }
        }
        Ok(())
    }

    /// Receives the bytes that are there, at least one.
    fn receive(&mut self, into: &mut [u8], step: &'static str) -> Result<usize, ConnectError> {
        loop {
            self.set_limit(step)?;
            match self.stream.read(into) {
                Ok(0) => return Err(self.broken(closed_by_server())),
                Ok(count) => return Ok(count),
                Err(e) if is_temporary(&e) => {}
                Err(e) => return Err(self.broken(e)),
            }
        }
    }

    /// Waits until the server closes the connection, within the limit.
    pub(crate) fn wait_closed(&mut self) {
        while self.receive(&mut [0; 64], "wait for the end of a cancel request").is_ok() {}
    }

    /// Receives the next message and passes it to `take`. An `ErrorResponse` becomes an error.
    fn next<T>(
        &mut self,
        step: &'static str,
        take: impl FnOnce(&Target, u8, Message<'_>) -> Result<T, ConnectError>,
    ) -> Result<T, ConnectError> {
        loop {
            if let Some(header) = Header::read(&self.received).map_err(|e| self.protocol(e))?
                && header.body > MAX_STARTUP_MESSAGE_BYTES
            {
                return Err(self.protocol(WireError::TooLong {
                    tag: header.tag,
                    length: header.body as u64,
                    max: MAX_STARTUP_MESSAGE_BYTES,
                }));
            }
            if let Some(frame) = next_frame(&self.received).map_err(|e| self.protocol(e))? {
                self.messages += 1;
                if self.messages > MAX_STARTUP_MESSAGES {
                    let (tag, max) = (frame.tag, MAX_STARTUP_MESSAGES);
                    return Err(self.protocol(WireError::TooMany { tag, max }));
                }
                let length = frame.len();
                let message = Message::read(frame).map_err(|e| self.protocol(e))?;
                let taken = match message {
                    Message::ErrorResponse(fields) => Err(ConnectError::Server {
                        address: self.address(),
                        user: self.target.user.clone(),
                        database: self.target.database.clone(),
                        error: Box::new(ServerError::from_fields(fields)),
                    }),
                    other => take(self.target, frame.tag, other),
                };
                self.received.drain(..length);
                return taken;
            }
            let mut scratch = [0; 4096];
            let count = self.receive(&mut scratch, step)?;
            self.received.extend_from_slice(&scratch[..count]);
        }
    }

    fn authenticate(&mut self) -> Result<(), ConnectError> {
        let target = self.target;
        let password = target.password.as_ref().map(Secret::reveal);
        let is_private = !self.stream.is_public();
        let gate = AuthPolicy::new(target.require_auth.clone(), is_private);
        let mut exchange = AuthExchange::new(&target.user, password)
            .with_policy(gate)
            .with_binding(self.binding());
        loop {
            let mut answer = Vec::new();
            let progress = self.next("authentication", |target, tag, message| match message {
                Message::Authentication(said) => {
                    exchange.answer(said, &mut answer).map_err(|cause| {
                        ConnectError::Authentication {
                            address: target.address.clone(),
                            user: target.user.clone(),
                            cause,
                        }
                    })
                }
                Message::NegotiateVersion | Message::NoticeResponse(_) => {
                    Ok(AuthProgress::Continues)
                }
                _ => Err(unexpected(target, tag)),
            })?;
            self.send(&answer)?;
            if progress == AuthProgress::Accepted {
                return Ok(());
            }
        }
    }

    fn until_ready(&mut self) -> Result<(), ConnectError> {
        let mut key = None;
        let mut reported = ReportedSettings::default();
        loop {
            let ready = self.next("start-up", |target, tag, message| match message {
                Message::ReadyForQuery(_) => Ok(true),
                Message::BackendKeyData(BackendKey { process, secret }) => {
                    key = Some((process, secret.to_vec()));
                    Ok(false)
                }
                Message::ParameterStatus { name, value } => {
                    match name {
                        b"in_hot_standby" => reported.in_hot_standby = Some(is_on(value)),
                        b"default_transaction_read_only" => {
                            reported.default_read_only = Some(is_on(value));
                        }
                        _ => {}
                    }
                    Ok(false)
                }
                Message::NoticeResponse(_) | Message::NegotiateVersion => Ok(false),
                _ => Err(unexpected(target, tag)),
            })?;
            if ready {
                (self.key, self.reported) = (key, reported);
                return self.drain();
            }
        }
    }

    /// Reads messages that arrived with `ReadyForQuery`. Only asynchronous ones may follow it.
    fn drain(&mut self) -> Result<(), ConnectError> {
        while !self.received.is_empty() {
            self.next("start-up", |target, tag, message| match message {
                Message::NoticeResponse(_)
                | Message::ParameterStatus { .. }
                | Message::Notification => Ok(()),
                _ => Err(unexpected(target, tag)),
            })?;
        }
        Ok(())
    }
}

fn unexpected(target: &Target, tag: u8) -> ConnectError {
    ConnectError::Unexpected { address: target.address.clone(), tag }
}

/// Whether the call is to be repeated while time is left.
fn is_temporary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn is_on(value: &[u8]) -> bool {
    matches!(value, b"on" | b"true" | b"t")
}
