//! The medium: the sparse file that keeps the durable bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Returns the sparse file with the durable contents of the disk in `directory`.
pub(super) fn image_of(directory: &Path) -> PathBuf {
    directory.join("image")
}

/// A store of bytes at offsets, of fixed size.
pub(super) trait Medium {
    /// Fills `buffer` from `offset`.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Writes `data` at `offset`.
    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Makes `length` bytes from `offset` on zero.
    fn zero_at(&mut self, offset: u64, length: u64) -> io::Result<()>;
}

/// A sparse file. Its own filesystem's cache is no part of the emulation: what is in the file
/// survives a cut.
impl Medium for File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn zero_at(&mut self, offset: u64, length: u64) -> io::Result<()> {
        use rustix::fs::FallocateFlags;
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&*self, hole, offset, length) {
            Ok(()) => Ok(()),
            // The filesystem below has no holes to punch.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                let zeros = vec![0_u8; 1 << 20];
                let mut at = offset;
                while at < offset + length {
                    let step = (offset + length - at).min(1 << 20);
                    self.write_all_at(&zeros[..usize::try_from(step).unwrap_or(1 << 20)], at)?;
                    at += step;
                }
                Ok(())
            }
            Err(e) => Err(e.into()),
        }
    }
}

#[cfg(test)]
impl Medium for Vec<u8> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&self[at..at + buffer.len()]);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        self[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn zero_at(&mut self, offset: u64, length: u64) -> io::Result<()> {
        let (at, length) = (usize::try_from(offset).unwrap(), usize::try_from(length).unwrap());
        self[at..at + length].fill(0);
        Ok(())
    }
}
