//! Stored form of numbers that identify one disk.

use pgdyno_exec::random::hex;
use sha2::{Digest, Sha256};

/// Stored form of serial numbers and world-wide names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Serials {
    /// Beginning of the SHA-256: the same disk can be recognised, and its number stays unknown.
    #[default]
    Hashed,
    /// The number itself.
    Kept,
}

impl Serials {
    /// Returns a serial number as it is stored.
    pub(super) fn render(self, serial: &str) -> String {
        match self {
            Self::Kept => serial.to_owned(),
            Self::Hashed => {
                let digest = Sha256::digest(serial.as_bytes());
                format!("sha256:{}", hex(&digest[..8]))
            }
        }
    }
}
