//! Messages from the server, read in place.

use std::borrow::Cow;

use crate::cursor::Cursor;
use crate::{Frame, WireError};

/// Type bytes of the server's messages, for those who need only to tell them apart.
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
    /// A demand for proof of identity, or its acceptance.
    Authentication(Authentication<'a>),
    /// What a cancel request must name.
    BackendKeyData(BackendKey<'a>),
    /// A Bind was done.
    BindComplete,
    /// A Close was done.
    CloseComplete,
    /// A command is complete; its tag (`INSERT 0 1`).
    CommandComplete(&'a [u8]),
    /// The server sends and takes copy data.
    CopyBoth(CopyFormat<'a>),
    /// A piece of copy data.
    CopyData(&'a [u8]),
    /// Copy data has ended.
    CopyDone,
    /// The server awaits copy data.
    CopyIn(CopyFormat<'a>),
    /// The server will send copy data.
    CopyOut(CopyFormat<'a>),
    /// A row of a result.
    DataRow(DataRow<'a>),
    /// An empty query string was executed.
    EmptyQuery,
    /// An error.
    ErrorResponse(Fields<'a>),
    /// The server speaks an older minor version, or does not know some options.
    NegotiateVersion,
    /// What was described returns no rows.
    NoData,
    /// A warning or hint.
    NoticeResponse(Fields<'a>),
    /// A NOTIFY of some session's.
    Notification(Notification<'a>),
    /// Type OIDs of a statement's parameters.
    ParameterDescription(TypeOids<'a>),
    /// A setting's value.
    ParameterStatus {
        /// Its name.
        name: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// A Parse was done.
    ParseComplete,
    /// An Execute reached its row limit.
    PortalSuspended,
    /// The server awaits a command.
    ReadyForQuery(TransactionStatus),
    /// The columns of the rows that follow.
    RowDescription(RowDescription<'a>),
}

/// The session's state between commands.
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
    /// The status that `ReadyForQuery`'s only field spells.
    ///
    /// # Errors
    /// A byte that the protocol does not know.
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

/// What the server wants to see before it lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// Enough was shown.
    Ok,
    /// The password itself.
    CleartextPassword,
    /// The password hashed with this salt.
    Md5Password([u8; 4]),
    /// One of these SASL mechanisms.
    Sasl(Mechanisms<'a>),
    /// The next step of a SASL exchange.
    SaslContinue(&'a [u8]),
    /// The last step of a SASL exchange.
    SaslFinal(&'a [u8]),
    /// A method that this codec does not speak, by the protocol's number (7 is GSSAPI, 9 SSPI).
    Other(u32),
}

/// The SASL mechanisms on offer, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanisms<'a>(&'a [u8]);

impl<'a> Mechanisms<'a> {
    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|&b| b == 0).filter(|name| !name.is_empty())
    }
}

/// What a cancel request must name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendKey<'a> {
    /// The backend's process id.
    pub process: u32,
    /// Its secret: 4 bytes in protocol 3.0.
    pub secret: &'a [u8],
}

/// How copy data will be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyFormat<'a> {
    /// Binary, or text.
    pub binary: bool,
    columns: &'a [u8],
}

impl CopyFormat<'_> {
    /// Columns in each row (count).
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns.len() / 2
    }
}

/// A notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification<'a> {
    /// The notifying backend's process id.
    pub process: u32,
    /// The channel's name.
    pub channel: &'a [u8],
    /// What was said.
    pub payload: &'a [u8],
}

/// Type OIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeOids<'a>(&'a [u8]);

impl<'a> TypeOids<'a> {
    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = u32> + 'a {
        self.0.as_chunks::<4>().0.iter().map(|oid| u32::from_be_bytes(*oid))
    }
}

/// A row's values; all lengths were checked when it was read.
#[derive(Clone, Copy, Debug)]
pub struct DataRow<'a> {
    count: usize,
    values: Cursor<'a>,
}

impl<'a> DataRow<'a> {
    /// Values in it (count).
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it has no values at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The values in order; none for NULL.
    pub fn values(self) -> impl Iterator<Item = Option<&'a [u8]>> {
        let mut values = self.values;
        (0..self.count).map_while(move |_| values.value("value").ok())
    }
}

/// The columns of a result; all were checked when it was read.
#[derive(Clone, Copy, Debug)]
pub struct RowDescription<'a> {
    count: usize,
    columns: Cursor<'a>,
}

/// A column of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The OID of the table it comes from; 0 if from none.
    pub table: u32,
    /// Its number in that table; 0 if from none.
    pub attribute: i16,
    /// Its type's OID.
    pub type_oid: u32,
    /// Its type's size in bytes; negative for types of variable width.
    pub type_size: i16,
    /// Its type's modifier.
    pub type_modifier: i32,
    /// 0 for text, 1 for binary.
    pub format: i16,
}

impl<'a> Column<'a> {
    fn read(from: &mut Cursor<'a>) -> Result<Self, WireError> {
        Ok(Self {
            name: from.string("name")?,
            table: from.u32("table")?,
            attribute: from.i16("attribute")?,
            type_oid: from.u32("type")?,
            type_size: from.i16("type size")?,
            type_modifier: from.i32("type modifier")?,
            format: from.i16("format")?,
        })
    }
}

impl<'a> RowDescription<'a> {
    /// Columns (count).
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether rows have no columns at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The columns in order.
    pub fn columns(self) -> impl Iterator<Item = Column<'a>> {
        let mut columns = self.columns;
        (0..self.count).map_while(move |_| Column::read(&mut columns).ok())
    }
}

/// The fields of an `ErrorResponse` or `NoticeResponse`; all were checked when it was read.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(Cursor<'a>);

impl<'a> Fields<'a> {
    fn read(message: &'static str, body: &'a [u8]) -> Result<Self, WireError> {
        let all = Cursor::new(message, body);
        let mut fields = all;
        while fields.u8("field type")? != 0 {
            fields.string("field")?;
        }
        fields.end()?;
        Ok(Self(all))
    }

    /// The field of type `kind`, as the protocol's list of error fields names it.
    #[must_use]
    pub fn get(self, kind: u8) -> Option<&'a [u8]> {
        let mut fields = self.0;
        loop {
            match fields.u8("field type").ok()? {
                0 => return None,
                k => {
                    let value = fields.string("field").ok()?;
                    if k == kind {
                        return Some(value);
                    }
                }
            }
        }
    }

    fn text(self, kind: u8) -> Option<Cow<'a, str>> {
        self.get(kind).map(String::from_utf8_lossy)
    }

    /// `ERROR`, `FATAL`, `PANIC`, `WARNING`, …: never translated where the server is 9.6 or newer.
    #[must_use]
    pub fn severity(self) -> Cow<'a, str> {
        self.text(b'V').or_else(|| self.text(b'S')).unwrap_or_default()
    }

    /// The SQLSTATE; empty if the server left it out.
    #[must_use]
    pub fn code(self) -> Cow<'a, str> {
        self.text(b'C').unwrap_or_default()
    }

    /// What went wrong.
    #[must_use]
    pub fn message(self) -> Cow<'a, str> {
        self.text(b'M').unwrap_or_default()
    }

    /// More about it.
    #[must_use]
    pub fn detail(self) -> Option<Cow<'a, str>> {
        self.text(b'D')
    }

    /// What could be done.
    #[must_use]
    pub fn hint(self) -> Option<Cow<'a, str>> {
        self.text(b'H')
    }

    /// Where in the query string, in characters from 1.
    #[must_use]
    pub fn position(self) -> Option<u32> {
        self.text(b'P')?.parse().ok()
    }
}

/// The tag in the body of a `CommandComplete`, such as `SELECT 1`.
///
/// # Errors
/// No NUL ends it, or something follows.
#[inline]
pub fn command_complete(body: &[u8]) -> Result<&[u8], WireError> {
    let mut c = Cursor::new("CommandComplete", body);
    let tag = c.string("tag")?;
    c.end()?;
    Ok(tag)
}

/// The session's state in the body of a `ReadyForQuery`.
///
/// # Errors
/// It is none, or something follows.
#[inline]
pub fn ready_for_query(body: &[u8]) -> Result<TransactionStatus, WireError> {
    let mut c = Cursor::new("ReadyForQuery", body);
    let status = TransactionStatus::read(c.u8("status")?)?;
    c.end()?;
    Ok(status)
}

impl<'a> Message<'a> {
    /// Reads what `frame` says.
    ///
    /// # Errors
    /// A type byte that the protocol does not know; fields that the body has no room for; bytes
    /// left over.
    #[allow(clippy::too_many_lines)]
    pub fn read(frame: Frame<'a>) -> Result<Self, WireError> {
        let body = frame.body;
        let on = |message| Cursor::new(message, body);
        let empty = |message, it| on(message).end().map(|()| it);
        match frame.tag {
            tag::AUTHENTICATION => authentication(body).map(Self::Authentication),
            tag::BACKEND_KEY_DATA => {
                let mut c = on("BackendKeyData");
                let process = c.u32("process")?;
                let secret = c.rest();
                if secret.len() < 4 {
                    return Err(WireError::Truncated {
                        message: "BackendKeyData",
                        field: "secret",
                    });
                }
                Ok(Self::BackendKeyData(BackendKey { process, secret }))
            }
            tag::BIND_COMPLETE => empty("BindComplete", Self::BindComplete),
            tag::CLOSE_COMPLETE => empty("CloseComplete", Self::CloseComplete),
            tag::COMMAND_COMPLETE => command_complete(body).map(Self::CommandComplete),
            tag::COPY_BOTH => copy_format("CopyBothResponse", body).map(Self::CopyBoth),
            tag::COPY_DATA => Ok(Self::CopyData(body)),
            tag::COPY_DONE => empty("CopyDone", Self::CopyDone),
            tag::COPY_IN => copy_format("CopyInResponse", body).map(Self::CopyIn),
            tag::COPY_OUT => copy_format("CopyOutResponse", body).map(Self::CopyOut),
            tag::DATA_ROW => {
                let mut c = on("DataRow");
                let count = c.count(4, "values")?;
                let values = c;
                for _ in 0..count {
                    c.value("value")?;
                }
                c.end()?;
                Ok(Self::DataRow(DataRow { count, values }))
            }
            tag::EMPTY_QUERY => empty("EmptyQueryResponse", Self::EmptyQuery),
            tag::ERROR_RESPONSE => Fields::read("ErrorResponse", body).map(Self::ErrorResponse),
            tag::NEGOTIATE_VERSION => {
                let mut c = on("NegotiateProtocolVersion");
                c.u32("version")?;
                let options = c.i32("options")?;
                for _ in 0..options {
                    c.string("option")?;
                }
                c.end()?;
                Ok(Self::NegotiateVersion)
            }
            tag::NO_DATA => empty("NoData", Self::NoData),
            tag::NOTICE_RESPONSE => Fields::read("NoticeResponse", body).map(Self::NoticeResponse),
            tag::NOTIFICATION => {
                let mut c = on("NotificationResponse");
                let process = c.u32("process")?;
                let channel = c.string("channel")?;
                let payload = c.string("payload")?;
                c.end()?;
                Ok(Self::Notification(Notification { process, channel, payload }))
            }
            tag::PARAMETER_DESCRIPTION => {
                let mut c = on("ParameterDescription");
                let count = c.count(4, "parameters")?;
                let oids = c.bytes(count * 4, "parameters")?;
                c.end()?;
                Ok(Self::ParameterDescription(TypeOids(oids)))
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
            tag::ROW_DESCRIPTION => {
                let mut c = on("RowDescription");
                // A name's NUL and 18 bytes of numbers.
                let count = c.count(19, "columns")?;
                let columns = c;
                for _ in 0..count {
                    Column::read(&mut c)?;
                }
                c.end()?;
                Ok(Self::RowDescription(RowDescription { count, columns }))
            }
            other => Err(WireError::UnknownTag(other)),
        }
    }
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

fn copy_format<'a>(message: &'static str, body: &'a [u8]) -> Result<CopyFormat<'a>, WireError> {
    let mut c = Cursor::new(message, body);
    let binary = match c.u8("format")? {
        0 => false,
        1 => true,
        other => {
            return Err(WireError::UnknownValue { message, field: "format", value: other.into() });
        }
    };
    let count = c.count(2, "columns")?;
    let columns = c.bytes(count * 2, "columns")?;
    c.end()?;
    Ok(CopyFormat { binary, columns })
}
