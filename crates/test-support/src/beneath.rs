//! Filesystems beneath the one that a test's storage lies on.

use pgdyno_model::facts::FilesystemBeneath;

/// Returns a `filesystem` at `/under`, mounted with `options`.
pub fn beneath(filesystem: &str, options: &str) -> FilesystemBeneath {
    FilesystemBeneath {
        filesystem: filesystem.into(),
        mount_point: "/under".into(),
        mount_options: options.into(),
        ..FilesystemBeneath::default()
    }
}
