//! A disk as it was, from its log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use pgdyno_exec::files::nofollow;

use super::reader::{DiskLog, LogError};
use super::record::{DataPlace, EventKind};
use crate::medium::Medium;
use crate::pieces::index;

/// Makes `image`, which must not exist, the disk of the log at `path` as it was after event
/// `number`: every write up to it in order, but for those that a cut before lost. The log has to
/// begin with the disk.
pub fn image_at(path: &Path, number: u64, image: &Path) -> Result<(), LogError> {
    let log = DiskLog::read(path)?;
    let before = log.events.iter().take_while(|event| event.number <= number);
    let lost: BTreeMap<u64, u64> = before
        .filter_map(|event| match event.kind {
            EventKind::Lost { write, kept } => Some((write, kept)),
            _ => None,
        })
        .collect();
    let mut file = new_image(image)?;
    file.set_len(log.size).map_err(failed("make", image))?;
    log.play(path, image, &mut file, |write, length| match lost.get(&write) {
        _ if write > number => 0,
        Some(kept) => *kept,
        None => length,
    })
}

/// Makes the file `image`, which must not exist.
pub(crate) fn new_image(image: &Path) -> Result<File, LogError> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600).custom_flags(nofollow());
    options.open(image).map_err(failed("make", image))
}

impl DiskLog {
    /// Writes into `file`, which is `image`, the part of each write that `kept` returns for its
    /// number and length: that many of its first bytes. The data are in the log's file, `path`.
    pub(crate) fn play(
        &self,
        path: &Path,
        image: &Path,
        file: &mut File,
        kept: impl Fn(u64, u64) -> u64,
    ) -> Result<(), LogError> {
        let stored = File::open(path).map_err(failed("read", path))?;
        for event in &self.events {
            let EventKind::Write { offset, length, data } = &event.kind else { continue };
            let length = kept(event.number, *length);
            match data {
                _ if length == 0 => {}
                DataPlace::Zeros => {
                    file.zero_at(*offset, length).map_err(failed("write", image))?;
                }
                DataPlace::Stored { at, .. } => {
                    let mut bytes = vec![0; index(length)];
                    stored.read_exact_at(&mut bytes, *at).map_err(failed("read", path))?;
                    file.write_all_at(&bytes, *offset).map_err(failed("write", image))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns a function that turns an I/O error into that of the attempt `what` on `path`.
pub(crate) fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
    let path = path.to_owned();
    move |source| LogError::Io { what, path, source }
}
