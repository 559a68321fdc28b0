//! PostgreSQL's pages among the writes of a log, known by their headers.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::reader::DiskLog;
use super::record::{DataPlace, EventKind};
use crate::pieces::index;
use crate::rule::Content;

/// A page of PostgreSQL's in a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedPage {
    /// Kind of the page.
    pub content: Content,
    /// Offset of the page on the disk (bytes).
    pub offset: u64,
    /// WAL position (LSN): that of a data page's last change, or where a page of WAL begins.
    pub position: u64,
}

impl DiskLog {
    /// Returns the pages in the write `number`, whose data are in the log's `file`. None for other
    /// events.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn pages(&self, number: u64, file: &File) -> io::Result<Vec<LoggedPage>> {
        let event = self.events.binary_search_by_key(&number, |event| event.number);
        let kind = event.ok().map(|at| &self.events[at].kind);
        let Some(EventKind::Write { offset, length, data: DataPlace::Stored { at, .. } }) = kind
        else {
            return Ok(Vec::new());
        };
        let mut bytes = vec![0; index(*length)];
        file.read_exact_at(&mut bytes, *at)?;
        let mut pages = Vec::new();
        for content in [Content::DataPage, Content::WalPage] {
            pages.extend(content.pages(&bytes).into_iter().map(|at| LoggedPage {
                content,
                offset: offset + at as u64,
                position: content.position(&bytes[at..]),
            }));
        }
        Ok(pages)
    }
}
