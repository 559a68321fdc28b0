//! Messages for the server, appended to a buffer of the caller's.
//!
//! A function that fails leaves the buffer unchanged.
//!
//! ```
//! use pgdyno_wire::frontend;
//!
//! let mut out = Vec::new();
//! frontend::parse(&mut out, "s1", b"SELECT $1")?;
//! let execution = frontend::Execution::new("s1", 1, false)?;
//! execution.write(&mut out, true, |parameters| parameters.text(|out| out.push(b'7')))?;
//! assert!(out.ends_with(b"S\0\0\0\x04"));
//! # Ok::<(), pgdyno_wire::WireError>(())
//! ```

use crate::WireError;
use crate::frame::MAX_MESSAGE;

/// Protocol version 3.0.
const VERSION: u32 = 3 << 16;
/// Code of a cancel request, in place of a version.
const CANCEL: u32 = 1234 << 16 | 5678;
/// Code of a request for TLS, in place of a version.
const SSL: u32 = 80_877_103;

/// Appends a message: its type byte (none for start-up and cancel), its length, and what `body`
/// appends.
fn message(
    out: &mut Vec<u8>,
    name: &'static str,
    tag: Option<u8>,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let begin = out.len();
    out.extend(tag);
    let at = out.len();
    out.extend([0; 4]);
    let done = body(out).and_then(|()| {
        let end = out.len();
        set_length(out, name, at, end)
    });
    if done.is_err() {
        out.truncate(begin);
    }
    done
}

/// Writes the length of the message that ends at `end` to its place, `at`.
#[inline]
fn set_length(out: &mut [u8], name: &'static str, at: usize, end: usize) -> Result<(), WireError> {
    let length = end - at;
    match u32::try_from(length) {
        Ok(n) if length <= MAX_MESSAGE => {
            out[at..at + 4].copy_from_slice(&n.to_be_bytes());
            Ok(())
        }
        _ => Err(WireError::TooLarge {
            message: name,
            field: "length",
            value: length,
            max: MAX_MESSAGE,
        }),
    }
}

fn string(
    out: &mut Vec<u8>,
    message: &'static str,
    field: &'static str,
    text: &[u8],
) -> Result<(), WireError> {
    if text.contains(&0) {
        return Err(WireError::EmbeddedNul { message, field });
    }
    out.extend_from_slice(text);
    out.push(0);
    Ok(())
}

/// Appends the first message: protocol version and parameters (`user`, `database`, settings).
///
/// # Errors
/// A name or value contains a NUL, or a name is empty, which would end the list.
pub fn startup<'a>(
    out: &mut Vec<u8>,
    parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), WireError> {
    const NAME: &str = "StartupMessage";
    message(out, NAME, None, |out| {
        out.extend(VERSION.to_be_bytes());
        for (name, value) in parameters {
            if name.is_empty() {
                return Err(WireError::Truncated { message: NAME, field: "parameter name" });
            }
            string(out, NAME, "parameter name", name.as_bytes())?;
            string(out, NAME, "parameter value", value.as_bytes())?;
        }
        out.push(0);
        Ok(())
    })
}

/// Appends a request for TLS, to be sent before the first message. The server answers with one
/// byte, `S` or `N`.
///
/// # Errors
/// None: the message has no fields.
pub fn ssl_request(out: &mut Vec<u8>) -> Result<(), WireError> {
    message(out, "SSLRequest", None, |out| {
        out.extend(SSL.to_be_bytes());
        Ok(())
    })
}

/// Appends a request to cancel the statement of backend `process`, for a connection of its own.
///
/// # Errors
/// The secret is too long.
pub fn cancel_request(out: &mut Vec<u8>, process: u32, secret: &[u8]) -> Result<(), WireError> {
    message(out, "CancelRequest", None, |out| {
        out.extend(CANCEL.to_be_bytes());
        out.extend(process.to_be_bytes());
        out.extend_from_slice(secret);
        Ok(())
    })
}

/// Appends a password, in clear text or as an MD5 hash.
///
/// # Errors
/// The password contains a NUL.
pub fn password(out: &mut Vec<u8>, password: &[u8]) -> Result<(), WireError> {
    message(out, "PasswordMessage", Some(b'p'), |out| {
        string(out, "PasswordMessage", "password", password)
    })
}

/// Appends the choice of a SASL mechanism, with the first step of the exchange.
///
/// # Errors
/// The mechanism's name contains a NUL, or the step is too long.
pub fn sasl_initial(out: &mut Vec<u8>, mechanism: &str, step: &[u8]) -> Result<(), WireError> {
    const NAME: &str = "SASLInitialResponse";
    message(out, NAME, Some(b'p'), |out| {
        string(out, NAME, "mechanism", mechanism.as_bytes())?;
        value(out, NAME, "step", Some(step))
    })
}

/// Appends a further step of a SASL exchange.
///
/// # Errors
/// The step is too long.
pub fn sasl_response(out: &mut Vec<u8>, step: &[u8]) -> Result<(), WireError> {
    message(out, "SASLResponse", Some(b'p'), |out| {
        out.extend_from_slice(step);
        Ok(())
    })
}

/// Appends a query of the simple protocol.
///
/// # Errors
/// The text contains a NUL or is too long.
pub fn query(out: &mut Vec<u8>, sql: &[u8]) -> Result<(), WireError> {
    query_with(out, |out| {
        out.extend_from_slice(sql);
    })
}

/// Appends a query of the simple protocol whose text `write` appends.
///
/// # Errors
/// As [`query`].
pub fn query_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
    message(out, "Query", Some(b'Q'), |out| {
        let begin = out.len();
        write(out);
        if out[begin..].contains(&0) {
            return Err(WireError::EmbeddedNul { message: "Query", field: "query" });
        }
        out.push(0);
        Ok(())
    })
}

/// Appends a Parse of `sql` as statement `name`. The server infers the types of parameters.
///
/// An empty name is the unnamed statement.
///
/// # Errors
/// The name or text contains a NUL, or the text is too long.
pub fn parse(out: &mut Vec<u8>, name: &str, sql: &[u8]) -> Result<(), WireError> {
    message(out, "Parse", Some(b'P'), |out| {
        string(out, "Parse", "name", name.as_bytes())?;
        string(out, "Parse", "query", sql)?;
        out.extend([0; 2]);
        Ok(())
    })
}

/// Writes the parameters of an [`Execution`] in order.
pub struct Parameters<'a> {
    out: &'a mut Vec<u8>,
    left: u16,
}

impl Parameters<'_> {
    /// Writes the next parameter as the text that `write` appends.
    ///
    /// # Errors
    /// There are more parameters than announced, or the text is too long.
    pub fn text(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), WireError> {
        self.take()?;
        let at = self.out.len();
        self.out.extend([0; 4]);
        write(self.out);
        let length = self.out.len() - at - 4;
        let n = length_of("Bind", "parameter", length)?;
        self.out[at..at + 4].copy_from_slice(&n.to_be_bytes());
        Ok(())
    }

    /// Writes NULL as the next parameter.
    ///
    /// # Errors
    /// There are more parameters than announced.
    pub fn null(&mut self) -> Result<(), WireError> {
        self.take()?;
        self.out.extend((-1_i32).to_be_bytes());
        Ok(())
    }

    fn take(&mut self) -> Result<(), WireError> {
        self.left = self.left.checked_sub(1).ok_or(WireError::UnknownValue {
            message: "Bind",
            field: "parameter beyond the count",
            value: 1,
        })?;
        Ok(())
    }
}

/// Messages that execute a prepared statement, encoded once except for the parameters.
///
/// They are Bind to the unnamed portal, with parameters and results in text format, Describe if
/// asked for, Execute of all rows, and Sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Bind up to its parameters, the rest of Bind, and the messages after it with Sync.
    bytes: Box<[u8]>,
    /// Offset of the parameters.
    head: usize,
    /// Offset of the end of Bind.
    bind: usize,
    count: u16,
}

impl Execution {
    /// Encodes the messages for statement `name` with `count` parameters.
    ///
    /// # Errors
    /// The name contains a NUL.
    pub fn new(name: &str, count: u16, described: bool) -> Result<Self, WireError> {
        let mut bytes = vec![b'B', 0, 0, 0, 0, 0];
        string(&mut bytes, "Bind", "name", name.as_bytes())?;
        bytes.extend([0; 2]);
        bytes.extend(count.to_be_bytes());
        let head = bytes.len();
        bytes.extend([0; 2]);
        let bind = bytes.len();
        if described {
            bytes.extend(DESCRIBE);
        }
        bytes.extend(EXECUTE);
        sync(&mut bytes);
        Ok(Self { bytes: bytes.into(), head, bind, count })
    }

    /// Appends the messages with the parameters that `write` gives; Sync only if `is_last`.
    ///
    /// # Errors
    /// The number of parameters is wrong, or one is too long.
    #[inline]
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        is_last: bool,
        write: impl FnOnce(&mut Parameters<'_>) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let begin = out.len();
        let done = self.append(out, is_last, write);
        if done.is_err() {
            out.truncate(begin);
        }
        done
    }

    #[inline]
    fn append(
        &self,
        out: &mut Vec<u8>,
        is_last: bool,
        write: impl FnOnce(&mut Parameters<'_>) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let length = out.len() + 1;
        out.extend_from_slice(&self.bytes[..self.head]);
        let mut parameters = Parameters { out, left: self.count };
        write(&mut parameters)?;
        if parameters.left > 0 {
            return Err(WireError::Truncated { message: "Bind", field: "parameters" });
        }
        let end = out.len() + self.bind - self.head;
        let sync = if is_last { 0 } else { SYNC.len() };
        out.extend_from_slice(&self.bytes[self.head..self.bytes.len() - sync]);
        set_length(out, "Bind", length, end)
    }
}

/// Describe of the unnamed portal.
const DESCRIBE: &[u8] = b"D\0\0\0\x06P\0";
/// Execute of the unnamed portal, all rows.
const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";
const SYNC: &[u8] = b"S\0\0\0\x04";

/// Appends a Sync, which ends a series of messages; the server answers with `ReadyForQuery`.
pub fn sync(out: &mut Vec<u8>) {
    out.extend_from_slice(SYNC);
}

/// Appends a piece of COPY data that `write` appends.
///
/// # Errors
/// The piece is too long for a message.
pub fn copy_data_with(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) -> Result<(), WireError> {
    message(out, "CopyData", Some(b'd'), |out| {
        write(out);
        Ok(())
    })
}

/// Appends the end of COPY data.
pub fn copy_done(out: &mut Vec<u8>) {
    out.extend(b"c\0\0\0\x04");
}

/// Appends a Close of prepared statement `name`. The server takes a name that it does not know.
///
/// # Errors
/// The name contains a NUL.
pub fn close_statement(out: &mut Vec<u8>, name: &str) -> Result<(), WireError> {
    message(out, "Close", Some(b'C'), |out| {
        out.push(b'S');
        string(out, "Close", "name", name.as_bytes())
    })
}

/// Appends a refusal to send the copy data that the server awaits, which fails the command.
///
/// # Errors
/// The reason contains a NUL.
pub fn copy_fail(out: &mut Vec<u8>, reason: &str) -> Result<(), WireError> {
    message(out, "CopyFail", Some(b'f'), |out| string(out, "CopyFail", "reason", reason.as_bytes()))
}

/// Appends a Terminate, which ends the session.
pub fn terminate(out: &mut Vec<u8>) {
    out.extend(b"X\0\0\0\x04");
}

fn length_of(message: &'static str, field: &'static str, length: usize) -> Result<i32, WireError> {
    i32::try_from(length).map_err(|_| WireError::TooLarge {
        message,
        field,
        value: length,
        max: i32::MAX as usize,
    })
}

fn value(
    out: &mut Vec<u8>,
    message: &'static str,
    field: &'static str,
    bytes: Option<&[u8]>,
) -> Result<(), WireError> {
    match bytes {
        None => out.extend((-1_i32).to_be_bytes()),
        Some(bytes) => {
            out.extend(length_of(message, field, bytes.len())?.to_be_bytes());
            out.extend_from_slice(bytes);
        }
    }
    Ok(())
}
