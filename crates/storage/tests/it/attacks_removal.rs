//! Attacks on the removal of what a killed pgdyno left: twins, links, and swaps at every step.
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use crate::common::attacks::{Attack, Attacker, attack_each_step};
use crate::common::leftovers::{
    NOBODY, REMOVED, can, entry_files, is_whole, kill_owners, make_cluster, make_directory, only,
    precious, swept,
};
use crate::common::stacks::{self, assert_nothing_left, loop_file, on, plan};
use crate::common::tracer::victim;
use crate::common::{Place, RUN};
use pgdyno_exec::account::server_account;
use pgdyno_exec::beneath::FileIdentity;
use pgdyno_exec::journal::{Entry, Journal, MARKER, OwnedResource};
use pgdyno_exec::mount::Mount;
use pgdyno_exec::step::Step;
use pgdyno_exec::{ExecContext, Executor as _, StepError};
use pgdyno_model::Advice;
use pgdyno_postgres::sweep::{Outcome, sweep};
use pgdyno_storage::Wipe;

/// Runs only in the victim: one sweep.
#[test]
#[ignore = "started by the tests below"]
fn victim_sweeps() {
    let Some(state) = std::env::var_os("STATE") else { return };
    let journal = Journal::open(Path::new(&state)).unwrap();
    let swept = sweep(&journal, &RUN).unwrap();
    if let Some(told) = std::env::var_os("TOLD") {
        let lines: Vec<String> = swept.iter().map(ToString::to_string).collect();
        fs::write(told, lines.join("\n")).unwrap();
    }
}

#[test]
fn a_twin_with_a_copied_marker_is_left_alone() {
    if !can("a_twin_with_a_copied_marker_is_left_alone") {
        return;
    }
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
    let mut attacker = Attacker::new(NOBODY, NOBODY);
    assert!(!attacker.run(&format!("mv {} {}.aside", theirs.display(), theirs.display())));
    let marker = fs::read_to_string(theirs.join(MARKER)).unwrap();
    let aside = place.path().join("aside");
    fs::rename(&theirs, &aside).unwrap();
    let script = format!(
        "mkdir {0} && printf '%s' '{marker}' > {0}/{MARKER} && echo kept > {0}/file",
        theirs.display()
    );
    assert!(attacker.run(&script));
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
    if !can("a_parent_that_another_account_can_change_is_refused_with_what_to_do") {
        return;
    }
    let place = Place::new();
    let precious = precious(&place);
    for (uid, mode, word) in [(NOBODY, 0o755, "chown root"), (0, 0o777, "chmod go-w")] {
        let storage = place.path().join("storage");
        fs::create_dir(&storage).unwrap();
        let ours = make_directory(&place, storage.join("ours"));
        kill_owners(&place);
        chown(&storage, Some(uid), Some(uid)).unwrap();
        fs::set_permissions(&storage, fs::Permissions::from_mode(mode)).unwrap();
        let mut attacker = Attacker::new(NOBODY, NOBODY);
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

#[test]
fn a_link_in_place_of_a_directory_is_not_followed() {
    if !can("a_link_in_place_of_a_directory_is_not_followed") {
        return;
    }
    let place = Place::new();
    let precious = precious(&place);
    let whole = make_directory(&place, place.path().join("whole"));
    fs::rename(&whole, place.path().join("aside")).unwrap();
    symlink(&precious, &whole).unwrap();
    let cluster = make_cluster(&place, "cluster", NOBODY);
    let mut attacker = Attacker::new(NOBODY, NOBODY);
    let data = cluster.join("data");
    assert!(attacker.run(&format!("ln -s {} {}/base", precious.display(), data.display())));
    let linked = make_cluster(&place, "linked", NOBODY);
    fs::remove_dir(linked.join("data")).unwrap();
    symlink(&precious, linked.join("data")).unwrap();
    kill_owners(&place);
    let swept = swept(&place);
    let outcome = |path: &Path| &swept.iter().find(|s| s.path == path).unwrap().outcome;
    assert!(matches!(outcome(&whole), Outcome::NotOurs { .. }), "{swept:?}");
    assert_eq!((outcome(&cluster), outcome(&linked)), (&REMOVED, &REMOVED));
    assert!(is_whole(&precious) && !cluster.exists() && !linked.exists());
}

#[test]
fn a_directory_that_is_swapped_during_its_removal_leads_nowhere() {
    if !can("a_directory_that_is_swapped_during_its_removal_leads_nowhere") {
        return;
    }
    let place = Place::new();
    let precious = precious(&place);
    let (path, data) = (place.path().join("cluster"), place.path().join("cluster/data"));
    let mut attacker = Attacker::new(NOBODY, NOBODY);
    let mut attack = Attack {
        place: &data,
        prepare: &mut || {
            assert_eq!(make_cluster(&place, "cluster", NOBODY), path);
            fs::create_dir_all(data.join("base/below")).unwrap();
            for name in ["base/file", "base/below/file", "PG_VERSION"] {
                fs::write(data.join(name), "").unwrap();
            }
            for name in ["base", "base/below", "base/file", "base/below/file"] {
                chown(data.join(name), Some(NOBODY), Some(NOBODY)).unwrap();
            }
            kill_owners(&place);
            victim("attacks_removal::victim_sweeps", &[("STATE", &place.path().join("state"))])
        },
        swap: &mut |away| {
            // Fails where the directory is gone already.
            let base = data.join("base");
            let _ = if away { attacker.swap(&base, &precious) } else { attacker.swap_back(&base) };
        },
        check: &mut |ended, at| {
            assert_eq!(ended.code, Some(0), "{at}: {}", ended.output);
            assert!(is_whole(&precious), "{at}");
            // What an attack held up is removed by the next sweep.
            sweep(&place.journal, &RUN).unwrap();
            assert!(!path.exists() && entry_files(&place).is_empty(), "{at}");
        },
    };
    attack_each_step(&mut attack, 12).unwrap();
}

#[test]
fn a_directory_that_is_swapped_in_a_foreign_parent_leads_nowhere() {
    if !can("a_directory_that_is_swapped_in_a_foreign_parent_leads_nowhere") {
        return;
    }
    let place = Place::new();
    let storage = place.path().join("storage");
    let (precious, path) = (precious(&place), storage.join("ours"));
    let mut attacker = Attacker::new(NOBODY, NOBODY);
    let mut attack = Attack {
        place: &storage,
        prepare: &mut || {
            fs::create_dir(&storage).unwrap();
            make_directory(&place, path.clone());
            fs::create_dir(path.join("below")).unwrap();
            fs::write(path.join("below/file"), "").unwrap();
            // It was root's when the directory was made.
            chown(&storage, Some(NOBODY), Some(NOBODY)).unwrap();
            kill_owners(&place);
            victim("attacks_removal::victim_sweeps", &[("STATE", &place.path().join("state"))])
        },
        swap: &mut |away| {
            let _ = if away { attacker.swap(&path, &precious) } else { attacker.swap_back(&path) };
        },
        check: &mut |ended, at| {
            assert_eq!(ended.code, Some(0), "{at}: {}", ended.output);
            assert!(is_whole(&precious), "{at}");
            fs::remove_dir_all(&storage).unwrap();
            entry_files(&place).iter().for_each(|entry| fs::remove_file(entry).unwrap());
        },
    };
    attack_each_step(&mut attack, 12).unwrap();
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
    let test = "a_directory_on_a_stack_that_was_mounted_anew_is_known_again";
    let place = Place::new();
    let storage = on(loop_file(place.path()), "btrfs");
    if !stacks::can(test, &storage, place.path()) {
        return;
    }
    let stack = plan(&storage, place.path(), &Wipe::default()).unwrap();
    let mut made = stack.make(&server_account().unwrap(), &place.journal, &RUN).unwrap();
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
    // Takes the number that it had.
    let target = place.path().join("other");
    fs::create_dir(&target).unwrap();
    let (filesystem, source) = ("tmpfs".to_owned(), "pgdyno-test".into());
    let other = Mount { filesystem, source, target: target.clone(), options: Vec::new() };
    other.mount().unwrap();
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
    let Mount { target, filesystem, source, .. } = &other;
    pgdyno_exec::mount::unmount(target, filesystem, source).unwrap();
    fs::remove_dir(target).unwrap();
    assert_eq!(made.take_down(), [""; 0]);
    assert_nothing_left(&place);
}
