//! Messages that the kernel logs (dmesg) while something is tried.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// At most this many lines are quoted.
const LINES: usize = 5;

/// The kernel's log from some moment on.
#[derive(Debug)]
pub struct KernelLog(Option<File>);

impl KernelLog {
    /// From now on. Where the log cannot be read (a container, a kernel that restricts it) it stays
    /// empty: it only adds words to an error.
    pub fn from_now() -> Self {
        let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
        let mut file = File::options().read(true).custom_flags(nonblocking).open("/dev/kmsg").ok();
        if file.as_mut().is_some_and(|f| f.seek(SeekFrom::End(0)).is_err()) {
            file = None;
        }
        Self(file)
    }

    /// Returns the last lines since then that name one of `about`.
    pub fn lines_about(&self, about: &[&str]) -> Vec<String> {
        let Some(mut file) = self.0.as_ref() else { return Vec::new() };
        let mut lines = Vec::new();
        let mut record = [0_u8; 8192];
        loop {
            match file.read(&mut record) {
                Ok(length @ 1..) => lines.extend(message(&record[..length])),
                // The record was overwritten before it was read; the next one is there.
                Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {}
                Ok(_) | Err(_) => break,
            }
        }
        let named = |line: &String| {
            let line = line.to_lowercase();
            about.iter().any(|word| !word.is_empty() && line.contains(&word.to_lowercase()))
        };
        lines.retain(named);
        lines.split_off(lines.len().saturating_sub(LINES))
    }
}

/// Returns the message of one record: `priority,sequence,time,flags;message\n KEY=value\n`.
fn message(record: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(record);
    let (_prefix, text) = text.split_once(';')?;
    Some(text.lines().next()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_without_its_prefix_and_keys_is_the_message() {
        let record =
            b"3,812,99,-;XFS (loop0): Block device does not support realtime\n SUBSYSTEM=block\n";
        assert_eq!(message(record).unwrap(), "XFS (loop0): Block device does not support realtime");
        assert_eq!(message(b"nonsense"), None);
    }
}
