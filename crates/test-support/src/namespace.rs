//! Mount namespaces of tests.

/// Commands with which the shell of a new mount namespace begins: they let go of the mounts of
/// tests that run beside this one, except for the mount at `$KEPT_MOUNT`.
///
/// A new namespace has copies of all mounts. While it lasts, nobody could take down the filesystems
/// below them.
pub const RELEASE_MOUNTS: &str = "for place in \
    $(awk '$2 ~ /pgdyno-/ && $2 != ENVIRON[\"KEPT_MOUNT\"] { print $2 }' /proc/self/mounts); do \
    umount -l \"$place\"; done 2>/dev/null; ";
