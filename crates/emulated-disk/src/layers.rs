//! The medium as layers: the image, a state of a log over it, and later writes over both.
//!
//! A disk that is made has its image alone. [`Layers::freeze`] leaves the image as it is: later
//! writes go to a sparse file. [`Layers::show`] puts chosen writes of a log over the frozen image,
//! and begins that file anew. Nothing is copied.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgdyno_exec::files::nofollow;

use super::disk_log::{DataPlace, DiskLog, EventKind};
use super::medium::Medium;
use super::pieces::{Pieces, index};
use super::states::{SECTOR, State};

/// Returns the sparse file with what was written over a frozen image.
pub(super) fn upper_file(directory: &Path) -> PathBuf {
    directory.join("over-image")
}

/// A log whose states can be shown.
pub(super) struct ShownLog {
    pub(super) log: DiskLog,
    /// File of the log, which holds the data of its writes.
    pub(super) file: Arc<File>,
    /// The image that the log began with.
    pub(super) image: File,
}

/// The medium of a disk that is served.
pub(super) struct Layers {
    image: File,
    size: u64,
    /// Writes of a log that lie over the image: where in the log's file their data begin; none for
    /// zeros.
    state: Option<(Arc<File>, Pieces<Option<u64>>)>,
    upper: Option<Upper>,
}

/// Writes over a frozen image, in a sparse file.
struct Upper {
    file: File,
    /// A bit for each sector of the disk: whether the file holds it.
    present: Vec<u64>,
}

impl Layers {
    /// Returns the layers of a disk that writes to its image of `size` bytes.
    pub(super) fn new(image: File, size: u64) -> Self {
        Self { image, size, state: None, upper: None }
    }

    /// Leaves the image as it is from now on. What is written goes to the file `upper`.
    pub(super) fn freeze(&mut self, upper: &Path) -> io::Result<()> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(nofollow())
            .open(upper)?;
        file.set_len(self.size)?;
        let words = index(self.size.div_ceil(SECTOR).div_ceil(64));
        self.upper = Some(Upper { file, present: vec![0; words] });
        Ok(())
    }

    /// Puts `state` of `shown` over the image. What was written over the image is gone.
    pub(super) fn show(&mut self, shown: &ShownLog, state: &State, upper: &Path) -> io::Result<()> {
        let mut pieces = Pieces::default();
        for event in &shown.log.events {
            let EventKind::Write { offset, length, data } = &event.kind else { continue };
            let kept = state.kept(event.number, *length);
            if kept > 0 {
                let at = if let DataPlace::Stored { at, .. } = data { Some(*at) } else { None };
                pieces.put(*offset, offset + kept, at);
            }
        }
        self.image = shown.image.try_clone()?;
        self.state = Some((Arc::clone(&shown.file), pieces));
        self.freeze(upper)
    }
}

impl Medium for Layers {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.image.read_exact_at(buffer, offset)?;
        if let Some((log, pieces)) = &self.state {
            for part in pieces.within(offset, offset + buffer.len() as u64) {
                let into = &mut buffer[part.at];
                match part.of {
                    Some(at) => log.read_exact_at(into, at + part.skip)?,
                    None => into.fill(0),
                }
            }
        }
        self.upper.as_ref().map_or(Ok(()), |upper| upper.overlay(offset, buffer))
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.upper.is_none() {
            return self.image.write_all_at(data, offset);
        }
        let (from, to) = whole_sectors(offset, data.len() as u64);
        let to = to.min(self.size);
        let mut whole = Vec::new();
        let mut bytes = data;
        if (from, to) != (offset, offset + data.len() as u64) {
            whole = vec![0; index(to - from)];
            self.read_at(from, &mut whole)?;
            whole[index(offset - from)..][..data.len()].copy_from_slice(data);
        }
        if !whole.is_empty() {
            bytes = &whole;
        }
        let Some(upper) = &mut self.upper else { return Ok(()) };
        upper.file.write_all_at(bytes, from)?;
        upper.mark(from, to);
        Ok(())
    }

    fn zero_at(&mut self, offset: u64, length: u64) -> io::Result<()> {
        match &mut self.upper {
            None => self.image.zero_at(offset, length),
            Some(upper) if offset.is_multiple_of(SECTOR) && length.is_multiple_of(SECTOR) => {
                upper.file.zero_at(offset, length)?;
                upper.mark(offset, offset + length);
                Ok(())
            }
            Some(_) => self.write_at(offset, &vec![0; index(length)]),
        }
    }
}

impl Upper {
    fn mark(&mut self, from: u64, to: u64) {
        for sector in from / SECTOR..to.div_ceil(SECTOR) {
            self.present[index(sector / 64)] |= 1 << (sector % 64);
        }
    }

    fn has(&self, sector: u64) -> bool {
        self.present[index(sector / 64)] >> (sector % 64) & 1 == 1
    }

    /// Overlays bytes from below with the sectors that are there.
    fn overlay(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset + buffer.len() as u64;
        let last = end.div_ceil(SECTOR);
        let mut sector = offset / SECTOR;
        while sector < last {
            if !self.has(sector) {
                sector += 1;
                continue;
            }
            let first = sector;
            while sector < last && self.has(sector) {
                sector += 1;
            }
            let (from, to) = ((first * SECTOR).max(offset), (sector * SECTOR).min(end));
            self.file.read_exact_at(&mut buffer[index(from - offset)..index(to - offset)], from)?;
        }
        Ok(())
    }
}

/// Returns the sectors that a range touches, as a range of bytes.
fn whole_sectors(offset: u64, length: u64) -> (u64, u64) {
    (offset / SECTOR * SECTOR, (offset + length).div_ceil(SECTOR) * SECTOR)
}
