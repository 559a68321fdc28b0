//! Fields of errors and notices, read in place.

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
}
