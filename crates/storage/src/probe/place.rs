//! Where a probe's files lie, and the memory that is written to them.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pgdyno_exec::directory::too_little_room;
use pgdyno_exec::journal::{Entry, Journal, JournalError, OwnedResource};
use pgdyno_exec::random::random_hex;
use pgdyno_exec::{ExecContext, Executor, Step, mountinfo};
use pgdyno_model::units::Bytes;
use rustix::fs::OFlags;

use super::{ProbeError, SizeSource};

/// Alignment that O_DIRECT may demand of memory and offsets at most (bytes): a page, and the
/// largest logical sector.
const ALIGNMENT: usize = 4096;

/// A journalled and marked directory of a probe's own; removed with all in it when it is dropped.
pub(super) struct ProbeDirectory<'a> {
    journal: &'a Journal,
    made: Vec<Entry>,
    path: PathBuf,
}

/// Returns the step that makes a probe's directory in `parent`.
pub(super) fn directory_step(parent: &Path, name: &str) -> Step {
    let path = parent.join(format!("pgdyno-probe-{name}"));
    Step::MakeMarked { made: OwnedResource::Directory { path }, mode: 0o700, owner: None }
}

/// Where a filesystem on the device of `number` is mounted.
fn mount_point(number: u64) -> Option<PathBuf> {
    let numbers = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    let text = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    mountinfo::parse(&text)
        .into_iter()
        .find(|m| m.numbers == numbers && m.root == Path::new("/"))
        .map(|m| m.point)
}

impl<'a> ProbeDirectory<'a> {
    /// Makes a directory in `parent`, where `needed` must be free. `size` is the origin of that
    /// size, where the user can change it.
    pub(super) fn make(
        parent: &Path,
        needed: Bytes,
        size: Option<SizeSource>,
        journal: &'a Journal,
        stop: &AtomicBool,
    ) -> Result<Self, ProbeError> {
        let metadata = std::fs::metadata(parent).map_err(ProbeError::io("look at", parent))?;
        if !metadata.is_dir() {
            let is_device = metadata.file_type().is_block_device();
            let mounted = if is_device { mount_point(metadata.rdev()) } else { None };
            return Err(ProbeError::NoDirectory { path: parent.to_owned(), is_device, mounted });
        }
        if let Some(available) = too_little_room(parent, needed)? {
            return Err(ProbeError::NoRoom { path: parent.to_owned(), size, needed, available });
        }
        let parent = std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned());
        let name = random_hex::<4>().map_err(JournalError::Random)?;
        let step = directory_step(&parent, &name);
        let mut context = ExecContext::new(journal, stop);
        let executed = context.execute(&step);
        let path = parent.join(format!("pgdyno-probe-{name}"));
        // Dropped, and with that removed, should the marker have failed.
        let directory = Self { journal, made: context.made, path };
        executed.map(|_| directory).map_err(ProbeError::from)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ProbeDirectory<'_> {
    fn drop(&mut self) {
        let (never, made) = (AtomicBool::new(false), std::mem::take(&mut self.made));
        let mut context = ExecContext { journal: self.journal, stop: &never, made };
        // What fails here stays in the journal for the next start's sweep.
        let _ = context.execute(&Step::RemoveMarked { path: self.path.clone() });
    }
}

/// Memory as O_DIRECT wants it: aligned, and filled with what does not compress.
pub(super) struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    pub(super) fn new(length: usize) -> Self {
        let mut bytes = vec![0; length + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        fastrand::fill(&mut bytes);
        Self { bytes, start, length }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

/// Opens an existing file or device with open(2)'s `flags` beside those of reading and writing.
pub(super) fn open(path: &Path, write: bool, flags: OFlags) -> io::Result<File> {
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    File::options().read(true).write(write).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use pgdyno_model::Advice;

    use super::*;

    #[test]
    fn a_buffer_begins_at_a_page_and_does_not_compress() {
        for length in [512, 8192, 1 << 20] {
            let buffer = AlignedBuffer::new(length);
            assert_eq!((buffer.as_ptr().align_offset(ALIGNMENT), buffer.len()), (0, length));
            let distinct: std::collections::BTreeSet<u8> = buffer.iter().copied().collect();
            assert!(distinct.len() > 200, "{}", distinct.len());
        }
    }

    #[test]
    fn a_device_is_answered_with_the_directory_that_lies_on_it() {
        let error =
            |mounted| ProbeError::NoDirectory { path: "/dev/sdx".into(), is_device: true, mounted };
        let help = error(Some("/mnt/x".into())).help().unwrap();
        assert!(help.contains("/mnt/x") && help.contains("pgdyno disk /dev/sdx"), "{help}");
        let help = error(None).help().unwrap();
        assert!(help.contains("filesystem") && help.contains("pgdyno disk /dev/sdx"), "{help}");
    }

    #[test]
    fn room_is_asked_for_before_anything_is_made() {
        let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let journal = Journal::open(state.path()).unwrap();
        let run = AtomicBool::new(false);
        let refused =
            ProbeDirectory::make(dir.path(), Bytes(u64::MAX), None, &journal, &run).err().unwrap();
        assert!(matches!(refused, ProbeError::NoRoom { .. }), "{refused}");
        assert!(!refused.help().unwrap().contains("--"), "{refused:?}: no option gives this size");
        let path = state.path().join("file");
        std::fs::write(&path, "").unwrap();
        let refused = ProbeDirectory::make(&path, Bytes(1), None, &journal, &run).err().unwrap();
        assert!(matches!(refused, ProbeError::NoDirectory { is_device: false, .. }), "{refused}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let made = ProbeDirectory::make(dir.path(), Bytes(1), None, &journal, &run).unwrap();
        std::fs::write(made.path().join("file"), "x").unwrap();
        assert_eq!(journal.entries().unwrap().len(), 1);
        drop(made);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(journal.entries().unwrap().is_empty());
    }
}
