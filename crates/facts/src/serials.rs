//! What is stored of numbers that name one disk among all.

use pgdyno_exec::random::hex;
use sha2::{Digest, Sha256};

/// What is stored of serial numbers and world-wide names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Serials {
    /// The beginning of their SHA-256: the same disk can be recognised, and nobody learns its
    /// number by reading.
    #[default]
    Hashed,
    /// They themselves.
    Kept,
}

impl Serials {
    /// Returns a serial number as it is stored.
    pub(super) fn shown(self, serial: &str) -> String {
        match self {
            Self::Kept => serial.to_owned(),
            Self::Hashed => {
                let digest = Sha256::digest(serial.as_bytes());
                format!("sha256:{}", hex(&digest[..8]))
            }
        }
    }
}
