//! Text for people: figures, names from elsewhere, words that were probably meant.
//!
//! - [`mod@format`] prints figures.
//! - [`printable`] keeps control characters off terminals.
//! - [`nearest`] finds the allowed word that a slip was meant to be.
//!
//! ```
//! use pgdyno_text::{format, nearest};
//!
//! assert_eq!(format::counted(2_u32, "round"), "2 rounds");
//! assert_eq!(nearest::probable("client", &["clients", "threads"]), Some("clients"));
//! ```

pub mod format;
pub mod nearest;
pub mod printable;
