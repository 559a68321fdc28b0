//! Storage stacks: planned as data, made, read back, and taken down again.
//!
//! A stack is a filesystem with what lies under it: a loop file, a device, a RAID-0, main memory or
//! an emulated disk. The order of calls:
//!
//! 1. [`Stack::plan`] turns `[storage.<name>]` of an experiment into a [`Stack`], if this machine
//!    can make it. [`Stack::design`] does so without a look at the machine.
//! 2. [`Stack::steps`] lists what would be done, for a dry run; [`Stack::refusals`] lists the named
//!    devices that must not be written.
//! 3. [`Stack::make`] makes it and returns a [`MountedStack`]. Clusters go to
//!    [`MountedStack::path`].
//! 4. [`MountedStack::facts`] reads back what was obtained; [`MountedStack::set`] sets its devices
//!    for a trial.
//! 5. [`MountedStack::take_down`] removes everything, as dropping the value does. After a crash
//!    the journal is enough ([`pgdyno_exec::sweep`]).
//!
//! ```
//! use std::path::Path;
//!
//! use pgdyno_model::storage::{Backing, FilesystemChoice, LoopFile, Storage};
//! use pgdyno_model::units::Bytes;
//! use pgdyno_storage::{Stack, Wipe};
//!
//! let file = LoopFile {
//!     directory: None,
//!     size: Bytes(1 << 30),
//!     sector_size: None,
//!     direct_io: true,
//!     offset: None,
//! };
//! let ext4 = FilesystemChoice { name: "ext4".into(), ..FilesystemChoice::default() };
//! let storage =
//!     Storage { backing: Backing::Loop(file), filesystem: Some(ext4), ..Storage::default() };
//! let place = Path::new("/var/lib/pgdyno");
//! let stack = Stack::design("disk", &storage, place, "pgdyno-1a2b3c4d", &Wipe::default())?;
//! assert_eq!(stack.path(), Path::new("/var/lib/pgdyno/pgdyno-1a2b3c4d/mnt"));
//! assert!(stack.steps().iter().any(|step| step.to_string().contains("mkfs.ext4")));
//! # Ok::<(), pgdyno_storage::StorageError>(())
//! ```
//!
//! # Adding a filesystem or volume manager
//!
//! 1. Add the file `filesystem/<name>.rs` with a type that implements
//!    [`filesystem::Filesystem`]. One that is made by a `mkfs` program and mounted by the kernel is
//!    a `static` of `BlockFilesystem`: `filesystem/jfs.rs` shows the shortest.
//! 2. Add it to [`filesystem::FILESYSTEMS`], with its `mod` line.
//! 3. Run `cargo test -p pgdyno-storage` and accept the snapshot of its dry run. The test
//!    `filesystems` makes it on a loop device, as root.
//!
//! [`probe`] measures devices and flushes, [`fault`] breaks what pgdyno made, and [`kept`] lists
//! what failed crash tests left.

pub mod check;
mod error;
pub mod fault;
pub mod filesystem;
mod flushes;
mod fsck;
pub mod kept;
pub mod mounted;
pub mod probe;
pub mod stack;

pub use check::Surroundings;
pub use error::StorageError;
pub use flushes::flushes_completed;
pub use mounted::MountedStack;
pub use pgdyno_exec::device::safety::Wipe;
pub use stack::{Stack, undo_of_plan};
