//! Messages from the server, read in place.
//!
//! [`Message::read`] takes a [`Frame`] and borrows from it: nothing is copied.

use crate::cursor::Cursor;
pub use crate::fields::Fields;
pub use crate::rows::{DataRow, RowDescription};
use crate::{Frame, WireError};

/// Type bytes of the server's messages.
pub mod tag {
    #![allow(missing_docs)]
    pub const AUTHENTICATION: u8 = b'R';
    pub const BACKEND_KEY_DATA: u8 = b'K';
    pub const BIND_COMPLETE: u8 = b'2';
    pub const CLOSE_COMPLETE: u8 = b'3';
    pub const COMMAND_COMPLETE: u8 = b'C';
    pub const COPY_BOTH: u8 = b'W';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const COPY_IN: u8 = b'G';
    pub const COPY_OUT: u8 = b'H';
    pub const DATA_ROW: u8 = b'D';
    pub const EMPTY_QUERY: u8 = b'I';
    pub const ERROR_RESPONSE: u8 = b'E';
    pub const NEGOTIATE_VERSION: u8 = b'v';
    pub const NO_DATA: u8 = b'n';
    pub const NOTICE_RESPONSE: u8 = b'N';
    pub const NOTIFICATION: u8 = b'A';
    pub const PARAMETER_DESCRIPTION: u8 = b't';
    pub const PARAMETER_STATUS: u8 = b'S';
    pub const PARSE_COMPLETE: u8 = b'1';
    pub const PORTAL_SUSPENDED: u8 = b's';
    pub const READY_FOR_QUERY: u8 = b'Z';
    pub const ROW_DESCRIPTION: u8 = b'T';
}

/// A message from the server.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// The server asks for a proof of identity, or accepts the client.
    Authentication(Authentication<'a>),
    /// Process and secret for a cancel request.
    BackendKeyData(BackendKey<'a>),
    /// A Bind succeeded.
    BindComplete,
    /// A Close succeeded.
    CloseComplete,
    /// A command is complete; the tag says which (`INSERT 0 1`).
    CommandComplete(&'a [u8]),
    /// The server sends and takes copy data from here on.
    CopyBoth,
    /// A piece of copy data.
    CopyData(&'a [u8]),
    /// Copy data has ended.
    CopyDone,
    /// The server awaits copy data.
    CopyIn,
    /// The server will send copy data.
    CopyOut,
    /// A row of a result.
    DataRow(DataRow<'a>),
    /// An empty query string was executed.
    EmptyQuery,
    /// An error.
    ErrorResponse(Fields<'a>),
    /// The server speaks an older minor version or does not know some options.
    NegotiateVersion,
    /// The described statement or portal returns no rows.
    NoData,
    /// A warning or hint.
    NoticeResponse(Fields<'a>),
    /// A NOTIFY of some session.
    Notification,
    /// Type OIDs of a statement's parameters.
    ParameterDescription,
    /// A setting's value.
    ParameterStatus {
        /// Setting's name.
        name: &'a [u8],
        /// Setting's value.
        value: &'a [u8],
    },
    /// A Parse succeeded.
    ParseComplete,
    /// An Execute reached its row limit.
    PortalSuspended,
    /// The server awaits a command.
    ReadyForQuery(TransactionStatus),
    /// The columns of the rows that follow.
    RowDescription(RowDescription<'a>),
}

/// State of the session between commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Not in a transaction block.
    Idle,
    /// In a transaction block.
    InTransaction,
    /// In a failed transaction block.
    Failed,
}

impl TransactionStatus {
    /// Reads the status byte of a `ReadyForQuery`.
    ///
    /// # Errors
    /// [`WireError::UnknownValue`] for any other byte than `I`, `T` and `E`.
    #[inline]
    pub fn read(byte: u8) -> Result<Self, WireError> {
        match byte {
            b'I' => Ok(Self::Idle),
            b'T' => Ok(Self::InTransaction),
            b'E' => Ok(Self::Failed),
            other => Err(WireError::UnknownValue {
                message: "ReadyForQuery",
                field: "status",
                value: other.into(),
            }),
        }
    }
}

/// Proof of identity that the server asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// The client is let in.
    Ok,
    /// The password as it is.
    CleartextPassword,
    /// The MD5 hash of password, user and this salt.
    Md5Password([u8; 4]),
    /// A SASL exchange by one of these mechanisms.
    Sasl(Mechanisms<'a>),
    /// The next step of a SASL exchange.
    SaslContinue(&'a [u8]),
    /// The last step of a SASL exchange.
    SaslFinal(&'a [u8]),
    /// A method that this codec does not speak; the protocol's number (7 is GSSAPI, 9 is SSPI).
    Other(u32),
}

/// SASL mechanisms that the server offers, in its order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanisms<'a>(&'a [u8]);

impl<'a> Mechanisms<'a> {
    /// Returns the mechanisms' names.
    pub fn names(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|&b| b == 0).filter(|name| !name.is_empty())
    }
}

/// Identity of a session in a cancel request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendKey<'a> {
    /// Process id of the backend.
    pub process: u32,
    /// Secret of the session: 4 bytes in protocol 3.0.
    pub secret: &'a [u8],
}

/// Reads the tag in the body of a `CommandComplete`, such as `SELECT 1`.
///
/// # Errors
/// No NUL ends the tag, or bytes follow it.
#[inline]
pub fn command_complete(body: &[u8]) -> Result<&[u8], WireError> {
    let mut c = Cursor::new("CommandComplete", body);
    let tag = c.string("tag")?;
    c.end()?;
    Ok(tag)
}

/// Reads the session's state in the body of a `ReadyForQuery`.
///
/// # Errors
/// The state is unknown, or bytes follow it.
#[inline]
pub fn ready_for_query(body: &[u8]) -> Result<TransactionStatus, WireError> {
    let mut c = Cursor::new("ReadyForQuery", body);
    let status = TransactionStatus::read(c.u8("status")?)?;
    c.end()?;
    Ok(status)
}

impl<'a> Message<'a> {
    /// Reads the message in `frame`.
    ///
    /// ```
    /// use pgdyno_wire::backend::{Message, TransactionStatus};
    /// use pgdyno_wire::next_frame;
    ///
    /// let frame = next_frame(b"Z\0\0\0\x05I")?.expect("a whole message");
    /// assert!(matches!(Message::read(frame)?, Message::ReadyForQuery(TransactionStatus::Idle)));
    /// # Ok::<(), pgdyno_wire::WireError>(())
    /// ```
    ///
    /// # Errors
    /// A type byte that the protocol does not know; fields that the body has no room for; bytes
    /// left over.
    pub fn read(frame: Frame<'a>) -> Result<Self, WireError> {
        let body = frame.body;
        let on = |message| Cursor::new(message, body);
        let empty = |message, it| on(message).end().map(|()| it);
        match frame.tag {
            tag::AUTHENTICATION => authentication(body).map(Self::Authentication),
            tag::BACKEND_KEY_DATA => backend_key(body).map(Self::BackendKeyData),
            tag::BIND_COMPLETE => empty("BindComplete", Self::BindComplete),
            tag::CLOSE_COMPLETE => empty("CloseComplete", Self::CloseComplete),
            tag::COMMAND_COMPLETE => command_complete(body).map(Self::CommandComplete),
            tag::COPY_BOTH => copy_format("CopyBothResponse", body).map(|()| Self::CopyBoth),
            tag::COPY_DATA => Ok(Self::CopyData(body)),
            tag::COPY_DONE => empty("CopyDone", Self::CopyDone),
            tag::COPY_IN => copy_format("CopyInResponse", body).map(|()| Self::CopyIn),
            tag::COPY_OUT => copy_format("CopyOutResponse", body).map(|()| Self::CopyOut),
            tag::DATA_ROW => DataRow::read(body).map(Self::DataRow),
            tag::EMPTY_QUERY => empty("EmptyQueryResponse", Self::EmptyQuery),
            tag::ERROR_RESPONSE => Fields::read("ErrorResponse", body).map(Self::ErrorResponse),
            tag::NEGOTIATE_VERSION => negotiate_version(body).map(|()| Self::NegotiateVersion),
            tag::NO_DATA => empty("NoData", Self::NoData),
            tag::NOTICE_RESPONSE => Fields::read("NoticeResponse", body).map(Self::NoticeResponse),
            tag::NOTIFICATION => {
                let mut c = on("NotificationResponse");
                c.u32("process")?;
                c.string("channel")?;
                c.string("payload")?;
                c.end().map(|()| Self::Notification)
            }
            tag::PARAMETER_DESCRIPTION => {
                parameter_types(body).map(|()| Self::ParameterDescription)
            }
            tag::PARAMETER_STATUS => {
                let mut c = on("ParameterStatus");
                let name = c.string("name")?;
                let value = c.string("value")?;
                c.end()?;
                Ok(Self::ParameterStatus { name, value })
            }
            tag::PARSE_COMPLETE => empty("ParseComplete", Self::ParseComplete),
            tag::PORTAL_SUSPENDED => empty("PortalSuspended", Self::PortalSuspended),
            tag::READY_FOR_QUERY => ready_for_query(body).map(Self::ReadyForQuery),
            tag::ROW_DESCRIPTION => RowDescription::read(body).map(Self::RowDescription),
            other => Err(WireError::UnknownTag(other)),
        }
    }
}

fn backend_key(body: &[u8]) -> Result<BackendKey<'_>, WireError> {
    let mut c = Cursor::new("BackendKeyData", body);
    let process = c.u32("process")?;
    let secret = c.rest();
    if secret.len() < 4 {
        return Err(WireError::Truncated { message: "BackendKeyData", field: "secret" });
    }
    Ok(BackendKey { process, secret })
}

fn negotiate_version(body: &[u8]) -> Result<(), WireError> {
    let mut c = Cursor::new("NegotiateProtocolVersion", body);
    c.u32("version")?;
    let options = c.i32("options")?;
    for _ in 0..options {
        c.string("option")?;
    }
    c.end()
}

fn parameter_types(body: &[u8]) -> Result<(), WireError> {
    let mut c = Cursor::new("ParameterDescription", body);
    let count = c.count(4, "parameters")?;
    c.bytes(count * 4, "parameters")?;
    c.end()
}

fn authentication(body: &[u8]) -> Result<Authentication<'_>, WireError> {
    let mut c = Cursor::new("Authentication", body);
    let read = match c.u32("method")? {
        0 => Authentication::Ok,
        3 => Authentication::CleartextPassword,
        5 => {
            let salt = c.bytes(4, "salt")?;
            Authentication::Md5Password([salt[0], salt[1], salt[2], salt[3]])
        }
        10 => {
            let names = c.rest();
            while !c.string("mechanism")?.is_empty() {}
            c.end()?;
            return Ok(Authentication::Sasl(Mechanisms(names)));
        }
        11 => return Ok(Authentication::SaslContinue(c.rest())),
        12 => return Ok(Authentication::SaslFinal(c.rest())),
        other => return Ok(Authentication::Other(other)),
    };
    c.end()?;
    Ok(read)
}

fn copy_format(message: &'static str, body: &[u8]) -> Result<(), WireError> {
    let mut c = Cursor::new(message, body);
    let format = c.u8("format")?;
    if format > 1 {
        return Err(WireError::UnknownValue { message, field: "format", value: format.into() });
    }
    let count = c.count(2, "columns")?;
    c.bytes(count * 2, "columns")?;
    c.end()
}
