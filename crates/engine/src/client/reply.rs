//! The server's replies, read from bytes that arrive in pieces of any size.
//!
//! Messages that a client need not read, result rows above all, are skipped in place. Only a
//! message that must be read and arrived in pieces is put together in a buffer.

use pgdyno_wire::backend::{TransactionStatus, command_complete, ready_for_query, tag};
use pgdyno_wire::frame::HEADER;
use pgdyno_wire::{Frame, Header, Message, ServerError, WireError};

use super::commit_watch::CommandEffects;
use super::expected::{ExpectedReply, is_unsolicited};

/// Longest message that is read rather than skipped (bytes).
const MAX_READ: usize = 1 << 20;

/// Part of a reply that a client acts on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyEvent {
    /// ReadyForQuery; [`ReplyReader::status`] has the session's state.
    Ready,
    Error(Box<ServerError>),
    /// A notice or warning, if they are logged.
    Notice(Box<ServerError>),
    /// ParseComplete.
    Parsed,
    /// The server asks for COPY data, or would send some.
    Copy,
    /// The columns of a result.
    Columns(Vec<Vec<u8>>),
    /// A row of the result.
    Row(Vec<Option<Vec<u8>>>),
    /// A query is complete.
    Complete,
}

/// Reads a client's replies.
pub(super) struct ReplyReader {
    /// Beginning of a message whose rest has not arrived.
    partial: Vec<u8>,
    /// Bytes of the current message that are still to be skipped.
    skip: usize,
    /// Messages that may come next.
    expected: ExpectedReply,
    /// Whether the request has not been sent yet: bytes that arrived before cannot answer it.
    unsent: bool,
    /// State of the session as of the last ReadyForQuery.
    pub(super) status: TransactionStatus,
    /// Whether rows are read.
    pub(super) rows: bool,
    /// Whether the end of each query is reported.
    pub(super) query_ends: bool,
    /// Whether notices are read.
    notices: bool,
    /// Changes of the current transaction; none if command tags are not read.
    pub(super) effects: Option<CommandEffects>,
}

impl ReplyReader {
    pub(super) fn new(notices: bool) -> Self {
        Self {
            partial: Vec::with_capacity(64),
            skip: 0,
            expected: ExpectedReply::Nothing,
            unsent: false,
            status: TransactionStatus::Idle,
            rows: false,
            query_ends: false,
            notices,
            effects: None,
        }
    }

    /// Expects the reply to a request that is about to be sent.
    #[inline]
    pub(super) fn expect(&mut self, expected: ExpectedReply) {
        self.expected = expected;
        self.unsent = true;
    }

    /// Expects the next reply of requests that were sent together.
    #[inline]
    pub(super) fn expect_next(&mut self, expected: ExpectedReply) {
        self.expected = expected;
    }

    /// Returns whether no reply is expected.
    pub(super) fn expects_nothing(&self) -> bool {
        self.expected == ExpectedReply::Nothing
    }

    /// Notes that bytes arrived after the last request was sent.
    #[inline]
    pub(super) fn arrive(&mut self) {
        self.unsent = false;
    }

    /// Checks that a message of type `tag`, other than an error, may come now.
    #[inline]
    fn advance(&mut self, tag: u8) -> Result<(), WireError> {
        if self.unsent && !is_unsolicited(tag) {
            return Err(WireError::Unsolicited { tag });
        }
        self.expected = self.expected.after(tag)?;
        Ok(())
    }

    /// Checks that `error` may come now.
    #[cold]
    fn advance_past_error(&mut self, error: &ServerError) -> Result<(), WireError> {
        let is_fatal = matches!(error.severity.as_str(), "FATAL" | "PANIC");
        if self.unsent && !is_fatal {
            return Err(WireError::Unsolicited { tag: tag::ERROR_RESPONSE });
        }
        self.expected = self.expected.after_error(is_fatal)?;
        Ok(())
    }

    /// Reads the next event from `bytes`, and advances it; none when more bytes are needed.
    #[inline]
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<ReplyEvent>, WireError> {
        self.pass(bytes);
        if !self.partial.is_empty()
            && let Some(event) = self.complete_partial(bytes)?
        {
            return Ok(Some(event));
        }
        while let Some(header) = Header::read(bytes)? {
            let skippable = self.skippable(header.tag);
            if !skippable {
                check(header)?;
            }
            let Some((message, rest)) = bytes.split_at_checked(header.len()) else {
                if skippable {
                    self.advance(header.tag)?;
                    self.skip = header.len() - bytes.len();
                    *bytes = &[];
                }
                break;
            };
            *bytes = rest;
            if !skippable {
                return self.read(header.tag, &message[HEADER..]).map(Some);
            }
            self.advance(header.tag)?;
        }
        self.partial.extend_from_slice(bytes);
        *bytes = &[];
        Ok(None)
    }

    /// Skips the rest of a message.
    #[inline]
    fn pass(&mut self, bytes: &mut &[u8]) {
        let passed = self.skip.min(bytes.len());
        *bytes = &bytes[passed..];
        self.skip -= passed;
    }

    /// Goes on with a message that arrived in pieces; returns its event if it is complete and read.
    fn complete_partial(&mut self, bytes: &mut &[u8]) -> Result<Option<ReplyEvent>, WireError> {
        self.fill_partial(bytes, HEADER);
        let Some(header) = Header::read(&self.partial)? else { return Ok(None) };
        if self.skippable(header.tag) {
            self.advance(header.tag)?;
            self.partial.clear();
            self.skip = header.body;
            self.pass(bytes);
            return Ok(None);
        }
        check(header)?;
        self.fill_partial(bytes, header.len());
        if self.partial.len() < header.len() {
            return Ok(None);
        }
        let partial = std::mem::take(&mut self.partial);
        let event = self.read(header.tag, &partial[HEADER..]);
        self.partial = partial;
        self.partial.clear();
        event.map(Some)
    }

    /// Reads a message. Types that every statement has are read directly, for a [`Message`] is
    /// large to hand over.
    #[inline]
    fn read(&mut self, tag: u8, body: &[u8]) -> Result<ReplyEvent, WireError> {
        if tag != tag::ERROR_RESPONSE {
            self.advance(tag)?;
        }
        match tag {
            tag::READY_FOR_QUERY => {
                self.status = ready_for_query(body)?;
                Ok(ReplyEvent::Ready)
            }
            tag::COMMAND_COMPLETE => {
                let command = command_complete(body)?;
                if let Some(effects) = &mut self.effects {
                    effects.note(command);
                }
                Ok(ReplyEvent::Complete)
            }
            _ => {
                let event = read(Frame { tag, body })?;
                if let ReplyEvent::Error(error) = &event {
                    self.advance_past_error(error)?;
                }
                Ok(event)
            }
        }
    }

    /// Returns whether a client need not read messages of type `tag`.
    #[inline]
    fn skippable(&self, tag: u8) -> bool {
        match tag {
            tag::DATA_ROW | tag::ROW_DESCRIPTION => !self.rows,
            tag::COMMAND_COMPLETE | tag::EMPTY_QUERY => {
                !(self.rows || self.query_ends || self.effects.is_some())
            }
            tag::NOTICE_RESPONSE => !self.notices,
            tag::BIND_COMPLETE
            | tag::CLOSE_COMPLETE
            | tag::NO_DATA
            | tag::PARAMETER_DESCRIPTION
            | tag::PORTAL_SUSPENDED
            | tag::PARAMETER_STATUS
            | tag::NOTIFICATION => true,
            _ => false,
        }
    }

    fn fill_partial(&mut self, bytes: &mut &[u8], until: usize) {
        let lacking = until.saturating_sub(self.partial.len()).min(bytes.len());
        let (drawn, rest) = bytes.split_at(lacking);
        self.partial.extend_from_slice(drawn);
        *bytes = rest;
    }
}

/// Refuses a message that is too long to be read.
fn check(header: Header) -> Result<(), WireError> {
    if header.body > MAX_READ {
        return Err(WireError::TooLong {
            tag: header.tag,
            length: header.body as u64,
            max: MAX_READ,
        });
    }
    Ok(())
}

fn read(frame: Frame<'_>) -> Result<ReplyEvent, WireError> {
    match Message::read(frame)? {
        Message::ErrorResponse(fields) => {
            Ok(ReplyEvent::Error(Box::new(ServerError::from_fields(fields))))
        }
        Message::NoticeResponse(fields) => {
            Ok(ReplyEvent::Notice(Box::new(ServerError::from_fields(fields))))
        }
        Message::ParseComplete => Ok(ReplyEvent::Parsed),
        Message::CopyIn | Message::CopyOut | Message::CopyBoth => Ok(ReplyEvent::Copy),
        Message::RowDescription(row) => {
            Ok(ReplyEvent::Columns(row.names().map(<[u8]>::to_vec).collect()))
        }
        Message::DataRow(row) => {
            Ok(ReplyEvent::Row(row.values().map(|v| v.map(<[u8]>::to_vec)).collect()))
        }
        Message::EmptyQuery => Ok(ReplyEvent::Complete),
        // Nothing else may follow start-up.
        _ => Err(WireError::UnknownValue {
            message: "reply",
            field: "type",
            value: frame.tag.into(),
        }),
    }
}
