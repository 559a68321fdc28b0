//! Pages of PostgreSQL as a disk sees them: bytes that are known by their headers
//! (src/include/storage/bufpage.h).
//!
//! A torn page shows only where recovery needs the page as it was. [`is_older_version`] tells that
//! by the page's two versions.

use serde::{Deserialize, Serialize};

/// PostgreSQL's default block size, and that of its WAL (bytes).
pub const PAGE: u64 = 8192;
pub(super) const PAGE_SIZE: usize = PAGE as usize;

/// Bytes before the line pointers.
const HEADER: usize = 24;
/// Bytes of a tuple's header without its bitmap of nulls.
const TUPLE_HEADER: usize = 23;
const XMIN_HINTS: u16 = 0x0300;
const XMAX_HINTS: u16 = 0x0C00;
const XMAX_INVALID: u16 = 0x0800;

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Tells whether this is a page of a table or an index with items on it. Layout 4 is that of
/// PostgreSQL 8.3 and later.
pub(super) fn is_data_page(page: &[u8]) -> bool {
    let (lower, upper, special) = (short(page, 12), short(page, 14), short(page, 16));
    short(page, 18) == 0x2004 && 24 < lower && lower <= upper && upper <= special && special <= 8192
}

/// Tells whether this is a page of WAL of PostgreSQL 10 or later
/// (src/include/access/xlog_internal.h).
pub(super) fn is_wal_page(page: &[u8]) -> bool {
    let address = wal_address(page);
    matches!(page[1], 0xD0 | 0xD1)
        && address != 0
        && address.is_multiple_of(PAGE)
        && short(page, 2) < 16
}

/// Returns the WAL position at which a page of WAL begins.
pub(super) fn wal_address(page: &[u8]) -> u64 {
    page[8..16].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

/// Returns the WAL position of a data page's last logged change.
pub(super) fn lsn(page: &[u8]) -> u64 {
    u64::from(word(page, 0)) << 32 | u64::from(word(page, 4))
}

/// A tuple of a table's page.
struct Tuple<'a> {
    offset: usize,
    bytes: &'a [u8],
}

impl Tuple<'_> {
    fn xmin(&self) -> u32 {
        word(self.bytes, 0)
    }

    fn xmax(&self) -> u32 {
        word(self.bytes, 4)
    }

    fn infomask(&self) -> u16 {
        short(self.bytes, 20)
    }

    fn has_same_row(&self, other: &Self) -> bool {
        self.offset == other.offset
            && self.xmin() == other.xmin()
            && self.bytes[TUPLE_HEADER..] == other.bytes[TUPLE_HEADER..]
    }

    /// Tells whether no hint bit was set since `older`. That a statement set xmax is no hint.
    fn has_hints_of(&self, older: &Self) -> bool {
        let changed = self.infomask() ^ older.infomask();
        let xmax_is_as_it_was = match self.xmax() == older.xmax() {
            true => changed & XMAX_HINTS == 0,
            false => older.xmax() == 0 || older.infomask() & XMAX_INVALID != 0,
        };
        changed & XMIN_HINTS == 0 && xmax_is_as_it_was
    }
}

/// Returns the tuple that line pointer `n` of a table's page leads to, counted from 0.
fn tuple(page: &[u8], n: usize) -> Option<Tuple<'_>> {
    const NORMAL: u32 = 1;
    let at = HEADER + 4 * n;
    if at + 4 > usize::from(short(page, 12)) {
        return None;
    }
    let pointer = word(page, at);
    let (offset, length) = ((pointer & 0x7FFF) as usize, (pointer >> 17) as usize);
    let bytes = page.get(offset..offset + length).filter(|bytes| bytes.len() > TUPLE_HEADER)?;
    (pointer >> 15 & 3 == NORMAL).then_some(Tuple { offset, bytes })
}

/// Tells whether recovery from `redo` needs `older` to make `newer` of it, unless full_page_writes
/// is on.
///
/// Both are versions of one page of a table, the older one from before the WAL position `redo`.
/// Excluded are pages that WAL since then begins anew, or has an image of in any case: with
/// checksums, where a hint bit is the first change. Pruning sets hints, and so no row may be gone.
pub(super) fn is_older_version(older: &[u8], newer: &[u8], redo: u64) -> bool {
    let is_table = |page: &[u8]| is_data_page(page) && usize::from(short(page, 16)) == PAGE_SIZE;
    if !is_table(older) || !is_table(newer) || lsn(older) >= redo || lsn(newer) <= redo {
        return false;
    }
    let mut kept = 0;
    for n in 0..(usize::from(short(older, 12)) - HEADER) / 4 {
        let Some(before) = tuple(older, n) else { continue };
        match tuple(newer, n) {
            Some(now) if now.has_same_row(&before) && now.has_hints_of(&before) => kept += 1,
            _ => return false,
        }
    }
    kept > 0
}

/// Returns after how many bytes of `newer` a page can tear so that it is neither version.
pub(super) fn tears(older: &[u8], newer: &[u8], unit: TearUnit) -> Vec<usize> {
    let unit = usize::try_from(unit.bytes()).unwrap_or(PAGE_SIZE);
    let ends = (unit..newer.len()).step_by(unit);
    ends.filter(|&end| newer[..end] != older[..end] && newer[end..] != older[end..]).collect()
}

/// The unit that the medium writes whole or not at all.
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
    pub fn bytes(self) -> u64 {
        match self {
            Self::Bytes512 => 512,
            Self::Bytes4096 => 4096,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const REDO: u64 = 0x1_0000_1000;

    /// A page of a table, last changed at `lsn`, with a row of 100 bytes for each filler.
    pub(in super::super) fn page(lsn: u64, rows: &[u8]) -> Vec<u8> {
        let mut page = vec![0; PAGE_SIZE];
        page[..4].copy_from_slice(&u32::try_from(lsn >> 32).unwrap().to_le_bytes());
        page[4..8].copy_from_slice(&(lsn as u32).to_le_bytes());
        let lower = u16::try_from(HEADER + 4 * rows.len()).unwrap();
        let upper = u16::try_from(PAGE_SIZE - 100 * rows.len()).unwrap();
        page[12..14].copy_from_slice(&lower.to_le_bytes());
        page[14..16].copy_from_slice(&upper.to_le_bytes());
        page[16..20].copy_from_slice(&[0, 0x20, 0x04, 0x20]);
        for (n, filler) in rows.iter().enumerate() {
            let at = PAGE_SIZE - 100 * (n + 1);
            let pointer = u32::try_from(at).unwrap() | 1 << 15 | 100 << 17;
            page[HEADER + 4 * n..][..4].copy_from_slice(&pointer.to_le_bytes());
            page[at..at + 100].fill(*filler);
            set(&mut page, n, 3, 0, 0x0900);
        }
        page
    }

    fn set(page: &mut [u8], n: usize, xmin: u32, xmax: u32, infomask: u16) {
        let at = PAGE_SIZE - 100 * (n + 1);
        page[at..at + 4].copy_from_slice(&xmin.to_le_bytes());
        page[at + 4..at + 8].copy_from_slice(&xmax.to_le_bytes());
        page[at + 20..at + 22].copy_from_slice(&infomask.to_le_bytes());
    }

    #[test]
    fn an_updated_row_and_a_new_one_leave_the_page_in_need_of_its_older_version() {
        let older = page(REDO - 1, &[1, 2]);
        let mut newer = page(REDO + 9, &[1, 2, 3]);
        set(&mut newer, 1, 3, 77, 0x0100);
        assert!(is_older_version(&older, &newer, REDO));
    }

    #[test]
    fn a_page_that_wal_has_an_image_of_or_begins_anew_is_excluded() {
        let older = page(REDO - 1, &[1, 2]);
        let newer = page(REDO + 9, &[1, 2]);
        assert!(!is_older_version(&older, &newer, REDO + 20), "not changed since");
        assert!(!is_older_version(&older, &newer, REDO - 5), "the older version is of later too");
        assert!(!is_older_version(&page(REDO - 1, &[1, 9]), &newer, REDO), "another page's place");
        assert!(!is_older_version(&older, &page(REDO + 9, &[1]), REDO), "a row was pruned");
        let mut unhinted = older.clone();
        set(&mut unhinted, 0, 3, 0, 0x0800);
        assert!(
            !is_older_version(&unhinted, &newer, REDO),
            "a hint bit was set, and may have been the first"
        );
        let mut locked = older.clone();
        set(&mut locked, 0, 3, 5, 0x0100);
        assert!(!is_older_version(&locked, &newer, REDO), "an xmax was found to be void");
        assert!(!is_older_version(&[0; PAGE_SIZE], &newer, REDO));
    }

    #[test]
    fn a_page_tears_where_both_parts_differ() {
        let older = page(REDO - 1, &[1, 2]);
        let mut newer = page(REDO + 9, &[1, 2]);
        assert!(tears(&older, &newer, TearUnit::Bytes512).is_empty(), "only its header changed");
        newer[3000] = 1;
        assert_eq!(tears(&older, &newer, TearUnit::Bytes512), [512, 1024, 1536, 2048, 2560]);
        assert!(tears(&older, &newer, TearUnit::Bytes4096).is_empty());
        newer[5000] = 1;
        assert_eq!(tears(&older, &newer, TearUnit::Bytes4096), [4096]);
        assert!(tears(&newer, &newer, TearUnit::Bytes512).is_empty());
    }
}
