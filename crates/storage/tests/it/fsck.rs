//! The check of a filesystem that somebody damaged.
use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::common::{Place, RUN, is_lacking, traces};
use pgdyno_exec::account::server_account;
use pgdyno_model::crash::Fsck;
use pgdyno_model::storage::{Backing, FilesystemChoice, LoopFile, Storage};
use pgdyno_model::units::Bytes;
use pgdyno_storage::{Stack, Surroundings, Wipe};

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn damage_is_reported_with_its_status_and_is_not_repaired() {
    let place = Place::new();
    let account = server_account().unwrap();
    let around =
        Surroundings { default_directory: place.path(), account: &account, wipe: &Wipe::default() };
    let storage = Storage {
        backing: Backing::Loop(LoopFile {
            directory: None,
            size: Bytes(32 << 20),
            sector_size: None,
            direct_io: true,
            offset: None,
        }),
        filesystem: Some(FilesystemChoice { name: "ext4".into(), ..FilesystemChoice::default() }),
        ..Storage::default()
    };
    let mut made = match Stack::plan("disk", &storage, &around) {
        Ok(stack) => stack.make(&account, &place.journal, &RUN).unwrap(),
        Err(e) => {
            let test = "damage_is_reported_with_its_status_and_is_not_repaired";
            assert!(is_lacking(test, &e), "{e:?}");
            return;
        }
    };
    fs::write(made.path().join("kept"), "kept").unwrap();
    let device = made.facts(false).unwrap().filesystem.unwrap().source;
    let found = made.fsck(LIMIT, &RUN).unwrap();
    let Fsck::Clean { command, .. } = &found else { panic!("{found:?}") };
    assert_eq!(command, "e2fsck -f -n");
    made.unmount().unwrap();
    let wrong = "set_inode_field <2> links_count 77";
    let changed = Command::new("debugfs").args(["-w", "-R", wrong, &device]).output().unwrap();
    assert!(changed.status.success(), "{changed:?}");
    made.mount(&RUN).unwrap();
    // Twice alike: it repairs nothing.
    for _ in 0..2 {
        let found = made.fsck(LIMIT, &RUN).unwrap();
        let Fsck::Complained { status, said, .. } = &found else { panic!("{found:?}") };
        assert_eq!(*status, 4, "{found:?}");
        assert!(said.contains("77"), "{found:?}");
        assert_eq!(fs::read_to_string(made.path().join("kept")).unwrap(), "kept");
    }
    assert_eq!(made.take_down(), [""; 0]);
    assert_eq!(traces(place.path()), [""; 0]);
    assert!(place.is_clean());
}
