//! The pages of WAL in a disk's log, each as often as it was written.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use pgdyno_emulated_disk::{Content, DataPlace, DiskLog, EventKind};

/// A page (bytes): XLOG_BLCKSZ of a usual build.
const PAGE: u64 = 8192;
/// The header of a page, and that of the first page of a segment (bytes): `SizeOfXLogShortPHD` and
/// `SizeOfXLogLongPHD` of PostgreSQL's `access/xlog_internal.h`.
const HEADERS: [u64; 2] = [24, 40];

/// A part of WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalPart {
    /// Where it begins (an LSN).
    pub(super) begin: u64,
    /// How much, without the headers of pages that lie in it (bytes).
    pub(super) length: u64,
}

/// A page as one write has it.
#[derive(Clone, Copy, Debug)]
struct Version {
    /// The number of the write.
    write: u64,
    /// Where in the log's file it lies (bytes).
    at: u64,
}

/// The pages of WAL in a disk's log.
pub(super) struct WalPages {
    /// The log's file.
    file: File,
    /// By the position of a page (an LSN): its versions, in the order of the writes.
    versions: BTreeMap<u64, Vec<Version>>,
}

impl WalPages {
    /// Finds the pages in `log`, whose file is `path`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(log: &DiskLog, path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut versions: BTreeMap<u64, Vec<Version>> = BTreeMap::new();
        for event in &log.events {
            let EventKind::Write { offset, data: DataPlace::Stored { at, .. }, .. } = event.kind
            else {
                continue;
            };
            let pages = log.pages(event.number, &file)?;
            for page in pages.iter().filter(|page| page.content == Content::WalPage) {
                let version = Version { write: event.number, at: at + (page.offset - offset) };
                versions.entry(page.position).or_default().push(version);
            }
        }
        Ok(Self { file, versions })
    }

    /// Returns where the first page begins; none without a page.
    pub(super) fn begin(&self) -> Option<u64> {
        self.versions.keys().next().copied()
    }

    /// Writes each page as it was written last into the segments in `folder`, which lack all WAL
    /// written since they were copied. Returns the timeline.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub(super) fn lay_out(&self, folder: &Path) -> io::Result<u32> {
        let segments = fs::read_dir(folder)?.flatten().filter_map(|entry| entry.metadata().ok());
        let size = segments.map(|file| file.len()).max().unwrap_or_default();
        let (mut timeline, mut open) = (0, None::<(String, File)>);
        for (&position, versions) in &self.versions {
            let Some(last) = versions.last() else { continue };
            let page = self.page(*last)?;
            timeline = u32::from_le_bytes([page[4], page[5], page[6], page[7]]);
            let name = segment_name(timeline, position, size)
                .ok_or_else(|| io::Error::other("no segment of WAL was there before the load"))?;
            let file = match open.take() {
                Some((earlier, file)) if earlier == name => file,
                _ => File::options()
                    .create(true)
                    .truncate(false)
                    .write(true)
                    .open(folder.join(&name))?,
            };
            file.write_all_at(&page, position % size)?;
            // pg_waldump takes whole segments only.
            if file.metadata()?.len() < size {
                file.set_len(size)?;
            }
            open = Some((name, file));
        }
        Ok(timeline)
    }

    /// Returns the number of the write with which all of `part` had been written; none if a page of
    /// it never was.
    ///
    /// # Errors
    /// The log's file cannot be read.
    pub(super) fn written(&self, part: WalPart) -> io::Result<Option<u64>> {
        let WalPart { begin: mut at, length: mut left } = part;
        let mut written = 0;
        while left > 0 {
            let Some(versions) = self.versions.get(&(at - at % PAGE)) else { return Ok(None) };
            let Some(last) = versions.last() else { return Ok(None) };
            let page = self.page(*last)?;
            if at % PAGE == 0 {
                at += header(&page);
            }
            let from = at % PAGE;
            let here = left.min(PAGE - from);
            let bytes = |page: &[u8]| page[index(from)..index(from + here)].to_vec();
            let whole = bytes(&page);
            for version in versions {
                if bytes(&self.page(*version)?) == whole {
                    written = written.max(version.write);
                    break;
                }
            }
            (at, left) = (at + here, left - here);
        }
        Ok(Some(written))
    }

    fn page(&self, version: Version) -> io::Result<Vec<u8>> {
        let mut page = vec![0; index(PAGE)];
        self.file.read_exact_at(&mut page, version.at)?;
        Ok(page)
    }
}

/// Returns the name of the segment of `size` bytes that holds `position` of a timeline; none
/// without a size.
pub(super) fn segment_name(timeline: u32, position: u64, size: u64) -> Option<String> {
    let (number, in_4_gb) = (position.checked_div(size)?, (1_u64 << 32).checked_div(size)?);
    let (high, low) = (number.checked_div(in_4_gb)?, number.checked_rem(in_4_gb)?);
    Some(format!("{timeline:08X}{high:08X}{low:08X}"))
}

/// Returns how much of a page its header is (bytes).
fn header(page: &[u8]) -> u64 {
    const LONG: u8 = 2;
    HEADERS[usize::from(page[2] & LONG != 0)]
}

/// A place in a page as an index.
fn index(place: u64) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Pages as `writes` has them: the number of a write, the position of its page, whether the
    /// page's header is long, and the bytes from a place in it on. Between headers and these bytes
    /// nothing was written.
    fn pages(writes: &[(u64, u64, bool, u64, &[u8])]) -> WalPages {
        let mut file = tempfile::tempfile().unwrap();
        let mut versions: BTreeMap<u64, Vec<Version>> = BTreeMap::new();
        for (number, &(write, position, is_long, from, bytes)) in writes.iter().enumerate() {
            let mut page = vec![0; index(PAGE)];
            page[2] = if is_long { 2 } else { 0 };
            page[index(from)..][..bytes.len()].copy_from_slice(bytes);
            file.write_all(&page).unwrap();
            let at = number as u64 * PAGE;
            versions.entry(position).or_default().push(Version { write, at });
        }
        WalPages { file, versions }
    }

    #[test]
    fn a_record_is_written_with_the_first_write_that_holds_its_last_byte() {
        let pages = pages(&[
            (3, 0, false, 100, &[1; 20]),
            (5, 0, false, 100, &[1; 40]),
            (8, 0, false, 100, &[1; 60]),
        ]);
        let written = |begin, length| pages.written(WalPart { begin, length }).unwrap();
        assert_eq!(written(100, 20), Some(3));
        assert_eq!(written(100, 40), Some(5));
        assert_eq!(written(120, 30), Some(8));
        assert_eq!(written(PAGE + 100, 20), None, "a page that was never written");
    }

    #[test]
    fn a_record_that_goes_on_behind_the_header_of_the_next_page_needs_both() {
        for (is_long, header) in [(false, HEADERS[0]), (true, HEADERS[1])] {
            let pages = pages(&[
                (4, 0, false, PAGE - 10, &[1; 10]),
                (7, PAGE, is_long, header, &[2; 15]),
                (9, PAGE, is_long, header, &[2; 30]),
            ]);
            let written = |begin, length| pages.written(WalPart { begin, length }).unwrap();
            assert_eq!(written(PAGE - 10, 10), Some(4));
            assert_eq!(written(PAGE - 10, 25), Some(7));
            assert_eq!(written(PAGE - 10, 40), Some(9));
            assert_eq!(written(PAGE, 15), Some(7), "one that begins with the page");
        }
    }
}
