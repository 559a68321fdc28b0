//! PostgreSQL's wire protocol, version 3, as a codec: bytes in, messages out. No I/O, no unsafe.
//!
//! [`frame`] finds where a message from the server begins and ends, [`backend`] reads what it says
//! in place, [`frontend`] appends messages for the server to a buffer of the caller's, [`auth`]
//! answers its demands for proof of identity. Every length that the server names is checked against
//! the bytes that are there.

pub mod auth;
pub mod backend;
mod cursor;
mod error;
pub mod frame;
pub mod frontend;
pub mod inspect;
mod server_error;

pub use backend::Message;
pub use error::WireError;
pub use frame::{Frame, Header, next_frame};
pub use server_error::ServerError;
