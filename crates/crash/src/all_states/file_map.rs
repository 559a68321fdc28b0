//! Which file of the cluster lies where on the disk.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pgdyno_emulated_disk::states::State;
use pgdyno_emulated_disk::{EventKind, PAGE};
use pgdyno_exec::program::ask_tool;
use pgdyno_model::crash::{FilePart, PageKind, StatesOutcome};

use super::judge_state::Judge;
use super::wal_pages::segment_name;
use pgdyno_provision::BenchError;

/// filefrag's unit, as it is asked for (bytes).
const UNIT: u64 = 512;
/// The longest that filefrag may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The number by which the kernel names btrfs. Its extents have addresses of its own.
const BTRFS: &str = "9123683e";
/// Parts that are named of a write (count).
const NAMED: usize = 5;

/// A part of a file that lies in one piece.
#[derive(Debug, PartialEq, Eq)]
struct Extent {
    /// Where it begins on the disk (bytes).
    start: u64,
    /// How much (bytes).
    length: u64,
    /// The file, below PGDATA.
    file: String,
    /// Where it begins in the file (bytes).
    offset: u64,
    /// The file's size (bytes).
    size: u64,
}

/// Names the files of the missing writes in `outcome`, by where files lay when the load ended. A
/// segment of WAL has the name of its time. Names none where that cannot be told.
///
/// # Errors
/// pgdyno itself cannot go on, or a signal asked to stop.
pub(super) fn name_files(
    judge: &mut Judge<'_, '_>,
    outcome: &mut StatesOutcome,
) -> Result<(), BenchError> {
    let log = &judge.recording.log;
    let all = State { newest: log.newest(), ..State::default() };
    let shown = judge.bed.show(&all, judge.context.stop);
    judge.context.check_stop()?;
    if shown.is_err() {
        return Ok(());
    }
    let extents = read(&judge.bed.cluster().data());
    judge.bed.cut_power(0.0)?;
    for write in outcome.missing_writes_mut() {
        let at = log.events.binary_search_by_key(&write.number, |event| event.number);
        let Ok(EventKind::Write { offset, length, .. }) = at.map(|at| &log.events[at].kind) else {
            continue;
        };
        // Of a torn write, the page that the tear is in.
        let (before, most) = match write.kept {
            0 => (0, *length),
            kept => (kept / PAGE * PAGE, PAGE),
        };
        let most = most.min(length.saturating_sub(before));
        write.files = parts(&extents, offset + before, most, &write.pages);
    }
    Ok(())
}

/// Returns the parts of files that lie in a piece of the disk to which `pages` were written.
fn parts(extents: &[Extent], begin: u64, length: u64, pages: &[(PageKind, u64)]) -> Vec<FilePart> {
    let end = begin + length;
    let overlapping = extents.iter().filter_map(|extent| {
        let from = extent.start.max(begin);
        let until = (extent.start + extent.length).min(end);
        let (offset, length) = (extent.offset + (from - extent.start), until.checked_sub(from)?);
        let file = segment(extent, offset..offset + length, pages);
        let file = file.unwrap_or_else(|| extent.file.clone());
        (length > 0).then_some(FilePart { file, offset, length })
    });
    overlapping.take(NAMED).collect()
}

/// Returns the name that a segment of WAL had as one of `pages` was written to `part` of it. The
/// server renames segments that it needs no more, for WAL to come.
fn segment(extent: &Extent, part: Range<u64>, pages: &[(PageKind, u64)]) -> Option<String> {
    let name = extent.file.strip_prefix("pg_wal/").filter(|name| name.len() == 24)?;
    let is_in_part = |(kind, position): &&(PageKind, u64)| {
        let offset = position.checked_rem(extent.size);
        *kind == PageKind::Wal && offset.is_some_and(|offset| part.contains(&offset))
    };
    let (_, position) = pages.iter().find(is_in_part)?;
    let timeline = u32::from_str_radix(name.get(..8)?, 16).ok()?;
    Some(format!("pg_wal/{}", segment_name(timeline, *position, extent.size)?))
}

/// Returns where the files below `data` lie; none where filefrag is missing or cannot tell.
fn read(data: &Path) -> Vec<Extent> {
    let mut args: Vec<OsString> = ["-v", &format!("-b{UNIT}"), "--"].map(OsString::from).into();
    args.extend(files(data).into_iter().map(OsString::from));
    let Ok(output) = ask_tool("filefrag", &args, LIMIT) else { return Vec::new() };
    extents(&String::from_utf8_lossy(&output.stdout), &format!("{}/", data.display()))
}

/// Returns the files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for entry in entries {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

/// Reads what filefrag prints of files below `folder`.
fn extents(text: &str, folder: &str) -> Vec<Extent> {
    let mut extents = Vec::new();
    let (mut file, mut size) = ("", 0);
    for line in text.lines() {
        if line.starts_with("Filesystem type is: ") && line.ends_with(BTRFS) {
            return Vec::new();
        }
        if let Some(rest) = line.strip_prefix("File size of ") {
            let (name, said) = rest.rsplit_once(" is ").unwrap_or((rest, ""));
            file = name.strip_prefix(folder).unwrap_or(name);
            size = said.split(' ').next().and_then(|size| size.parse().ok()).unwrap_or(0);
        }
        extents.extend(extent(line, file, size));
    }
    extents
}

/// Reads a line such as `   0:        0..     295:   12645264..  12645559:    296:   last,eof`.
fn extent(line: &str, file: &str, size: u64) -> Option<Extent> {
    let mut columns = line.split(':').map(str::trim);
    columns.next()?.parse::<u64>().ok()?;
    let mut first = || columns.next()?.split_once("..")?.0.trim().parse::<u64>().ok();
    let (offset, start) = (first()?, first()?);
    let length: u64 = columns.next()?.parse().ok()?;
    let flags = columns.next_back().unwrap_or_default();
    let lies_there = !["delalloc", "inline", "unknown_loc"].iter().any(|flag| flags.contains(flag));
    lies_there.then(|| Extent {
        start: start * UNIT,
        length: length * UNIT,
        file: file.to_owned(),
        offset: offset * UNIT,
        size,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Filesystem type is: ef53
File size of /pg/base/5/2619 is 16384 (32 blocks of 512 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..      15:       1000..      1015:     16:
   1:       16..      31:       2000..      2015:     16:       1016: last,eof
/pg/base/5/2619: 2 extents found
File size of /pg/global/1 is 0 (0 blocks of 512 bytes)
/pg/global/1: 0 extents found
File size of /pg/new is 8192 (16 blocks of 512 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..      15:          0..         0:     16:             last,unknown_loc,delalloc,eof
/pg/new: 1 extent found
";

    #[test]
    fn files_are_found_by_what_filefrag_says() {
        let found = extents(SAID, "/pg/");
        let file = || "base/5/2619".to_owned();
        let of = |start, offset| Extent { start, length: 8192, file: file(), offset, size: 16_384 };
        let (first, second) = (of(512_000, 0), of(1_024_000, 8192));
        assert_eq!(found, [first, second]);
        let part = FilePart { file: file(), offset: 12_288, length: 4096 };
        assert_eq!(parts(&found, 1_028_096, 8192, &[]), [part]);
        assert_eq!(parts(&found, 0, 4096, &[]), []);
        assert_eq!(extents(&SAID.replace("ef53", BTRFS), "/pg/"), []);
    }

    #[test]
    fn a_segment_of_wal_has_the_name_that_it_had_when_it_was_written() {
        let size = 1 << 20;
        let file = "pg_wal/00000001000000020000002C".to_owned();
        let segments = [Extent { start: 4096, length: size, file, offset: 0, size }];
        let named = |position| {
            let pages = [(PageKind::Data, 5), (PageKind::Wal, position)];
            parts(&segments, 4096 + 8192, 8192, &pages).remove(0).file
        };
        assert_eq!(named(0x2_01A0_2000), "pg_wal/00000001000000020000001A");
        assert_eq!(named(0x1_FFF0_2000), "pg_wal/000000010000000100000FFF");
        // A page of another place in its segment.
        assert_eq!(named(0x2_01A0_0000), "pg_wal/00000001000000020000002C");
    }
}
