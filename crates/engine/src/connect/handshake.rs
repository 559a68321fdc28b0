//! Encryption, start-up and authentication over one socket.

use std::io;

use pgdyno_model::target::{Address, ChannelBinding, Target};
use pgdyno_tls::{Connector, TlsError};
use pgdyno_wire::auth::{Binding, Exchange, Gate, Progress};
use pgdyno_wire::backend::BackendKey;
use pgdyno_wire::inspect::{LONGEST_START_UP_MESSAGE, MOST_START_UP_MESSAGES};
use pgdyno_wire::{Message, ServerError, WireError, frontend};

use super::stream::{Stream, TlsStream};
use super::{ConnectError, Connection, Encryption, Limit};

/// The conversation before a session is ready.
pub(super) struct Handshake<'a> {
    target: &'a Target,
    stream: Stream,
    limit: Limit<'a>,
    received: Vec<u8>,
    /// Messages received (count).
    messages: u32,
    /// Whether the server agreed to TLS.
    encrypted: bool,
    key: Option<(u32, Vec<u8>)>,
    /// What the server told of itself.
    told: Told,
}

/// Settings that servers from 14 on tell unasked.
#[derive(Default)]
struct Told {
    in_hot_standby: Option<bool>,
    default_read_only: Option<bool>,
}

impl<'a> Handshake<'a> {
    pub(super) fn new(target: &'a Target, stream: Stream, limit: Limit<'a>) -> Self {
        let (received, told) = (Vec::new(), Told::default());
        Self { target, stream, limit, received, messages: 0, encrypted: false, key: None, told }
    }

    /// Whether TLS was agreed upon.
    pub(super) fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// From the first byte to a session that is ready and of the kind that is wanted.
    pub(super) fn perform(&mut self, encryption: Encryption<'_>) -> Result<(), ConnectError> {
        self.agree_on(encryption)?;
        self.start_up()?;
        self.authenticate()?;
        self.until_ready()?;
        if self.target.session_attrs.asks() { self.check_kind() } else { Ok(()) }
    }

    /// Encrypts the connection, if that is wanted and the server can.
    pub(super) fn agree_on(&mut self, encryption: Encryption<'_>) -> Result<(), ConnectError> {
        match encryption {
            Encryption::No => Ok(()),
            Encryption::IfTaken(connector) => {
                if self.ask_for_tls()? {
                    self.encrypt(connector)?;
                }
                Ok(())
            }
            Encryption::Must(connector) => {
                if !self.ask_for_tls()? {
                    return Err(ConnectError::NoTls {
                        address: self.address(),
                        mode: self.target.tls.mode,
                    });
                }
                self.encrypt(connector)
            }
        }
    }

    /// The session; its socket no longer blocks.
    pub(super) fn into_connection(self) -> Result<Connection, ConnectError> {
        let (mut stream, address) = (self.stream, &self.target.address);
        let ready = stream.set_nonblocking();
        ready.map_err(|cause| ConnectError::Lost { address: address.clone(), cause })?;
        Ok(Connection { stream, key: self.key })
    }

    /// Asks whether the server takes TLS.
    fn ask_for_tls(&mut self) -> Result<bool, ConnectError> {
        let mut out = Vec::new();
        frontend::ssl_request(&mut out).map_err(|e| self.protocol(e))?;
        self.send(&out)?;
        let mut answer = [0];
        loop {
            self.set_limit("the request for TLS")?;
            // One byte, no more: what follows it is TLS already, or nobody's business.
            match self.stream.read(&mut answer) {
                Ok(0) => {
                    let cause =
                        io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it");
                    return Err(self.broken(cause));
                }
                Ok(_) => break,
                Err(e) if is_passing(&e) => {}
                Err(e) => return Err(self.broken(e)),
            }
        }
        match answer {
            [b'S'] => Ok(true),
            [b'N'] => Ok(false),
            // An error, whose words nobody vouches for.
            [tag] => Err(ConnectError::Unexpected { address: self.address(), tag }),
        }
    }

    fn encrypt(&mut self, connector: &Connector) -> Result<(), ConnectError> {
        let address = self.address();
        let (Address::Tcp { host, .. }, Stream::Tcp(socket)) = (&address, &self.stream) else {
            unreachable!("only TCP is encrypted");
        };
        self.encrypted = true;
        let tls = |cause| ConnectError::Tls { address: address.clone(), cause };
        let socket = socket
            .try_clone()
            .map_err(|cause| ConnectError::Lost { address: address.clone(), cause })?;
        let mut stream = TlsStream::new(socket, connector.connection(host).map_err(tls)?);
        loop {
            self.set_limit("the TLS handshake")?;
            match stream.shake() {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) if is_passing(&e) => {}
                Err(e) => return Err(self.broken(e)),
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
        // A setting of the target's takes the place of ours.
        let ours = identity
            .into_iter()
            .filter(|(name, _)| !target.settings.iter().any(|(n, _)| n == name));
        let mut out = Vec::new();
        frontend::startup(&mut out, ours.chain(settings)).map_err(|e| self.protocol(e))?;
        self.send(&out)
    }

    /// What SCRAM is to be tied to.
    fn binding(&self) -> Binding {
        let end = match &self.stream {
            Stream::Tls(tls) => tls.server_certificate().and_then(pgdyno_tls::end_point),
            Stream::Unix(_) | Stream::Tcp(_) => None,
        };
        match (self.target.tls.channel_binding, end) {
            (ChannelBinding::Disable, _) | (ChannelBinding::Prefer, None) => Binding::None,
            (ChannelBinding::Prefer, Some(end)) => Binding::Offered(end),
            (ChannelBinding::Require, Some(end)) => Binding::Required(end),
            (ChannelBinding::Require, None) if self.encrypted => {
                Binding::Missing("the server's certificate is signed in a way that defines none")
            }
            (ChannelBinding::Require, None) => Binding::Missing("the connection is not encrypted"),
        }
    }

    /// Whether the session is of the kind that is wanted.
    fn check_kind(&mut self) -> Result<(), ConnectError> {
        let (in_recovery, read_only) = match (self.told.in_hot_standby, self.told.default_read_only)
        {
            (Some(standby), Some(read_only)) => (standby, read_only),
            _ => self.ask_kind()?,
        };
        let wanted = self.target.session_attrs;
        if wanted.accepts(in_recovery, read_only) {
            return Ok(());
        }
        let found = match (in_recovery, read_only) {
            (true, _) => "a standby",
            (false, true) => "read-only",
            (false, false) => "a primary that takes writes",
        };
        Err(ConnectError::NotWanted { address: self.address(), wanted, found })
    }

    fn ask_kind(&mut self) -> Result<(bool, bool), ConnectError> {
        const ASKED: &[u8] = b"SELECT pg_catalog.pg_is_in_recovery()::pg_catalog.text, \
            pg_catalog.current_setting('transaction_read_only')";
        let mut out = Vec::new();
        frontend::query(&mut out, ASKED).map_err(|e| self.protocol(e))?;
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

    /// Has the next read or write wait no longer than the limit, or until it is time to look at it.
    fn set_limit(&self, step: &'static str) -> Result<(), ConnectError> {
        let wait = self.limit.next_wait(&self.target.address, step)?;
        self.stream.set_limit(wait).map_err(|e| self.broken(e))
    }

    fn address(&self) -> Address {
        self.target.address.clone()
    }

    fn protocol(&self, cause: WireError) -> ConnectError {
        ConnectError::Protocol { address: self.address(), cause }
    }

    fn broken(&self, cause: io::Error) -> ConnectError {
        if let Some(tls) = cause.get_ref().and_then(|inner| inner.downcast_ref()) {
            return ConnectError::Tls { address: self.address(), cause: TlsError::handshake(tls) };
        }
        ConnectError::Lost { address: self.address(), cause }
    }

    pub(super) fn send(&mut self, mut bytes: &[u8]) -> Result<(), ConnectError> {
        while !bytes.is_empty() {
            self.set_limit("start-up")?;
            match self.stream.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if is_passing(&e) => {}
                Err(e) => return Err(self.broken(e)),
            }
        }
        Ok(())
    }

    /// Awaits the next message and gives it to `take`.
    fn next<T>(
        &mut self,
        step: &'static str,
        take: impl FnOnce(&Target, u8, Message<'_>) -> Result<T, ConnectError>,
    ) -> Result<T, ConnectError> {
        loop {
            if let Some(header) =
                pgdyno_wire::Header::read(&self.received).map_err(|e| self.protocol(e))?
                && header.body > LONGEST_START_UP_MESSAGE
            {
                return Err(self.protocol(WireError::TooLong {
                    tag: header.tag,
                    length: header.body as u64,
                    max: LONGEST_START_UP_MESSAGE,
                }));
            }
            if let Some(frame) =
                pgdyno_wire::next_frame(&self.received).map_err(|e| self.protocol(e))?
            {
                self.messages += 1;
                if self.messages > MOST_START_UP_MESSAGES {
                    let tag = frame.tag;
                    return Err(
                        self.protocol(WireError::TooMany { tag, max: MOST_START_UP_MESSAGES })
                    );
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
            self.set_limit(step)?;
            let mut scratch = [0; 4096];
            match self.stream.read(&mut scratch) {
                Ok(0) => {
                    let cause =
                        io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it");
                    return Err(self.broken(cause));
                }
                Ok(n) => self.received.extend_from_slice(&scratch[..n]),
                Err(e) if is_passing(&e) => {}
                Err(e) => return Err(self.broken(e)),
            }
        }
    }

    fn authenticate(&mut self) -> Result<(), ConnectError> {
        let target = self.target;
        let password = target.password.as_ref().map(pgdyno_model::target::Secret::reveal);
        let is_private = !matches!(self.stream, Stream::Tcp(_));
        let gate = Gate::new(target.require_auth.clone(), is_private);
        let mut exchange = Exchange::new(&target.user, password).behind(gate).bound(self.binding());
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
                Message::NegotiateVersion | Message::NoticeResponse(_) => Ok(Progress::Continues),
                _ => Err(ConnectError::Unexpected { address: target.address.clone(), tag }),
            })?;
            self.send(&answer)?;
            if progress == Progress::Accepted {
                return Ok(());
            }
        }
    }

    fn until_ready(&mut self) -> Result<(), ConnectError> {
        let mut key = None;
        let mut told = Told::default();
        loop {
            let ready = self.next("start-up", |target, tag, message| match message {
                Message::ReadyForQuery(_) => Ok(true),
                Message::BackendKeyData(BackendKey { process, secret }) => {
                    key = Some((process, secret.to_vec()));
                    Ok(false)
                }
                Message::ParameterStatus { name, value } => {
                    match name {
                        b"in_hot_standby" => told.in_hot_standby = Some(is_on(value)),
                        b"default_transaction_read_only" => {
                            told.default_read_only = Some(is_on(value))
                        }
                        _ => {}
                    }
                    Ok(false)
                }
                Message::NoticeResponse(_) | Message::NegotiateVersion => Ok(false),
                _ => Err(ConnectError::Unexpected { address: target.address.clone(), tag }),
            })?;
            if ready {
                (self.key, self.told) = (key, told);
                return self.drain();
            }
        }
    }

    /// Reads what came with the last message: nothing is owed before it is asked for, but for
    /// notices.
    fn drain(&mut self) -> Result<(), ConnectError> {
        while !self.received.is_empty() {
            self.next("start-up", |target, tag, message| match message {
                Message::NoticeResponse(_)
                | Message::ParameterStatus { .. }
                | Message::Notification(_) => Ok(()),
                _ => Err(ConnectError::Unexpected { address: target.address.clone(), tag }),
            })?;
        }
        Ok(())
    }
}

/// Whether the same is to be tried again, as long as there is time for it.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn is_on(value: &[u8]) -> bool {
    matches!(value, b"on" | b"true" | b"t")
}
