//! Filesystems whose power can be cut without an emulated disk.

/// The filesystems that know how to be shut down. It is the ext4 driver that serves ext2 and ext3.
pub const CUTTABLE: [&str; 4] = ["ext4", "ext3", "ext2", "xfs"];
