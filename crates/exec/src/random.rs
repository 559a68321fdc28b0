//! Random names, and bytes as names.

use std::io;

/// Returns `2 * N` hexadecimal digits drawn by the kernel.
///
/// # Errors
/// The kernel has no random numbers to give.
pub fn random_hex<const N: usize>() -> io::Result<String> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(hex(&bytes))
}

/// Returns `bytes` as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
