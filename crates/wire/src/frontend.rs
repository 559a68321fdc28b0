//! Messages for the server, appended to a buffer of the caller's.
//!
//! A function that fails leaves the buffer as it found it.

use crate::WireError;
use crate::frame::MAX_MESSAGE;

/// The protocol's version, 3.0.
const VERSION: u32 = 3 << 16;
/// What stands in the version's place in a cancel request.
const CANCEL: u32 = 1234 << 16 | 5678;
/// The code of a request for TLS, in place of a version.
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

/// The first message: protocol version and start-up parameters (`user`, `database`, settings).
///
/// # Errors
/// A name or value that holds a NUL, or an empty name, which would end the list.
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

/// Before the first message: asks the server whether it takes TLS. It answers with one byte, `S` or
/// `N`.
///
/// # Errors
/// None; it has no fields.
pub fn ssl_request(out: &mut Vec<u8>) -> Result<(), WireError> {
    message(out, "SSLRequest", None, |out| {
        out.extend(SSL.to_be_bytes());
        Ok(())
    })
}

/// On a connection of its own: asks the server to cancel what backend `process` is doing.
///
/// # Errors
/// A secret beyond all bounds.
pub fn cancel_request(out: &mut Vec<u8>, process: u32, secret: &[u8]) -> Result<(), WireError> {
    message(out, "CancelRequest", None, |out| {
        out.extend(CANCEL.to_be_bytes());
        out.extend(process.to_be_bytes());
        out.extend_from_slice(secret);
        Ok(())
    })
}

/// A password, in clear or as an MD5 hash.
///
/// # Errors
/// A NUL in it.
pub fn password(out: &mut Vec<u8>, password: &[u8]) -> Result<(), WireError> {
    message(out, "PasswordMessage", Some(b'p'), |out| {
        string(out, "PasswordMessage", "password", password)
    })
}

/// The choice of a SASL mechanism, with the exchange's first step.
///
/// # Errors
/// A NUL in the mechanism's name; a step beyond all bounds.
pub fn sasl_initial(out: &mut Vec<u8>, mechanism: &str, step: &[u8]) -> Result<(), WireError> {
    const NAME: &str = "SASLInitialResponse";
    message(out, NAME, Some(b'p'), |out| {
        string(out, NAME, "mechanism", mechanism.as_bytes())?;
        value(out, NAME, "step", Some(step))
    })
}

/// A further step of a SASL exchange.
///
/// # Errors
/// A step beyond all bounds.
pub fn sasl_response(out: &mut Vec<u8>, step: &[u8]) -> Result<(), WireError> {
    message(out, "SASLResponse", Some(b'p'), |out| {
        out.extend_from_slice(step);
        Ok(())
    })
}

/// A query of the simple protocol.
///
/// # Errors
/// A NUL in it; a text beyond all bounds.
pub fn query(out: &mut Vec<u8>, sql: &[u8]) -> Result<(), WireError> {
    query_with(out, |out| {
        out.extend_from_slice(sql);
    })
}

/// A query of the simple protocol whose text `write` appends piece by piece.
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

/// Prepares `sql` as statement `name` (empty: the unnamed one), with parameter types as the server
/// infers them.
///
/// # Errors
/// A NUL in either; a text beyond all bounds.
pub fn parse(out: &mut Vec<u8>, name: &str, sql: &[u8]) -> Result<(), WireError> {
    message(out, "Parse", Some(b'P'), |out| {
        string(out, "Parse", "name", name.as_bytes())?;
        string(out, "Parse", "query", sql)?;
        out.extend([0; 2]);
        Ok(())
    })
}

/// The parameters of an [`Execution`], written one after the other.
pub struct Parameters<'a> {
    out: &'a mut Vec<u8>,
    left: u16,
}

impl Parameters<'_> {
    /// Writes the next parameter as the text that `write` appends.
    ///
    /// # Errors
    /// More parameters than announced; a text beyond all bounds.
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
    /// More parameters than announced.
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

/// The messages that execute a statement, made once but for the parameters: Bind to the unnamed
/// portal with all parameters and results in text format, Describe of it where wanted, Execute of
/// all rows, and Sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Bind up to its parameters, its end, and all after it, with Sync.
    bytes: Box<[u8]>,
    /// Where its parameters belong.
    head: usize,
    /// Where Bind ends.
    bind: usize,
    count: u16,
}

impl Execution {
    /// Of statement `name` with `count` parameters.
    ///
    /// # Errors
    /// A NUL in the name.
    pub fn new(name: &str, count: u16, described: bool) -> Result<Self, WireError> {
        let mut bytes = vec![b'B', 0, 0, 0, 0, 0];
        string(&mut bytes, "Bind", "name", name.as_bytes())?;
        bytes.extend([0; 2]);
        bytes.extend(count.to_be_bytes());
        let head = bytes.len();
        bytes.extend([0; 2]);
        let bind = bytes.len();
        if described {
            describe(&mut bytes, DescribeTarget::Portal(""))?;
        }
        execute(&mut bytes, "", 0)?;
        sync(&mut bytes);
        Ok(Self { bytes: bytes.into(), head, bind, count })
    }

    /// Appends them, with the parameters that `write` gives, Sync only where it `is_last`.
    ///
    /// # Errors
    /// Fewer or more parameters than there are, or one beyond all bounds.
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

/// What a Describe or Close names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescribeTarget<'a> {
    /// A prepared statement.
    Statement(&'a str),
    /// A portal.
    Portal(&'a str),
}

fn named(
    out: &mut Vec<u8>,
    name: &'static str,
    tag: u8,
    what: DescribeTarget<'_>,
) -> Result<(), WireError> {
    let (kind, of) = match what {
        DescribeTarget::Statement(of) => (b'S', of),
        DescribeTarget::Portal(of) => (b'P', of),
    };
    message(out, name, Some(tag), |out| {
        out.push(kind);
        string(out, name, "name", of.as_bytes())
    })
}

/// Asks for the parameters and columns of a statement, or the columns of a portal.
///
/// # Errors
/// A NUL in the name.
pub fn describe(out: &mut Vec<u8>, what: DescribeTarget<'_>) -> Result<(), WireError> {
    named(out, "Describe", b'D', what)
}

/// Closes a statement or a portal.
///
/// # Errors
/// A NUL in the name.
pub fn close(out: &mut Vec<u8>, what: DescribeTarget<'_>) -> Result<(), WireError> {
    named(out, "Close", b'C', what)
}

/// Executes a portal up to `rows` rows; 0 means all.
///
/// # Errors
/// A NUL in the portal's name.
pub fn execute(out: &mut Vec<u8>, portal: &str, rows: u32) -> Result<(), WireError> {
    message(out, "Execute", Some(b'E'), |out| {
        string(out, "Execute", "portal", portal.as_bytes())?;
        out.extend(rows.to_be_bytes());
        Ok(())
    })
}

const SYNC: &[u8] = b"S\0\0\0\x04";

/// Ends a series of extended-protocol messages; the server answers with `ReadyForQuery`.
pub fn sync(out: &mut Vec<u8>) {
    out.extend_from_slice(SYNC);
}

/// Asks the server to send what it has to say so far.
pub fn flush(out: &mut Vec<u8>) {
    out.extend(b"H\0\0\0\x04");
}

/// Says goodbye.
pub fn terminate(out: &mut Vec<u8>) {
    out.extend(b"X\0\0\0\x04");
}

/// A piece of copy data.
///
/// # Errors
/// A piece beyond all bounds.
pub fn copy_data(out: &mut Vec<u8>, data: &[u8]) -> Result<(), WireError> {
    message(out, "CopyData", Some(b'd'), |out| {
        out.extend_from_slice(data);
        Ok(())
    })
}

/// The end of copy data.
pub fn copy_done(out: &mut Vec<u8>) {
    out.extend(b"c\0\0\0\x04");
}

/// Gives up a copy: the server answers with an error that quotes `reason`.
///
/// # Errors
/// A NUL in it.
pub fn copy_fail(out: &mut Vec<u8>, reason: &str) -> Result<(), WireError> {
    message(out, "CopyFail", Some(b'f'), |out| string(out, "CopyFail", "reason", reason.as_bytes()))
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
