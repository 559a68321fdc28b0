//! The kernel's page cache.

use std::{fs, io};

/// Tells whether this process may change the machine: it runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Writes dirty pages to the disks, then drops clean pages, dentries and inodes.
///
/// # Errors
/// Not root, or the kernel does not let this process (containers often may not).
pub fn drop_caches() -> io::Result<()> {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3\n")
}
