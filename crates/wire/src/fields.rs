//! Fields of errors and notices, read in place.

use std::borrow::Cow;

use crate::WireError;
use crate::cursor::Cursor;

/// Fields of an `ErrorResponse` or `NoticeResponse`. All were checked when the message was read.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(Cursor<'a>);

impl<'a> Fields<'a> {
    pub(crate) fn read(message: &'static str, body: &'a [u8]) -> Result<Self, WireError> {
        let all = Cursor::new(message, body);
        let mut fields = all;
        while fields.u8("field type")? != 0 {
            fields.string("field")?;
        }
        fields.end()?;
        Ok(Self(all))
    }

    /// Returns the field of type `kind`, one of the protocol's error field codes (`M`, `C`, …).
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

    /// Returns the severity: `ERROR`, `FATAL`, `PANIC`, `WARNING`, …
    ///
    /// Servers before 9.6 may translate it.
    pub fn severity(self) -> Cow<'a, str> {
        self.text(b'V').or_else(|| self.text(b'S')).unwrap_or_default()
    }

    /// Returns the SQLSTATE; empty if the server left it out.
    pub fn code(self) -> Cow<'a, str> {
        self.text(b'C').unwrap_or_default()
    }

    /// Returns the primary message.
    pub fn message(self) -> Cow<'a, str> {
        self.text(b'M').unwrap_or_default()
    }

    /// Returns the detail.
    pub fn detail(self) -> Option<Cow<'a, str>> {
        self.text(b'D')
    }

    /// Returns the hint.
    pub fn hint(self) -> Option<Cow<'a, str>> {
        self.text(b'H')
    }

    /// Returns the position in the query string (characters from 1).
    pub fn position(self) -> Option<u32> {
        self.text(b'P')?.parse().ok()
    }
}
