//! Replies of the server, read from bytes that arrive in pieces of any size. Rows are skipped where
//! they lie.

use pgdyno_wire::backend::tag;
use pgdyno_wire::frame::HEADER;
use pgdyno_wire::{Frame, Header, Message, ServerError, WireError};

/// Longest error that is read (bytes).
const MAX_ERROR: usize = 1 << 20;

/// Part of a reply that matters here.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyEvent {
    /// ParseComplete.
    Parsed,
    /// The server awaits COPY data.
    CopyIn,
    /// A command failed.
    Error(Box<ServerError>),
    /// ReadyForQuery.
    Ready,
}

/// Reads the replies of one connection.
#[derive(Debug, Default)]
pub(super) struct ReplyReader {
    /// Begin of a message whose rest has not arrived.
    partial: Vec<u8>,
    /// Bytes of the current message that are still to be skipped.
    skip: usize,
}

impl ReplyReader {
    /// Forgets what a connection before sent.
    pub(super) fn reset(&mut self) {
        self.partial.clear();
        self.skip = 0;
    }

    /// Reads the next event from `bytes`, and advances it; none when more bytes are needed.
    ///
    /// # Errors
    /// The bytes are no message of PostgreSQL's.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<ReplyEvent>, WireError> {
        loop {
            let skipped = self.skip.min(bytes.len());
            *bytes = &bytes[skipped..];
            self.skip -= skipped;
            if bytes.is_empty() {
                return Ok(None);
            }
            let header = match self.header(bytes)? {
                Some(header) => header,
                None => return Ok(None),
            };
            if header.tag != tag::ERROR_RESPONSE {
                // The header has been read; bodies are of no interest.
                self.partial.clear();
                self.skip = header.body;
                match header.tag {
                    tag::READY_FOR_QUERY => {
                        let rest = self.skip.min(bytes.len());
                        *bytes = &bytes[rest..];
                        self.skip -= rest;
                        return Ok(Some(ReplyEvent::Ready));
                    }
                    tag::PARSE_COMPLETE => return Ok(Some(ReplyEvent::Parsed)),
                    tag::COPY_IN => return Ok(Some(ReplyEvent::CopyIn)),
                    other if !other.is_ascii_alphanumeric() => {
                        return Err(WireError::UnknownTag(other));
                    }
                    _ => continue,
                }
            }
            if header.body > MAX_ERROR {
                let length = header.body as u64;
                return Err(WireError::TooLong { tag: header.tag, length, max: MAX_ERROR });
            }
            let missing = header.len() - self.partial.len();
            let (more, rest) = bytes.split_at_checked(missing).unwrap_or((bytes, &[]));
            self.partial.extend_from_slice(more);
            *bytes = rest;
            if self.partial.len() < header.len() {
                return Ok(None);
            }
            let error = read_error(&self.partial);
            self.partial.clear();
            if let Some(error) = error? {
                return Ok(Some(ReplyEvent::Error(Box::new(error))));
            }
        }
    }

    /// Reads the head of the next message, whose bytes are in `partial` then; none if it is
    /// incomplete.
    fn header(&mut self, bytes: &mut &[u8]) -> Result<Option<Header>, WireError> {
        let missing = HEADER.saturating_sub(self.partial.len()).min(bytes.len());
        self.partial.extend_from_slice(&bytes[..missing]);
        *bytes = &bytes[missing..];
        Header::read(&self.partial)
    }
}

/// Reads a whole ErrorResponse.
fn read_error(message: &[u8]) -> Result<Option<ServerError>, WireError> {
    let frame = Frame { tag: tag::ERROR_RESPONSE, body: &message[HEADER..] };
    Ok(match Message::read(frame)? {
        Message::ErrorResponse(fields) => Some(ServerError::from_fields(fields)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_alike_however_it_is_cut() {
        let error = b"E\0\0\0\x1aSERROR\0C42703\0Mno such\0\0";
        let mut reply = b"1\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x011C\0\0\0\x0dSELECT 1\0".to_vec();
        reply.extend_from_slice(&error[..]);
        let length = u32::try_from(error.len() - 1).unwrap();
        let at = reply.len() - error.len() + 1;
        reply[at..at + 4].copy_from_slice(&length.to_be_bytes());
        reply.extend_from_slice(b"G\0\0\0\x07\0\0\0Z\0\0\0\x05I");
        for size in 1..reply.len() {
            let (mut reader, mut events) = (ReplyReader::default(), Vec::new());
            for mut piece in reply.chunks(size) {
                while let Some(event) = reader.next(&mut piece).unwrap() {
                    events.push(event);
                }
            }
            let [ReplyEvent::Parsed, ReplyEvent::Error(error), rest @ ..] = &events[..] else {
                panic!("{size}: {events:?}");
            };
            assert_eq!((error.code.as_str(), error.message.as_str()), ("42703", "no such"));
            assert_eq!(rest, [ReplyEvent::CopyIn, ReplyEvent::Ready]);
        }
    }

    #[test]
    fn bytes_that_are_no_message_are_an_error() {
        let mut bytes: &[u8] = b"\0\0\0\0\x05I";
        assert!(ReplyReader::default().next(&mut bytes).is_err());
        let mut bytes: &[u8] = b"Z\0\0\0\0";
        assert!(ReplyReader::default().next(&mut bytes).is_err());
    }
}
