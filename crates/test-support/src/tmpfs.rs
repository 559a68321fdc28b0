//! A filesystem of a test's own in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A filesystem that is unmounted when it goes out of scope. Mounting needs root:
/// [`crate::is_root`].
#[derive(Debug)]
pub struct Tmpfs(pub PathBuf);

impl Tmpfs {
    /// Makes the directory `at` and mounts a tmpfs there, with `options` as `mount -o` has them.
    ///
    /// # Panics
    /// The directory cannot be made, or `mount` refuses.
    #[must_use]
    pub fn mount(at: &Path, options: &str) -> Self {
        fs::create_dir(at).unwrap();
        let options = format!("mode=755,{options}");
        let mut mount = Command::new("mount");
        let status = mount.args(["-t", "tmpfs", "-o", &options, "pgdyno-test"]).arg(at).status();
        assert!(status.unwrap().success());
        Self(at.to_owned())
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
