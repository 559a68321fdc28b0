//! The states in which a power cut could have left a disk.
//!
//! A *flush boundary* is the disk as the newest flush made it, with nothing that was written since.
//! An *epoch* is the time between two flushes. Within an epoch a cut leaves any subset of its
//! writes over the boundary before it, in any order, and a write may be torn.
//!
//! This module is pure. [`Stretch::of_log`] reads a log; everything else computes.
//!
//! 1. [`Stretch::boundaries`] gives every flush boundary once, in order.
//! 2. [`Stretch::within`] gives states within epochs: all subsets of an epoch of few writes, else
//!    each prefix, each write omitted, each two neighbours omitted; and each write torn.
//! 3. [`fewest`] reduces what a failed state lacks ([`Stretch::losses`]) to what it fails for.
//! 4. A [`Candidate`] names the state and the events at which the disk may be in it. The emulated
//!    disk shows the state ([`crate::Control::show`]).
//!
//! ```
//! use pgdyno_emulated_disk::states::{Stretch, StretchFlush, StretchWrite};
//!
//! let write = |number, sector, contents: &[u128]| StretchWrite {
//!     number, sector, contents: contents.to_vec(), is_discard: false,
//! };
//! let stretch = Stretch::new(
//!     vec![write(1, 0, &[10]), write(2, 8, &[11]), write(4, 16, &[12])],
//!     vec![StretchFlush { number: 3, covers: 2 }],
//!     |_sector| 0,
//! );
//! // Before the first flush, and after it.
//! assert_eq!(stretch.boundaries().len(), 2);
//! // Of the first epoch: only its first write, and only its second. Of the last: its only write.
//! assert_eq!(stretch.within(1, |_| false).candidates.len(), 3);
//! ```

mod enumerate;
mod epoch;
mod image;
mod log;
mod shrink;
mod state;
mod stretch;
#[cfg(test)]
mod tests;
mod write;

pub use enumerate::{Candidate, Within};
pub use shrink::{Loss, fewest};
pub use state::{SECTOR, State, Tear, Window};
pub use stretch::Stretch;
pub use write::{Content, StretchFlush, StretchWrite};
