//! Attacks on the removal of what a killed pgdyno left: twins, links, parents of other accounts.
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use crate::common::attacks::Attacker;
use crate::common::leftovers::{
    NOBODY, REMOVED, can, entry_files, is_whole, kill_owners, make_cluster, make_directory, only,
    precious, swept,
};
use crate::common::stacks::{self, assert_nothing_left, loop_file, make, on};
use crate::common::{Place, RUN};
use pgdyno_exec::beneath::FileIdentity;
use pgdyno_exec::journal::{Entry, MARKER, OwnedResource};
use pgdyno_exec::mount::Mount;
use pgdyno_exec::step::Step;
use pgdyno_exec::{ExecContext, Executor as _, StepError};
use pgdyno_model::Advice;
use pgdyno_postgres::sweep::{Outcome, sweep};
use pgdyno_test_support::needs;

#[test]
fn a_twin_with_a_copied_marker_is_left_alone() {
    needs!(can);
    let place = Place::new();
    // Anybody may make what is not there, as in /tmp.
    let sticky = place.path().join("sticky");
    fs::create_dir(&sticky).unwrap();
    fs::set_permissions(&sticky, fs::Permissions::from_mode(0o1777)).unwrap();
    let theirs = make_directory(&place, sticky.join("theirs"));
    let ours = make_directory(&place, sticky.join("ours"));
    let moved = make_directory(&place, place.path().join("moved"));
    let honest = make_directory(&place, sticky.join("honest"));
    fs::write(honest.join("file"), "").unwrap();
    kill_owners(&place);
    // Nobody can take root's own away, sticky as it is; a cleaner of old files does.
    let attacker = Attacker::new(NOBODY, NOBODY);
    assert!(!attacker.swap(&theirs, &ours));
    let marker = fs::read_to_string(theirs.join(MARKER)).unwrap();
    let aside = place.path().join("aside");
    fs::rename(&theirs, &aside).unwrap();
    let twin = theirs.clone();
    assert!(attacker.run(move || {
        let made = fs::create_dir(&twin).and_then(|()| fs::write(twin.join(MARKER), marker));
        made.and_then(|()| fs::write(twin.join("file"), "kept")).is_ok()
    }));
    // Root's own hand: a copy of a backup, say.
    fs::rename(&ours, place.path().join("original")).unwrap();
    fs::create_dir(&ours).unwrap();
    fs::copy(place.path().join("original").join(MARKER), ours.join(MARKER)).unwrap();
    fs::write(ours.join("file"), "kept").unwrap();
    // A link to where it went.
    fs::rename(&moved, place.path().join("moved.aside")).unwrap();
    symlink(place.path().join("moved.aside"), &moved).unwrap();

    let swept = swept(&place);
    let outcome = |path: &Path| &swept.iter().find(|s| s.path == path).unwrap().outcome;
    for twin in [&theirs, &ours, &moved] {
        assert!(matches!(outcome(twin), Outcome::NotOurs { .. }), "{swept:?}");
        assert!(twin.exists(), "{swept:?}");
    }
    assert_eq!(outcome(&honest), &REMOVED);
    assert!(theirs.join("file").exists() && ours.join("file").exists() && !honest.exists());
    assert!(place.path().join("moved.aside").join(MARKER).exists());
    let told = swept.iter().find(|s| s.path == ours).unwrap().to_string();
    assert!(told.contains("another one was put in its place"), "{told}");
}

#[test]
fn a_parent_that_another_account_can_change_is_refused_with_what_to_do() {
    needs!(can);
    let place = Place::new();
    let precious = precious(&place);
    for (uid, mode, word) in [(NOBODY, 0o755, "chown root"), (0, 0o777, "chmod go-w")] {
        let storage = place.path().join("storage");
        fs::create_dir(&storage).unwrap();
        let ours = make_directory(&place, storage.join("ours"));
        kill_owners(&place);
        chown(&storage, Some(uid), Some(uid)).unwrap();
        fs::set_permissions(&storage, fs::Permissions::from_mode(mode)).unwrap();
        let attacker = Attacker::new(NOBODY, NOBODY);
        assert!(attacker.swap(&ours, &precious));
        let outcome = only(swept(&place));
        let Outcome::Failed { why } = &outcome else { panic!("{outcome:?}") };
        assert!(why.contains(word) && why.contains(storage.to_str().unwrap()), "{why}");
        assert!(is_whole(&precious));
        // Nor is anything made there.
        let mut performing = ExecContext { journal: &place.journal, stop: &RUN, made: Vec::new() };
        let made = OwnedResource::Directory { path: storage.join("new") };
        let error =
            performing.execute(&Step::MakeMarked { made, mode: 0o700, owner: None }).unwrap_err();
        assert!(
            matches!(error, StepError::Untrusted(_)) && error.help().unwrap().contains(word),
            "{error}"
        );
        // Once nobody else can change it, it is as it was.
        assert!(attacker.swap_back(&ours));
        chown(&storage, Some(0), Some(0)).unwrap();
        fs::set_permissions(&storage, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(only(swept(&place)), REMOVED);
        fs::remove_dir(&storage).unwrap();
    }
}

fn mount_tmpfs(target: &Path) -> Mount {
    fs::create_dir(target).unwrap();
    let (filesystem, source) = ("tmpfs".to_owned(), "pgdyno-test".into());
    let mount = Mount { filesystem, source, target: target.to_owned(), options: Vec::new() };
    mount.mount().unwrap();
    mount
}

fn unmount(mount: &Mount) {
    pgdyno_exec::mount::unmount(&mount.target, &mount.filesystem, &mount.source).unwrap();
    fs::remove_dir(&mount.target).unwrap();
}

#[test]
fn a_removal_that_was_held_up_is_taken_up_again_by_the_next_sweep() {
    needs!(can);
    let place = Place::new();
    let cluster = make_cluster(&place, "cluster", NOBODY);
    kill_owners(&place);
    let mount = mount_tmpfs(&cluster.join("data/mounted"));
    fs::write(mount.target.join("file"), "kept").unwrap();
    let outcome = only(swept(&place));
    let is_kept = mount.target.join("file").exists();
    unmount(&mount);
    assert!(matches!(outcome, Outcome::Failed { .. }) && is_kept, "{outcome:?}");
    assert_eq!(only(swept(&place)), REMOVED);
    assert!(!cluster.exists() && entry_files(&place).is_empty());
}

#[test]
fn what_was_never_identified_is_removed_only_if_it_holds_nothing() {
    let place = Place::new();
    let forget_identity = |path: &Path| {
        make_directory(&place, path.to_owned());
        for file in entry_files(&place) {
            let mut entry: Entry = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            entry.identity = None;
            fs::write(&file, serde_json::to_vec(&entry).unwrap()).unwrap();
        }
    };
    let (marked, filled) = (place.path().join("marked"), place.path().join("filled"));
    forget_identity(&marked);
    forget_identity(&filled);
    fs::write(filled.join("file"), "kept").unwrap();
    kill_owners(&place);
    let swept = swept(&place);
    let outcome = |path: &Path| &swept.iter().find(|s| s.path == path).unwrap().outcome;
    assert_eq!(outcome(&marked), &REMOVED);
    assert!(matches!(outcome(&filled), Outcome::NotOurs { .. }), "{swept:?}");
    assert!(!marked.exists() && filled.join("file").exists());
}

#[test]
fn another_device_number_counts_only_after_a_restart() {
    let place = Place::new();
    for (boot, expected) in [(None, false), (Some("an earlier boot"), true)] {
        let ours = make_directory(&place, place.path().join("ours"));
        let mut entry = place.journal.entries().unwrap().remove(0);
        let FileIdentity { device, inode } = entry.identity.unwrap();
        place.journal.identify(&mut entry, FileIdentity { device: device + 1, inode }).unwrap();
        kill_owners(&place);
        if let Some(boot) = boot {
            let file = entry_files(&place).remove(0);
            entry.owner.boot_id = boot.into();
            fs::write(file, serde_json::to_vec(&entry).unwrap()).unwrap();
        }
        let outcome = only(swept(&place));
        assert_eq!(outcome == REMOVED, expected, "{outcome:?}");
        assert_eq!(ours.exists(), !expected);
        let _ = fs::remove_dir_all(&ours);
    }
}

#[test]
fn a_directory_on_a_stack_that_was_mounted_anew_is_known_again() {
    let place = Place::new();
    let storage = on(loop_file(place.path()), "btrfs");
    needs!(stacks::can, &storage, place.path());
    let mut made = make(&storage, &place).unwrap();
    let path = made.path().join("pgdyno-below");
    let mut performing = ExecContext { journal: &place.journal, stop: &RUN, made: Vec::new() };
    let step = Step::MakeMarked {
        made: OwnedResource::Directory { path: path.clone() },
        mode: 0o700,
        owner: None,
    };
    performing.execute(&step).unwrap();
    fs::write(path.join("file"), "").unwrap();
    let device = || fs::metadata(&path).unwrap().dev();
    let before = device();
    made.unmount().unwrap();
    // Each takes the lowest number that is free, until the one that it had is none of those.
    let mut others: Vec<Mount> = Vec::new();
    while others.last().is_none_or(|o| fs::metadata(&o.target).unwrap().dev() < before) {
        others.push(mount_tmpfs(&place.path().join(format!("other-{}", others.len()))));
    }
    made.mount(&RUN).unwrap();
    assert_ne!(device(), before);

    let mut entry = performing.made.remove(0);
    entry.owner.started_ticks = 1;
    let file = place.path().join("state/made").join(format!("{}.json", entry.id));
    fs::write(file, serde_json::to_vec(&entry).unwrap()).unwrap();
    let swept = sweep(&place.journal, &RUN).unwrap();
    assert!(
        matches!(&swept[..], [s] if s.outcome == Outcome::Removed { server_ended: None }),
        "{swept:?}"
    );
    assert!(!path.exists());
    others.iter().for_each(unmount);
    assert_eq!(made.take_down(), [""; 0]);
    assert_nothing_left(&place);
}
