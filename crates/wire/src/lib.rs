//! PostgreSQL's wire protocol, version 3, as a codec: bytes in, messages out.
//!
//! The crate does no I/O and has no `unsafe`. A caller that owns the socket uses the modules in
//! this order:
//!
//! 1. [`frontend::startup`] appends the first message to a buffer of the caller's.
//! 2. [`next_frame`] finds a whole message in the bytes that arrived, and [`Message::read`] reads
//!    it in place. Messages that nobody needs to read are skipped by their [`Header`] alone.
//! 3. [`auth::AuthExchange`] answers requests for a proof of identity until the server accepts.
//! 4. [`frontend`] appends queries; [`backend`] has the types of their replies. [`ServerError`] is
//!    an error or notice as a value of its own, rendered as libpq does.
//!
//! Every length that the server names is checked against the bytes that are there: [`WireError`]
//! says what is wrong. [`inspect`] bounds what a server may send to a client library that knows no
//! bounds.
//!
//! ```
//! use pgdyno_wire::{Message, frontend, next_frame};
//!
//! let mut out = Vec::new();
//! frontend::query(&mut out, b"SELECT 1")?;
//! assert_eq!(out, b"Q\0\0\0\x0dSELECT 1\0");
//!
//! let mut received: &[u8] = b"D\0\0\0\x0b\0\x01\0\0\0\x011C\0\0\0\x0dSELECT 1\0";
//! while let Some(frame) = next_frame(received)? {
//!     match Message::read(frame)? {
//!         Message::DataRow(row) => assert_eq!(row.values().next(), Some(Some(&b"1"[..]))),
//!         Message::CommandComplete(tag) => assert_eq!(tag, b"SELECT 1"),
//!         other => panic!("{other:?}"),
//!     }
//!     received = &received[frame.len()..];
//! }
//! # Ok::<(), pgdyno_wire::WireError>(())
//! ```

pub mod auth;
pub mod backend;
mod cursor;
mod error;
mod fields;
pub mod frame;
pub mod frontend;
pub mod inspect;
mod rows;
mod server_error;

pub use backend::Message;
pub use error::WireError;
pub use frame::{Frame, Header, next_frame};
pub use server_error::ServerError;
