//! The check of a filesystem that somebody damaged.
use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::common::stacks::{can, image, make, on};
use crate::common::{Place, RUN, traces};
use pgdyno_model::crash::Fsck;
use pgdyno_model::storage::Backing;
use pgdyno_model::units::Bytes;
use pgdyno_test_support::needs;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn damage_is_reported_with_its_status_and_is_not_repaired() {
    let place = Place::new();
    let storage = on(Backing::Loop(image(Bytes(32 << 20))), "ext4");
    needs!(can, &storage, place.path());
    let mut made = make(&storage, &place).unwrap();
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
