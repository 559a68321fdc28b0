//! Checksums of files and names of unfinished work in the cache.

use std::fs::File;
use std::io::{self, Read};

use pgdyno_exec::process::current_owner;
use pgdyno_exec::random::{hex, random_hex};
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of `file` in hexadecimal.
pub(super) fn digest(file: &mut File) -> io::Result<String> {
    let (mut hash, mut buffer) = (Sha256::new(), vec![0_u8; 64 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// Returns a name for unfinished work, which identifies this process.
pub(super) fn own_name() -> io::Result<String> {
    let owner = current_owner()?;
    Ok(format!(".new-{}-{}-{}", owner.pid, owner.started_ticks, random_hex::<4>()?))
}
