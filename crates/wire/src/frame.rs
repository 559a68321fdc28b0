//! Where a message begins and ends: a type byte, a length that counts itself, a body.

use crate::WireError;

/// The longest message taken (bytes, without the type byte): PostgreSQL's own limit for one
/// allocation.
pub const MAX_MESSAGE: usize = 0x3fff_ffff;

/// Bytes of a type byte and a length.
pub const HEADER: usize = 5;

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its type byte.
    pub tag: u8,
    /// Bytes of its body, which follows.
    pub body: usize,
}

impl Header {
    /// Reads the head at the front of `bytes`; none when fewer than [`HEADER`] bytes are there.
    ///
    /// # Errors
    /// A length below 4 or beyond [`MAX_MESSAGE`].
    #[inline]
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, WireError> {
        let Some(&[tag, a, b, c, d]) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
        let length = i32::from_be_bytes([a, b, c, d]);
        match usize::try_from(length) {
            Ok(n) if (4..=MAX_MESSAGE).contains(&n) => Ok(Some(Self { tag, body: n - 4 })),
            Ok(n) if n > MAX_MESSAGE => {
                Err(WireError::TooLong { tag, length: n as u64, max: MAX_MESSAGE })
            }
            _ => Err(WireError::LengthTooShort { tag, length }),
        }
    }

    /// Bytes of the whole message.
    #[must_use]
    #[inline]
    pub fn len(self) -> usize {
        HEADER + self.body
    }

    /// Never: a message has at least its head.
    #[must_use]
    pub fn is_empty(self) -> bool {
        false
    }
}

/// One whole message, its body still unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its type byte.
    pub tag: u8,
    /// What follows the length.
    pub body: &'a [u8],
}

impl Frame<'_> {
    /// Bytes that the whole message takes: how far to advance to the next.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        HEADER + self.body.len()
    }

    /// Never: a message has at least its head.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// The message at the front of `bytes`; none when it is not all there yet.
///
/// # Errors
/// As [`Header::read`].
#[inline]
pub fn next_frame(bytes: &[u8]) -> Result<Option<Frame<'_>>, WireError> {
    let Some(header) = Header::read(bytes)? else { return Ok(None) };
    Ok(bytes.get(HEADER..header.len()).map(|body| Frame { tag: header.tag, body }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_only_once_its_last_byte_is_there() {
        let bytes = b"Z\0\0\0\x05Inext";
        for n in 0..6 {
            assert_eq!(next_frame(&bytes[..n]), Ok(None), "{n} bytes");
        }
        let frame = next_frame(bytes).unwrap().unwrap();
        assert_eq!((frame.tag, frame.body, frame.len()), (b'Z', &b"I"[..], 6));
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_from_the_head_alone() {
        assert_eq!(
            next_frame(b"Z\0\0\0\x03"),
            Err(WireError::LengthTooShort { tag: b'Z', length: 3 })
        );
        assert_eq!(
            next_frame(b"Z\xff\xff\xff\xff"),
            Err(WireError::LengthTooShort { tag: b'Z', length: -1 })
        );
        let long = next_frame(b"D\x7f\xff\xff\xff").unwrap_err();
        assert!(matches!(long, WireError::TooLong { tag: b'D', .. }), "{long}");
        assert_eq!(next_frame(b"D\x3f\xff\xff\xff"), Ok(None));
        // What an HTTP server answers is no length that we take.
        assert!(next_frame(b"HTTP/1.1 400").is_err());
    }
}
