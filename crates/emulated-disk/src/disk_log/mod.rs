//! The disk log: every write, discard and flush of an emulated disk, in order.
//!
//! A log is a file. Its first line names the format's version and the disk's size. A record is a
//! line of JSON. A write's data follow its line, unless an earlier write had equal data: then `at`
//! says where in the file those begin.
//!
//! ```text
//! {"pgdyno-disk-log":1,"size":1363148800}
//! {"write":{"n":1,"t":81234567,"offset":8192,"length":8192,"hash":"9f86d0…"}}
//! …8,192 bytes…
//! {"flush":{"n":2,"t":81299999,"covers":1,"done":true}}
//! {"write":{"n":3,"t":81310000,"offset":65536,"length":8192,"hash":"9f86d0…","at":146}}
//! {"discard":{"n":4,"t":81320000,"offset":0,"length":1048576}}
//! {"lost":{"n":5,"t":81330000,"write":3,"kept":512}}
//! ```
//!
//! `n` numbers the events since the disk was made. `t` is CLOCK_MONOTONIC (nanoseconds). `hash` is
//! the first half of the data's SHA-256. A flush `covers` all writes up to that number; one that is
//! not `done` was acknowledged by a disk that lies. A forced unit access arrives at the disk as a
//! write and a flush. A `lost` write had not reached the medium at a power cut, but for its first
//! `kept` bytes.
//!
//! The order of calls: [`LogWriter::create`], [`LogWriter::append`] for each event, then
//! [`DiskLog::read`].

mod pages;
mod reader;
mod record;
mod replay;
mod writer;

pub use pages::LoggedPage;
pub use reader::{DiskLog, LogError};
pub(super) use record::Record;
pub use record::{DataPlace, DiskEvent, EventKind};
pub use replay::image_at;
pub(super) use replay::{failed, new_image};
pub(super) use writer::{LogWriter, hexadecimal, log_file};
