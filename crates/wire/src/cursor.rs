//! Reading the fields of a message in order, never past its end.

use crate::WireError;

/// Unread rest of a message's body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    message: &'static str,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(crate) fn new(message: &'static str, body: &'a [u8]) -> Self {
        Self { message, rest: body }
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn bytes(
        &mut self,
        count: usize,
        field: &'static str,
    ) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(WireError::Truncated { message: self.message, field })?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], WireError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(WireError::Truncated { message: self.message, field })?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, WireError> {
        Ok(self.array::<1>(field)?[0])
    }

    pub(crate) fn i16(&mut self, field: &'static str) -> Result<i16, WireError> {
        Ok(i16::from_be_bytes(self.array(field)?))
    }

    pub(crate) fn i32(&mut self, field: &'static str) -> Result<i32, WireError> {
        Ok(i32::from_be_bytes(self.array(field)?))
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, WireError> {
        Ok(u32::from_be_bytes(self.array(field)?))
    }

    /// Reads a count of items of at least `each` bytes, for which the body must have room.
    pub(crate) fn count(&mut self, each: usize, field: &'static str) -> Result<usize, WireError> {
        let value = self.i16(field)?;
        match usize::try_from(value) {
            Ok(n) if n.saturating_mul(each) <= self.rest.len() => Ok(n),
            _ => Err(WireError::InvalidCount { message: self.message, field, value: value.into() }),
        }
    }

    /// Reads a value with its length; none if the length is -1.
    pub(crate) fn value(&mut self, field: &'static str) -> Result<Option<&'a [u8]>, WireError> {
        let value = self.i32(field)?;
        if value == -1 {
            return Ok(None);
        }
        match usize::try_from(value) {
            Ok(n) if n <= self.rest.len() => self.bytes(n, field).map(Some),
            _ => Err(WireError::InvalidCount { message: self.message, field, value }),
        }
    }

    /// Reads a string up to its NUL.
    #[inline]
    pub(crate) fn string(&mut self, field: &'static str) -> Result<&'a [u8], WireError> {
        let end = self
            .rest
            .iter()
            .position(|&b| b == 0)
            .ok_or(WireError::MissingNul { message: self.message, field })?;
        let taken = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(taken)
    }

    #[inline]
    pub(crate) fn end(self) -> Result<(), WireError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(WireError::TrailingBytes { message: self.message, bytes: self.rest.len() })
        }
    }
}
