//! What can be wrong with bytes.

use thiserror::Error;

/// Bytes that are no message of the protocol, or a message that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// A length below the four bytes it is written in.
    #[error("message `{}` says it is {length} bytes long; the length alone takes 4", tag.escape_ascii())]
    LengthTooShort {
        /// The message's type byte.
        tag: u8,
        /// The length it gave.
        length: i32,
    },
    /// A length beyond what this codec takes.
    #[error("message `{}` says it is {length} bytes long; at most {max} are taken", tag.escape_ascii())]
    TooLong {
        /// The message's type byte.
        tag: u8,
        /// The length it gave.
        length: u64,
        /// The longest that is taken.
        max: usize,
    },
    /// More messages of their kind than are taken.
    #[error("more than {max} messages before the one that is waited for, the last of type `{}`", tag.escape_ascii())]
    TooMany {
        /// The last one's type byte.
        tag: u8,
        /// The most that are taken.
        max: u32,
    },
    /// More bytes of one reply than are taken.
    #[error("a reply of more than {max} bytes")]
    ReplyTooLong {
        /// The most that are taken.
        max: u64,
    },
    /// A message that answers nothing that was sent.
    #[error("a message of type `{}`, which nobody asked for", tag.escape_ascii())]
    Unsolicited {
        /// Its type byte.
        tag: u8,
    },
    /// The message ended inside a field.
    #[error("{message}: ends before its field `{field}` does")]
    Truncated {
        /// The message's name.
        message: &'static str,
        /// The field that is cut off.
        field: &'static str,
    },
    /// A string without the NUL that ends it.
    #[error("{message}: no NUL ends its field `{field}`")]
    MissingNul {
        /// The message's name.
        message: &'static str,
        /// The string.
        field: &'static str,
    },
    /// A count or a length that is negative, or beyond the message's end.
    #[error("{message}: its `{field}` is {value}, which its length does not allow")]
    InvalidCount {
        /// The message's name.
        message: &'static str,
        /// The count or length.
        field: &'static str,
        /// What it was.
        value: i32,
    },
    /// A field with a value that the protocol does not know.
    #[error("{message}: its `{field}` is {value}, which the protocol does not know")]
    UnknownValue {
        /// The message's name.
        message: &'static str,
        /// The field.
        field: &'static str,
        /// What it was.
        value: i64,
    },
    /// A type byte that the protocol does not know.
    #[error("a message of type `{}`, which the protocol does not know", .0.escape_ascii())]
    UnknownTag(u8),
    /// Bytes left over after the last field.
    #[error("{message}: {bytes} bytes are left over after its last field")]
    TrailingBytes {
        /// The message's name.
        message: &'static str,
        /// How many.
        bytes: usize,
    },
    /// A string to be sent that holds a NUL, which would end it early.
    #[error("{message}: its `{field}` holds a NUL byte, which the protocol cannot carry")]
    EmbeddedNul {
        /// The message's name.
        message: &'static str,
        /// The string.
        field: &'static str,
    },
    /// A message to be sent with more parameters, or more bytes, than its fields can count.
    #[error("{message}: its `{field}` is {value}; at most {max} can be sent")]
    TooLarge {
        /// The message's name.
        message: &'static str,
        /// The field.
        field: &'static str,
        /// What it was.
        value: usize,
        /// The largest possible.
        max: usize,
    },
}
