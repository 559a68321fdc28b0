//! The running kernel's version.

use std::fs;

/// Returns the kernel's release: `6.1.0-18-amd64`; empty where it cannot be read.
pub(super) fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

/// Parses major and minor version of a kernel's release.
pub(super) fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(version("6.12.9+deb12-amd64"), Some((6, 12)));
        assert!(version("6.9.1") < version("6.12.0"));
        assert_eq!(version("none"), None);
    }
}
