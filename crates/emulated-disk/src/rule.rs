//! Fault rules: the errors of an emulated disk, and the requests that they hit.

use pgdyno_model::units::Bytes;
use serde::{Deserialize, Serialize};

pub use super::page::TearUnit;
use super::page::{
    PAGE_SIZE, is_data_page, is_older_version, is_wal_page, lsn, tears, wal_address,
};

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// A read.
    Read,
    /// A write. Discards do not count.
    Write,
    /// A cache flush, as fsync(2) sends it: makes earlier writes durable.
    Flush,
}

/// A kind of page that a write is recognised by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// A page of a table or an index with items on it: its header names a page of 8 kB and a
    /// plausible layout. Free space and visibility maps have no items.
    DataPage,
    /// A page of WAL.
    WalPage,
}

impl Content {
    /// Returns the offset of each page of this kind in `data`. Pages begin at multiples of 4 kB.
    pub fn pages(self, data: &[u8]) -> Vec<usize> {
        let size = PAGE_SIZE;
        let mut pages = Vec::new();
        let mut at = 0;
        while at + size <= data.len() {
            if self.is_page(&data[at..at + size]) {
                pages.push(at);
                at += size;
            } else {
                at += size / 2;
            }
        }
        pages
    }

    /// Returns the WAL position that a page of this kind bears: of a data page that of its last
    /// change, of a page of WAL its own.
    pub fn position(self, page: &[u8]) -> u64 {
        match self {
            Self::DataPage => lsn(page),
            Self::WalPage => wal_address(page),
        }
    }

    fn is_page(self, page: &[u8]) -> bool {
        match self {
            Self::DataPage => is_data_page(page),
            Self::WalPage => is_wal_page(page),
        }
    }
}

/// The contents that a page replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Any contents.
    #[default]
    Anything,
    /// An older version of the page, which belongs to a table. Recovery from the WAL position
    /// `redo` needs that version unless full_page_writes is on.
    OlderVersion {
        /// The redo position of the newest checkpoint that is complete.
        redo: u64,
    },
}

/// Selects requests for a rule. A field that is none selects all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selector {
    /// The kind of request.
    pub operation: Operation,
    /// Requests that touch a byte of the range: from the first offset on, and before the second.
    pub range: Option<(u64, u64)>,
    /// Requests of at least this size.
    pub at_least: Option<Bytes>,
    /// Writes that hold a page of this kind.
    pub holds: Option<Content>,
    /// Writes that replace these contents by such a page.
    #[serde(default)]
    pub over: Over,
}

impl Selector {
    /// Selects all requests of the kind `operation`.
    pub fn all(operation: Operation) -> Self {
        Self { operation, range: None, at_least: None, holds: None, over: Over::Anything }
    }

    /// Selects writes that change a page of a table whose older version recovery from `redo` needs
    /// ([`Over::OlderVersion`]).
    pub fn needed_from(redo: u64) -> Self {
        Self { over: Over::OlderVersion { redo }, ..Self::writes_of(Content::DataPage) }
    }

    /// Selects writes that hold a page of kind `content`.
    pub fn writes_of(content: Content) -> Self {
        Self { holds: Some(content), ..Self::all(Operation::Write) }
    }

    /// Tells whether a request is selected.
    ///
    /// `data` are the bytes of a write, `before` returns the bytes that it replaces, and `tear` is
    /// the unit in which it is to tear.
    pub(super) fn takes(
        &self,
        operation: Operation,
        offset: u64,
        length: u64,
        data: Option<&[u8]>,
        tear: Option<TearUnit>,
        before: &dyn Fn() -> Vec<u8>,
    ) -> bool {
        self.operation == operation
            && self.range.is_none_or(|(from, to)| offset < to && offset + length > from)
            && self.at_least.is_none_or(|least| length >= least.0)
            && self.holds.is_none_or(|content| {
                data.is_some_and(|data| !self.pages(content, data, tear, before).is_empty())
            })
    }

    /// Returns the offset of each selected page in `data`. With `tear`, only pages that can tear so
    /// that the result is neither version.
    pub(super) fn pages(
        &self,
        content: Content,
        data: &[u8],
        tear: Option<TearUnit>,
        before: &dyn Fn() -> Vec<u8>,
    ) -> Vec<usize> {
        let mut pages = content.pages(data);
        if pages.is_empty() || (self.over == Over::Anything && tear.is_none()) {
            return pages;
        }
        let before = before();
        pages.retain(|&at| {
            let (older, newer) = (&before[at..at + PAGE_SIZE], &data[at..at + PAGE_SIZE]);
            let is_over = match self.over {
                Over::Anything => true,
                Over::OlderVersion { redo } => is_older_version(older, newer, redo),
            };
            is_over && tear.is_none_or(|unit| !tears(older, newer, unit).is_empty())
        });
        pages
    }
}

/// The selected requests that a rule hits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hits {
    /// The n-th request since the rule was armed, counted from 1.
    Nth(u64),
    /// The n-th request and all later ones.
    From(u64),
    /// Each request with this probability, drawn by the disk's seed.
    Chance(f64),
}

/// An error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum DiskError {
    /// Input/output error.
    Eio,
    /// No space left on device: the answer of a thinly provisioned volume that cannot grow. To a
    /// filesystem it is an error of the device, not a full filesystem.
    Enospc,
}

/// The effect of a power cut on the volatile cache. Flushed writes stay, unless the disk lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// The probability that a cached write had reached the medium, drawn by the disk's seed: a
    /// drive writes back in an order of its own.
    pub survives: f64,
    /// The unit in which the newest cached write is torn; none if it is not.
    pub tear: Option<TearUnit>,
}

/// The effect of a rule on a request that it hits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The request fails without effect.
    Fail(DiskError),
    /// The power is cut: at a write after it is in the cache, at a flush before it has an effect.
    Cut(Cut),
    /// Only the first bytes of a write reach the disk. It is acknowledged as whole. A write that
    /// fits into one unit is not hit.
    ///
    /// A write that was selected by its pages tears inside of such a page, where both parts differ
    /// from the earlier contents. A write without such a place is not hit.
    Tear(TearUnit),
    /// Only the first bytes of a write reach the medium, and the power is cut.
    TearAndCut(TearUnit, Cut),
    /// The flush or write is acknowledged and not done.
    Lie,
}

/// A fault that is armed on a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Selects the requests.
    pub on: Selector,
    /// The selected requests that are hit.
    pub hits: Hits,
    /// The effect on them.
    pub effect: Effect,
}
