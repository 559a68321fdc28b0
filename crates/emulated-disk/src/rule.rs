//! What an emulated disk does wrong, and when.

use pgdyno_model::units::Bytes;
use serde::{Deserialize, Serialize};

use super::page::{PAGE_SIZE, is_data_page, is_older_version, is_wal_page, tears};

/// What a request asks of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Reading.
    Read,
    /// Writing; a discard is none.
    Write,
    /// Making what was written durable: a cache flush, as fsync(2) asks for it.
    Flush,
}

/// What a write is known by from its bytes.
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
    /// The first byte of each page of this kind in `data`, looked for at each multiple of 4 kB.
    #[must_use]
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

    fn is_page(self, page: &[u8]) -> bool {
        match self {
            Self::DataPage => is_data_page(page),
            Self::WalPage => is_wal_page(page),
        }
    }
}

/// What a page is written over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Whatever lies there.
    #[default]
    Anything,
    /// A page of the same kind.
    Page,
    /// An older version of the same page of a table, which recovery from the WAL position `redo`
    /// needs as it was unless full_page_writes is on.
    OlderVersion {
        /// The redo position of the newest checkpoint that is complete.
        redo: u64,
    },
}

/// Which requests a rule is about. What is none is not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selector {
    /// What they ask.
    pub operation: Operation,
    /// Those that touch a byte from the first on and before the second.
    pub range: Option<(u64, u64)>,
    /// Those of at least so many bytes.
    pub at_least: Option<Bytes>,
    /// Writes that hold such a page.
    pub holds: Option<Content>,
    /// Of those only the ones that write it over this.
    #[serde(default)]
    pub over: Over,
}

impl Selector {
    /// All requests that ask for `operation`.
    #[must_use]
    pub fn all(operation: Operation) -> Self {
        Self { operation, range: None, at_least: None, holds: None, over: Over::Anything }
    }

    /// Writes that change a page of kind `content` that the disk has already.
    #[must_use]
    pub fn changes_of(content: Content) -> Self {
        Self { over: Over::Page, ..Self::writes_of(content) }
    }

    /// Writes that change a page of a table whose older version recovery from `redo` needs
    /// ([`Over::OlderVersion`]).
    #[must_use]
    pub fn needed_from(redo: u64) -> Self {
        Self { over: Over::OlderVersion { redo }, ..Self::writes_of(Content::DataPage) }
    }

    /// Writes that hold a page of kind `content`.
    #[must_use]
    pub fn writes_of(content: Content) -> Self {
        Self { holds: Some(content), ..Self::all(Operation::Write) }
    }

    /// Whether a request is meant; `data` is what a write writes. `before` gives what lies there
    /// before it, and `tear` says in which units it is to tear.
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

    /// The first byte of each page of `data` that this is about. One that is to tear has a place
    /// where it can, and be neither version then.
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
                Over::Page => content.is_page(older),
                Over::OlderVersion { redo } => is_older_version(older, newer, redo),
            };
            is_over && tear.is_none_or(|unit| !tears(older, newer, unit).is_empty())
        });
        pages
    }
}

/// Which of the selected requests are hit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hits {
    /// The n-th since the rule was armed, counted from 1.
    Nth(u64),
    /// The n-th and all after it.
    From(u64),
    /// Each with this probability, drawn by the disk's seed.
    Chance(f64),
}

/// An error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum DiskError {
    /// Input/output error.
    Eio,
    /// No space left on device: what a thinly provisioned volume answers that cannot grow. To a
    /// filesystem it is an error of the device, not a full filesystem.
    Enospc,
}

/// What the medium writes whole or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TearUnit {
    /// A sector of 512 bytes.
    #[serde(rename = "512")]
    Bytes512,
    /// A sector of 4 kB.
    #[serde(rename = "4096")]
    Bytes4096,
}

impl TearUnit {
    /// In bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Self::Bytes512 => 512,
            Self::Bytes4096 => 4096,
        }
    }
}

/// How the power goes. What was flushed on a disk that does not lie is on the medium and stays;
/// this is about the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// The share of the cached writes that had reached the medium all the same, each drawn by the
    /// disk's seed: a drive writes back in an order of its own. 0: none.
    pub survives: f64,
    /// The newest write in the cache reaches the medium in part.
    pub tear: Option<TearUnit>,
}

/// What a rule does to a request that it hits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// It fails, and nothing of it is done.
    Fail(DiskError),
    /// The power goes: with a write, when it is in the cache; with a flush, before anything is
    /// durable by it.
    Cut(Cut),
    /// A write reaches the disk in part, its first bytes. It is acknowledged as whole. A write that
    /// fits into one unit is not hit.
    ///
    /// One that was chosen by its pages tears through such a page, where what arrives and what is
    /// lost both differ from what lay there. A write without such a place is not hit.
    Tear(TearUnit),
    /// The same, right on the medium, and there the power goes.
    TearAndCut(TearUnit, Cut),
    /// It is acknowledged and not done: a flush, or a write.
    Lie,
}

/// A fault that is armed on a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Which requests.
    pub on: Selector,
    /// Which of them.
    pub hits: Hits,
    /// What becomes of those.
    pub effect: Effect,
}
