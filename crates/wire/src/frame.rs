//! Framing: a message is a type byte, a length that includes itself, and a body.

use crate::WireError;

/// Longest message (bytes, without the type byte): PostgreSQL's own limit for an allocation.
pub const MAX_MESSAGE: usize = 0x3fff_ffff;

/// Size of a type byte and a length (bytes).
pub const HEADER: usize = 5;

/// Head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type byte.
    pub tag: u8,
    /// Length of the body that follows (bytes).
    pub body: usize,
}

impl Header {
    /// Reads the head at the front of `bytes`; none if there are fewer than [`HEADER`] bytes.
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

    /// Returns the length of the whole message (bytes).
    #[inline]
    pub fn len(self) -> usize {
        HEADER + self.body
    }

    /// Returns false: a message has at least its head.
    pub fn is_empty(self) -> bool {
        false
    }
}

/// A whole message whose body is not read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Type byte.
    pub tag: u8,
    /// Body, which follows the length.
    pub body: &'a [u8],
}

impl Frame<'_> {
    /// Returns the length of the whole message (bytes): the offset of the next one.
    #[inline]
    pub fn len(&self) -> usize {
        HEADER + self.body.len()
    }

    /// Returns false: a message has at least its head.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// Returns the message at the front of `bytes`; none if it is incomplete.
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
        // The length that an HTTP server's answer spells is refused.
        assert!(next_frame(b"HTTP/1.1 400").is_err());
    }
}
