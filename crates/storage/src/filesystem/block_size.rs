//! Blocks that are larger than the kernel's memory pages, which few filesystems take.

use super::FilesystemError;
use super::kernel::{release, version};

/// How the size of blocks is asked for, and what the kernel makes of large ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockSize {
    /// Flags of the program that makes the filesystem; the size follows, or `size=` and the size.
    pub(super) flags: &'static [&'static str],
    /// The first version of Linux that mounts blocks larger than a page (major, minor); none where
    /// no release does without an experimental option.
    pub(super) larger_since: Option<(u32, u32)>,
}

impl BlockSize {
    /// A filesystem whose blocks have one size.
    pub(super) const NONE: Self = Self { flags: &[], larger_since: None };

    /// Checks whether this kernel mounts `filesystem` if it is made with the arguments `mkfs`.
    ///
    /// # Errors
    /// [`FilesystemError::LargeBlocks`].
    pub(super) fn check(
        &self,
        filesystem: &'static str,
        mkfs: &[String],
    ) -> Result<(), FilesystemError> {
        let page = rustix::param::page_size() as u64;
        let (kernel, since) = (release(), self.larger_since);
        let is_new = || since.is_some_and(|since| version(&kernel).is_some_and(|v| v >= since));
        match self.read_size(mkfs).filter(|asked| *asked > page) {
            Some(asked) if !is_new() => {
                Err(FilesystemError::LargeBlocks { filesystem, asked, page, kernel, since })
            }
            _ => Ok(()),
        }
    }

    /// Returns the size that the arguments ask for (bytes); none if they ask for none.
    fn read_size(&self, mkfs: &[String]) -> Option<u64> {
        let value = |(i, argument): (usize, &String)| {
            let rest = self.flags.iter().find_map(|flag| argument.strip_prefix(flag))?;
            let text =
                if rest.is_empty() { mkfs.get(i + 1)? } else { rest.trim_start_matches('=') };
            bytes(text.strip_prefix("size=").unwrap_or(text))
        };
        mkfs.iter().enumerate().filter_map(value).next_back()
    }
}

/// Parses a size as these programs take it: `8192` or `8k`.
fn bytes(text: &str) -> Option<u64> {
    match text.strip_suffix(['k', 'K']) {
        Some(kibibytes) => kibibytes.parse::<u64>().ok()?.checked_mul(1024),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_model::Advice;

    use super::*;

    #[test]
    fn the_block_size_is_read_as_each_program_takes_it() {
        let asked = |flags, mkfs: &[&str]| {
            let mkfs: Vec<String> = mkfs.iter().map(|&word| word.to_owned()).collect();
            BlockSize { flags, larger_since: None }.read_size(&mkfs)
        };
        assert_eq!(asked(&["-b"], &["-b", "8192"]), Some(8192));
        assert_eq!(asked(&["-b"], &["-E", "stride=4", "-b8192"]), Some(8192));
        assert_eq!(asked(&["-b"], &["-l", "size=128m", "-b", "size=16k"]), Some(16384));
        assert_eq!(asked(&["-s", "--sectorsize"], &["--sectorsize=8k"]), Some(8192));
        assert_eq!(asked(&["-b"], &["-l", "size=128m"]), None);
        assert_eq!(asked(&[], &["-b", "8192"]), None);
    }

    #[test]
    fn blocks_beyond_a_page_take_a_kernel_that_has_them() {
        let check = |bytes: u64, larger_since| {
            let mkfs = ["-b".to_owned(), bytes.to_string()];
            BlockSize { flags: &["-b"], larger_since }.check("ext4", &mkfs)
        };
        let page = rustix::param::page_size() as u64;
        assert!(check(page, None).is_ok());
        assert!(check(2 * page, Some((2, 6))).is_ok());
        let error = check(2 * page, None).unwrap_err();
        assert!(matches!(error, FilesystemError::LargeBlocks { .. }), "{error}");
        let error = check(2 * page, Some((9999, 19))).unwrap_err();
        assert!(error.help().unwrap().contains("Linux 9999.19"), "{error}");
    }
}
