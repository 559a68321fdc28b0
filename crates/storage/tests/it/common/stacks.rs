//! Storage stacks on loop devices below a test's own place.

use std::fs;
use std::path::Path;

use pgdyno_emulated_disk as emulated;
use pgdyno_exec::account::server_account;
use pgdyno_model::storage::{Backing, FilesystemChoice, LoopFile, Raid0, Storage};
use pgdyno_model::units::Bytes;
use pgdyno_storage::{MountedStack, Stack, StorageError, Surroundings, Wipe};

use super::{Place, RUN, is_lacking, traces};

/// A loop file of `size` in the storage's own directory.
pub(crate) fn image(size: Bytes) -> LoopFile {
    LoopFile { directory: None, size, sector_size: None, direct_io: true, offset: None }
}

pub(crate) fn loop_file(directory: &Path) -> Backing {
    let directory = Some(directory.to_owned());
    Backing::Loop(LoopFile { directory, sector_size: Some(4096), ..image(Bytes(400 << 20)) })
}

pub(crate) fn on(backing: Backing, filesystem: &str) -> Storage {
    let filesystem =
        Some(FilesystemChoice { name: filesystem.into(), ..FilesystemChoice::default() });
    Storage { backing, filesystem, ..Storage::default() }
}

/// Two loop files below `directory`, striped.
pub(crate) fn striped(directory: &Path, filesystem: &str) -> Storage {
    let members = vec![loop_file(directory), loop_file(directory)];
    on(Backing::Raid0(Raid0 { members, by: None, chunk: None }), filesystem)
}

pub(crate) fn plan(storage: &Storage, place: &Path, wipe: &Wipe) -> Result<Stack, StorageError> {
    emulated::serve_by(&["--exact", "emulated::emulated_disk_server", "--nocapture"]);
    let account = server_account().unwrap();
    let around = Surroundings { default_directory: place, account: &account, wipe };
    Stack::plan("disk", storage, &around)
}

/// Makes `storage` below `place`.
pub(crate) fn make(storage: &Storage, place: &Place) -> Result<MountedStack, StorageError> {
    let stack = plan(storage, place.path(), &Wipe::default())?;
    stack.make(&server_account().unwrap(), &place.journal, &RUN)
}

/// Whether this machine can make `storage`; if not, that is said.
pub(crate) fn can(test: &str, storage: &Storage, place: &Path) -> bool {
    match plan(storage, place, &Wipe::default()) {
        Ok(_) => true,
        Err(e) if is_lacking(test, &e) => false,
        Err(e) => panic!("{e:?}"),
    }
}

pub(crate) fn assert_nothing_left(place: &Place) {
    assert_eq!(traces(place.path()), [""; 0]);
    assert_eq!(place.journal.entries().unwrap(), []);
    let names: Vec<_> =
        fs::read_dir(place.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert!(names.iter().all(|n| n == "state"), "{names:?}");
}
