//! The first and the last MiB of a device: whoever keeps data without a known signature has
//! something there.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// How much is looked at, and cleared, at either end (bytes).
const EDGE: usize = 1 << 20;

/// Which end of `device` is not zeros, in words with the first byte that is not:
/// `first 1048576 bytes (byte 512)`. None if both are zeros.
///
/// # Errors
/// It cannot be read.
pub fn not_zeros(device: &File) -> io::Result<Option<String>> {
    let size = size(device)?;
    let (length, last) = edges(size);
    for (name, offset) in [("first", 0), ("last", last)] {
        let mut bytes = vec![0; length];
        device.read_exact_at(&mut bytes, offset)?;
        if let Some(at) = (offset..).zip(&bytes).find_map(|(at, byte)| (*byte != 0).then_some(at)) {
            return Ok(Some(format!("{name} {length} bytes (byte {at})")));
        }
    }
    Ok(None)
}

/// Whether `text` stands in the first MiB of `device`.
///
/// # Errors
/// It cannot be read.
pub fn holds(device: &File, text: &str) -> io::Result<bool> {
    let mut bytes = vec![0; edges(size(device)?).0];
    device.read_exact_at(&mut bytes, 0)?;
    Ok(bytes.windows(text.len().max(1)).any(|window| window == text.as_bytes()))
}

/// Writes zeros over both ends of `device`.
///
/// # Errors
/// It cannot be written.
pub fn clear(device: &File) -> io::Result<()> {
    let (length, last) = edges(size(device)?);
    let zeros = vec![0; length];
    device.write_all_at(&zeros, 0)?;
    device.write_all_at(&zeros, last)?;
    device.sync_all()
}

/// How long each end is, and where the last one begins.
fn edges(size: u64) -> (usize, u64) {
    let length = usize::try_from(size).map_or(EDGE, |size| size.min(EDGE));
    (length, size.saturating_sub(u64::try_from(length).unwrap_or_default()))
}

/// A block device's metadata say 0; its end does not.
fn size(mut device: &File) -> io::Result<u64> {
    device.seek(SeekFrom::End(0))
}
