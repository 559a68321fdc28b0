//! Errors of the codec.

use thiserror::Error;

/// Bytes that are no message of the protocol, or a message that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// The length is below 4, the size of the length itself.
    #[error(
        "message `{}` says it is {length} bytes long; the length alone takes 4",
        tag.escape_ascii()
    )]
    LengthTooShort {
        /// Type byte of the message.
        tag: u8,
        /// Length that the message names (bytes).
        length: i32,
    },
    /// The length is beyond the limit.
    #[error(
        "message `{}` says it is {length} bytes long; at most {max} are taken",
        tag.escape_ascii()
    )]
    TooLong {
        /// Type byte of the message.
        tag: u8,
        /// Length that the message names (bytes).
        length: u64,
        /// Limit (bytes).
        max: usize,
    },
    /// More messages than the limit came before the expected one.
    #[error(
        "more than {max} messages before the one that is waited for, the last of type `{}`",
        tag.escape_ascii()
    )]
    TooMany {
        /// Type byte of the last message.
        tag: u8,
        /// Limit.
        max: u32,
    },
    /// A reply is longer than the limit.
    #[error("a reply of more than {max} bytes")]
    ReplyTooLong {
        /// Limit.
        max: u64,
    },
    /// A message answers nothing that was sent.
    #[error("a message of type `{}`, which nobody asked for", tag.escape_ascii())]
    Unsolicited {
        /// Type byte of the message.
        tag: u8,
    },
    /// The message ends inside a field.
    #[error("{message}: ends before its field `{field}` does")]
    Truncated {
        /// Name of the message.
        message: &'static str,
        /// Field that is cut off.
        field: &'static str,
    },
    /// A string lacks its NUL.
    #[error("{message}: no NUL ends its field `{field}`")]
    MissingNul {
        /// Name of the message.
        message: &'static str,
        /// Field with the string.
        field: &'static str,
    },
    /// A count or length is negative or reaches beyond the message.
    #[error("{message}: its `{field}` is {value}, which its length does not allow")]
    InvalidCount {
        /// Name of the message.
        message: &'static str,
        /// Field with the count or length.
        field: &'static str,
        /// Value of the field.
        value: i32,
    },
    /// A field has a value that the protocol does not know.
    #[error("{message}: its `{field}` is {value}, which the protocol does not know")]
    UnknownValue {
        /// Name of the message.
        message: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: i64,
    },
    /// The protocol does not know the type byte.
    #[error("a message of type `{}`, which the protocol does not know", .0.escape_ascii())]
    UnknownTag(u8),
    /// Bytes follow the last field.
    #[error("{message}: {bytes} bytes are left over after its last field")]
    TrailingBytes {
        /// Name of the message.
        message: &'static str,
        /// Bytes left over (count).
        bytes: usize,
    },
    /// A string to be sent contains a NUL, which would end it early.
    #[error("{message}: its `{field}` holds a NUL byte, which the protocol cannot carry")]
    EmbeddedNul {
        /// Name of the message.
        message: &'static str,
        /// Field with the string.
        field: &'static str,
    },
    /// A message to be sent has more parameters or bytes than its fields can count.
    #[error("{message}: its `{field}` is {value}; at most {max} can be sent")]
    TooLarge {
        /// Name of the message.
        message: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: usize,
        /// Largest possible value.
        max: usize,
    },
}
