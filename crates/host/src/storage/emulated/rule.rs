//! What an emulated disk does wrong, and when.

use pgdyno_model::units::Bytes;
use serde::{Deserialize, Serialize};

/// PostgreSQL's default block size, and that of its WAL (bytes).
pub const PAGE: u64 = 8192;

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
    /// A page of a table or an index with items on it: its header names a page of 8 kB in layout 4, which PostgreSQL has had since
    /// 8.3, and a plausible layout (src/include/storage/bufpage.h). Free space and visibility maps have no items.
    DataPage,
    /// A page of WAL: `xlp_magic` of PostgreSQL 10 to 18 and later (0xD0.. or 0xD1..), and a page address that is a multiple of
    /// the page (src/include/access/xlog_internal.h).
    WalPage,
}

impl Content {
    /// The first byte of each page of this kind in `data`, looked for at each multiple of 4 kB.
    #[must_use]
    pub fn pages(self, data: &[u8]) -> Vec<usize> {
        let size = PAGE as usize;
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
        let short = |at: usize| u16::from_le_bytes([page[at], page[at + 1]]);
        match self {
            Self::DataPage => {
                let (lower, upper, special) = (short(12), short(14), short(16));
                short(18) == 0x2004 && 24 < lower && lower <= upper && upper <= special && special <= 8192
            }
            Self::WalPage => {
                let address = page[8..16].iter().rev().fold(0_u64, |sum, &b| sum << 8 | u64::from(b));
                matches!(page[1], 0xD0 | 0xD1) && address != 0 && address % PAGE == 0 && short(2) < 16
            }
        }
    }
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
    /// Of those only the ones that write it over such a page, not where none was yet.
    #[serde(default)]
    pub over: bool,
}

impl Selector {
    /// All requests that ask for `operation`.
    #[must_use]
    pub fn all(operation: Operation) -> Self {
        Self { operation, range: None, at_least: None, holds: None, over: false }
    }

    /// Writes that change a page of kind `content` that the disk has already.
    #[must_use]
    pub fn changes_of(content: Content) -> Self {
        Self { over: true, ..Self::writes_of(content) }
    }

    /// Writes that hold a page of kind `content`.
    #[must_use]
    pub fn writes_of(content: Content) -> Self {
        Self { holds: Some(content), ..Self::all(Operation::Write) }
    }

    /// Whether a request is meant; `data` is what a write writes, and `before` gives what lies there before it.
    pub(super) fn takes(
        &self,
        operation: Operation,
        offset: u64,
        length: u64,
        data: Option<&[u8]>,
        before: &dyn Fn() -> Vec<u8>,
    ) -> bool {
        self.operation == operation
            && self.range.is_none_or(|(from, to)| offset < to && offset + length > from)
            && self.at_least.is_none_or(|least| length >= least.0)
            && self
                .holds
                .is_none_or(|content| data.is_some_and(|data| !self.pages(content, data, before).is_empty()))
    }

    /// The pages of `data` that this is about.
    pub(super) fn pages(&self, content: Content, data: &[u8], before: &dyn Fn() -> Vec<u8>) -> Vec<usize> {
        let mut pages = content.pages(data);
        if self.over && !pages.is_empty() {
            let before = before();
            pages.retain(|&at| content.is_page(&before[at..at + PAGE as usize]));
        }
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
    /// No space left on device: what a thinly provisioned volume answers that cannot grow. To a filesystem it is an error of the
    /// device, not a full filesystem.
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

/// How the power goes. What was flushed on a disk that does not lie is on the medium and stays; this is about the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// The share of the cached writes that had reached the medium all the same, each drawn by the disk's seed: a drive writes back
    /// in an order of its own. 0: none.
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
    /// The power goes: with a write, when it is in the cache; with a flush, before anything is durable by it.
    Cut(Cut),
    /// A write reaches the disk in part, its first bytes; of one that was chosen by its pages, the cut goes through such a page. It is
    /// acknowledged as whole. A write that fits into one unit is not hit.
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
