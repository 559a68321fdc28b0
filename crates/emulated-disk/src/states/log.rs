//! A stretch from a log's file and the image that it began with, and states as images.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::state::{SECTOR, State};
use super::stretch::Stretch;
use super::write::{Content, StretchFlush, StretchWrite};
use crate::disk_log::{DataPlace, DiskLog, EventKind, LogError, failed, hexadecimal, new_image};
use crate::pieces::index;

impl Stretch {
    /// Reads the stretch that `log`, whose file is `path`, has of the disk that `image` was at its
    /// beginning.
    ///
    /// # Errors
    /// [`LogError`]: the file or the image cannot be read.
    pub fn of_log(log: &DiskLog, path: &Path, image: &Path) -> Result<Self, LogError> {
        let stored = File::open(path).map_err(failed("read", path))?;
        let base = File::open(image).map_err(failed("read", image))?;
        let zeros = content(&[0; SECTOR as usize]);
        let mut known: HashMap<u64, Vec<Content>> = HashMap::new();
        let (mut writes, mut flushes) = (Vec::new(), Vec::new());
        for event in &log.events {
            match &event.kind {
                EventKind::Flush { covers, is_done: true } => {
                    flushes.push(StretchFlush { number: event.number, covers: *covers });
                }
                EventKind::Flush { .. } | EventKind::Lost { .. } => {}
                EventKind::Write { offset, length, data } => {
                    let contents = match data {
                        DataPlace::Zeros => vec![zeros; index(length / SECTOR)],
                        DataPlace::Stored { at, .. } => match known.get(at) {
                            Some(contents) if contents.len() as u64 == length / SECTOR => {
                                contents.clone()
                            }
                            _ => {
                                let mut bytes = vec![0; index(*length)];
                                stored
                                    .read_exact_at(&mut bytes, *at)
                                    .map_err(failed("read", path))?;
                                let contents: Vec<Content> =
                                    bytes.chunks(SECTOR as usize).map(content).collect();
                                known.insert(*at, contents.clone());
                                contents
                            }
                        },
                    };
                    let is_discard = *data == DataPlace::Zeros;
                    let (number, sector) = (event.number, offset / SECTOR);
                    writes.push(StretchWrite { number, sector, contents, is_discard });
                }
            }
        }
        let mut unreadable = None;
        let mut bytes = [0; SECTOR as usize];
        let stretch = Self::new(writes, flushes, |sector| {
            match base.read_exact_at(&mut bytes, sector * SECTOR) {
                Ok(()) if bytes == [0; SECTOR as usize] => zeros,
                Ok(()) => content(&bytes),
                Err(e) => {
                    unreadable.get_or_insert(e);
                    zeros
                }
            }
        });
        unreadable.map_or(Ok(stretch), |e| Err(failed("read", image)(e)))
    }
}

impl Stretch {
    /// Returns a sum, in hexadecimal digits, of every write and flush and of what the image held
    /// where something was written. Stretches of equal sums are equal.
    pub fn fingerprint(&self) -> String {
        let mut sum = Sha256::new();
        for write in &self.writes {
            sum.update(write.number.to_le_bytes());
            for (sector, content) in write.sectors() {
                let before = self.base.get(&sector).copied().unwrap_or_default();
                sum.update(sector.to_le_bytes());
                sum.update(before.to_le_bytes());
                sum.update(content.to_le_bytes());
            }
        }
        for epoch in &self.epochs {
            sum.update(epoch.durable.to_le_bytes());
            sum.update(epoch.until.to_le_bytes());
        }
        hexadecimal(&sum.finalize())
    }
}

impl State {
    /// Makes `image`, which must not exist, the disk in this state: `base`, which the log at `path`
    /// began with, and over it the writes that the state has.
    ///
    /// # Errors
    /// [`LogError`]. No image is left then.
    pub fn write_image(&self, path: &Path, base: &Path, image: &Path) -> Result<(), LogError> {
        let log = DiskLog::read(path)?;
        let mut from = File::open(base).map_err(failed("read", base))?;
        let found = from.metadata().map_err(failed("read", base))?.len();
        if found != log.size {
            return Err(LogError::OtherDisk { image: base.to_owned(), found, size: log.size });
        }
        let mut file = new_image(image)?;
        let copied = io::copy(&mut from, &mut file).map_err(failed("write", image));
        let written = copied.and_then(|_| {
            log.play(path, image, &mut file, |number, length| self.kept(number, length))
        });
        written.inspect_err(|_| drop(std::fs::remove_file(image)))
    }
}

/// Returns the first half of the SHA-256 of a sector.
fn content(sector: &[u8]) -> Content {
    let digest = Sha256::digest(sector);
    digest[..16].iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte))
}
