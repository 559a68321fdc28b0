//! Attacks on what root ends, undoes and runs by the words of its journal.
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::attacks::victim;
use crate::common::leftovers::{
    NOBODY, REMOVED, can, entry_files, kill_owners, make_cluster, make_directory, only, runs, swept,
};
use crate::common::{Place, RUN};
use pgdyno_exec::account::server_account;
use pgdyno_exec::journal::{Journal, JournalError, MARKER, OwnedResource};
use pgdyno_exec::undo::{KernelFileChange, Undo};
use pgdyno_model::Advice;
use pgdyno_model::facts::BuildSource;
use pgdyno_postgres::sweep::{CleanupResult, Outcome, sweep};
use pgdyno_postgres::{Cluster, ClusterSpec, Install};
use pgdyno_test_support::{needs, wait_for, write_program};

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

/// A process of `uid` whose program is called `postgres` and that works in `cwd`.
fn fake_postgres(place: &Place, uid: u32, cwd: &Path) -> Child {
    let program = place.path().join("postgres");
    if !program.exists() {
        fs::copy("/bin/sleep", &program).unwrap();
    }
    let mut command = Command::new(&program);
    command.arg("600").current_dir(cwd).uid(uid).gid(uid).spawn().unwrap()
}

#[test]
fn a_foreign_postmaster_is_not_ended() {
    needs!(can);
    let place = Place::new();
    let account = server_account().unwrap();
    let foreign = place.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::set_permissions(&foreign, fs::Permissions::from_mode(0o755)).unwrap();
    // Of the account that pgdyno's servers run as, in a directory of its own.
    let mut elsewhere = fake_postgres(&place, account.uid, &foreign);
    fs::write(foreign.join("postmaster.pid"), format!("{}\n", elsewhere.id())).unwrap();
    let forged = make_cluster(&place, "forged", account.uid);
    fs::write(forged.join("data/postmaster.pid"), format!("{}\n", elsewhere.id())).unwrap();
    let linked = make_cluster(&place, "linked", account.uid);
    fs::remove_dir(linked.join("data")).unwrap();
    symlink(&foreign, linked.join("data")).unwrap();
    // Of another account, in pgdyno's directory; and one that is no postgres.
    let visited = make_cluster(&place, "visited", account.uid);
    let mut visitor = fake_postgres(&place, NOBODY, &visited.join("data"));
    let mut sleeper = Command::new("sleep");
    let mut sleeper =
        sleeper.arg("600").current_dir(visited.join("data")).uid(account.uid).spawn().unwrap();
    // Pgdyno's own: of that account, at work in that very directory.
    let own = make_cluster(&place, "own", account.uid);
    let mut server = fake_postgres(&place, account.uid, &own.join("data"));
    fs::write(own.join("data/postmaster.pid"), format!("{}\n", server.id())).unwrap();
    kill_owners(&place);

    let swept = swept(&place);
    let outcome = |path: &Path| &swept.iter().find(|s| s.path == path).unwrap().outcome;
    for path in [&forged, &linked, &visited] {
        assert_eq!(outcome(path), &REMOVED);
    }
    let pid = server.id().cast_signed();
    assert_eq!(outcome(&own), &Outcome::Removed { server_ended: Some(pid) });
    assert!(!runs(server.id()));
    for innocent in [&mut elsewhere, &mut visitor, &mut sleeper] {
        assert!(runs(innocent.id()), "{swept:?}");
        innocent.kill().unwrap();
        innocent.wait().unwrap();
    }
    server.wait().unwrap();
    assert!(foreign.join("postmaster.pid").exists());
}

#[test]
fn a_journal_that_others_can_change_is_refused_and_nothing_of_it_is_done() {
    needs!(can);
    let place = Place::new();
    let state = place.path().join("state");
    for (component, uid, mode) in [
        (place.path().to_owned(), 0, 0o777),
        (state.clone(), NOBODY, 0o755),
        (state.join("made"), 0, 0o775),
        (state.join("made"), NOBODY, 0o700),
        (state.join("made"), 0, 0o1777),
    ] {
        chown(&component, Some(uid), Some(uid.max(1))).unwrap();
        fs::set_permissions(&component, fs::Permissions::from_mode(mode)).unwrap();
        let error = Journal::open(&state).unwrap_err();
        assert!(matches!(error, JournalError::Untrusted(_)), "{error}");
        let help = error.help().unwrap();
        assert!(
            help.contains("XDG_STATE_HOME") && help.contains(component.to_str().unwrap()),
            "{help}"
        );
        chown(&component, Some(0), Some(0)).unwrap();
        fs::set_permissions(&component, fs::Permissions::from_mode(0o755)).unwrap();
        Journal::open(&state).unwrap();
    }
}

#[test]
fn a_forged_entry_is_refused_and_nothing_of_the_journal_is_done() {
    needs!(can);
    let place = Place::new();
    let ours = make_directory(&place, place.path().join("ours"));
    kill_owners(&place);
    let honest = fs::read(&entry_files(&place)[0]).unwrap();
    let id = "00000000000000000000000000000000";
    let forged = place.path().join("state/made").join(format!("{id}.json"));
    let text = String::from_utf8(honest).unwrap();
    let of_id = |id: &str| {
        let mut entry: serde_json::Value = serde_json::from_str(&text).unwrap();
        entry["id"] = id.into();
        entry.to_string()
    };
    let outside = place.path().join("outside");
    fs::write(&outside, of_id(id)).unwrap();
    let attacks: [(&str, &dyn Fn()); 5] = [
        ("a file of another account", &|| {
            fs::write(&forged, of_id(id)).unwrap();
            chown(&forged, Some(NOBODY), Some(NOBODY)).unwrap();
        }),
        ("one that others may write", &|| {
            fs::write(&forged, of_id(id)).unwrap();
            fs::set_permissions(&forged, fs::Permissions::from_mode(0o666)).unwrap();
        }),
        ("a link", &|| symlink(&outside, &forged).unwrap()),
        ("a directory", &|| fs::create_dir(&forged).unwrap()),
        ("an entry whose id leads elsewhere", &|| {
            fs::write(&forged, of_id("../../outside")).unwrap();
        }),
    ];
    for (attack, forge) in attacks {
        forge();
        let error = sweep(&place.journal, &RUN).unwrap_err();
        assert!(
            matches!(&error, JournalError::Foreign { path, .. } if *path == forged),
            "{attack}: {error}"
        );
        assert!(error.help().unwrap().contains("rm "), "{attack}");
        assert!(ours.exists() && outside.exists(), "{attack}");
        if forged.is_dir() {
            fs::remove_dir(&forged).unwrap();
        } else {
            fs::remove_file(&forged).unwrap();
        }
    }
    assert_eq!(only(swept(&place)), REMOVED);
}

/// Puts the journal's entry of an earlier version there, as its owner left it.
fn old_entry(place: &Place, name: &str) -> String {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journal").join(name);
    let text =
        fs::read_to_string(fixture).unwrap().replace("@PLACE@", place.path().to_str().unwrap());
    // The fixtures' machine was restarted; what is put back then is the least.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = text.replace("100b7d7e-62d7-4162-8101-000c6e9bf9f2", boot.trim());
    let entry: serde_json::Value = serde_json::from_str(&text).unwrap();
    let file =
        place.path().join("state/made").join(format!("{}.json", entry["id"].as_str().unwrap()));
    fs::write(file, &text).unwrap();
    text
}

#[test]
fn a_command_in_a_journal_does_not_run() {
    let place = Place::new();
    let precious = place.path().join("precious");
    fs::write(&precious, "data").unwrap();
    for name in ["hook.json", "drive.json", "command.json", "write.json"] {
        old_entry(&place, name);
    }
    let made = place.journal.entries().unwrap();
    assert!(made.iter().any(|e| matches!(
        &e.made,
        OwnedResource::Setting { undo: Undo::SetDriveCache { device, on: true, .. }, .. }
            if device == Path::new("/dev/sdz")
    )));
    let results = swept(&place);
    assert!(!place.path().join("canary").exists());
    assert_eq!(fs::read_to_string(&precious).unwrap(), "data");
    let by_hand = |s: &&CleanupResult| matches!(&s.outcome, Outcome::ByHand { .. });
    assert_eq!(results.iter().filter(by_hand).count(), 2, "{results:?}");
    let told = results.iter().find(by_hand).unwrap().to_string();
    assert!(told.contains("device.hook.restore"), "{told}");
    // Told again until somebody strikes it out, as `pgdyno clean` does.
    let again = swept(&place);
    assert_eq!(again.len(), 2, "{again:?}");
    for swept in again {
        let Outcome::ByHand { id, .. } = swept.outcome else { panic!("{swept:?}") };
        place.journal.done(&id).unwrap();
    }
    assert_eq!(swept(&place), []);
}

#[test]
fn only_files_of_the_kernels_are_written_back() {
    let place = Place::new();
    let precious = place.path().join("precious");
    let climbing = Path::new("/sys/..").join(precious.strip_prefix("/").unwrap());
    let link = place.path().join("link");
    symlink(&precious, &link).unwrap();
    for file in [precious.clone(), climbing, link, "/proc/self/cwd".into()] {
        fs::write(&precious, "data").unwrap();
        let files = vec![KernelFileChange { file, was: "evil".into(), set: Some("data".into()) }];
        place
            .journal
            .record(&OwnedResource::Setting {
                path: precious.clone(),
                device: PathBuf::new(),
                undo: Undo::WriteKernelFiles { files },
            })
            .unwrap();
        kill_owners(&place);
        swept(&place);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "data");
    }
}

#[test]
fn what_an_earlier_version_made_is_taken_down_by_the_same_steps() {
    let place = Place::new();
    let stack = old_entry(&place, "stack.json");
    let cluster = old_entry(&place, "cluster.json");
    let journal = place.journal.clone().with_plans(pgdyno_storage::undo_of_plan);
    let [entry, ..] = &journal.entries().unwrap()[..] else { panic!("no entry") };
    let OwnedResource::Stack { path: home, undo, .. } = &entry.made else { panic!("{entry:?}") };
    let verbs = serde_json::to_string(undo).unwrap();
    assert!(!verbs.contains("canary") && !verbs.contains("touch"), "{verbs}");
    assert!(undo.contains(&Undo::StopArray { name: "pgdyno-1a2b3c4d".into() }), "{undo:?}");
    assert!(
        undo.iter()
            .any(|u| matches!(u, Undo::Unmount { target, .. } if *target == home.join("mnt")))
    );
    assert_eq!(undo.iter().filter(|u| matches!(u, Undo::DetachLoop { .. })).count(), 2);
    for (name, text) in [("pgdyno-1a2b3c4d", &stack), ("pgdyno-0a0b0c0d", &cluster)] {
        fs::create_dir(place.path().join(name)).unwrap();
        fs::write(place.path().join(name).join(MARKER), text).unwrap();
        fs::write(place.path().join(name).join("log"), "").unwrap();
    }
    let swept = swept(&place);
    assert!(swept.iter().all(|s| s.outcome == REMOVED), "{swept:?}");
    assert!(place.is_clean() && !place.path().join("canary").exists());
}

/// Runs only in the victim: makes a cluster by an initdb that comes to no end.
#[test]
#[ignore = "started by the tests below"]
fn victim_makes_a_cluster() {
    let Some(root) = std::env::var_os("PLACE").map(PathBuf::from) else { return };
    let journal = Journal::open(&root.join("state")).unwrap();
    let install = Install {
        bindir: root.join("bin"),
        version: "17.0".into(),
        major: 17,
        source: BuildSource::Found {
            bindir: root.join("bin").display().to_string(),
            how: "a test's".into(),
        },
    };
    let spec = ClusterSpec::new(install, root.join("storage/pgdyno-victim")).unwrap();
    let error =
        Cluster::create(ClusterSpec { socket_base: root, ..spec }, &journal, &RUN).unwrap_err();
    panic!("{error}");
}

/// Writes without end into the data directory, itself and by a child that changes its group; deaf
/// to a gentle end.
const ENDLESS_INITDB: &str = r#"#!/bin/sh
trap '' TERM
cd /
( while :; do : > "$2/of-child.$$"; sleep 0.01; done ) &
echo $! > "$2/child"
mv "$2/child" "$2/child-runs"
while :; do mkdir -p "$2/base" && : > "$2/base/file" && rm "$2/base/file"; done
"#;

/// A place in which a pgdyno was killed while its initdb ran; the processes that it left.
fn killed_at_initdb() -> (Place, Vec<u32>) {
    let place = Place::new();
    fs::create_dir(place.path().join("storage")).unwrap();
    write_program(&place.path().join("bin/initdb"), ENDLESS_INITDB);
    let mut victim = victim("attacks_journal::victim_makes_a_cluster", &[("PLACE", place.path())]);
    let mut victim = victim.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let child_file = place.path().join("storage/pgdyno-victim/data/child-runs");
    let child = wait_for("a child of initdb", || {
        assert!(victim.try_wait().unwrap().is_none(), "the victim ended before it was killed");
        fs::read_to_string(&child_file).ok()?.trim().parse::<u32>().ok()
    });
    let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap();
    let parent = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap();
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(runs(child) && runs(parent), "a killed pgdyno leaves its initdb running");
    (place, vec![child, parent])
}

fn assert_gone(place: &Place, processes: &[u32], told: &str) {
    assert!(processes.iter().all(|pid| !runs(*pid)), "{told}");
    assert_eq!(fs::read_dir(place.path().join("storage")).unwrap().count(), 0, "{told}");
    assert!(entry_files(place).is_empty(), "{told}");
    assert_eq!(swept(place), [], "one call is enough");
}

#[test]
fn an_initdb_of_a_killed_run_is_ended_before_its_directory_is_removed() {
    let (place, processes) = killed_at_initdb();
    // A shell of the user's that happens to stand in the directory has nothing to fear.
    let mut shell = Command::new("sleep")
        .arg("600")
        .current_dir(place.path().join("storage/pgdyno-victim"))
        .spawn()
        .unwrap();
    let swept = swept(&place);
    assert!(swept.len() == 2 && swept.iter().all(|s| s.outcome == REMOVED), "{swept:?}");
    assert_gone(&place, &processes, &format!("{swept:?}"));
    assert!(runs(shell.id()));
    shell.kill().unwrap();
    shell.wait().unwrap();
}

#[test]
fn an_initdb_is_found_also_where_root_may_not_look_into_other_processes() {
    needs!(can);
    let (place, processes) = killed_at_initdb();
    let told = place.path().join("told");
    let sweeper = victim(
        "attacks_journal::victim_sweeps",
        &[("STATE", &place.path().join("state")), ("TOLD", &told)],
    );
    let mut confined = Command::new("setpriv");
    confined.args(["--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]);
    confined.arg(sweeper.get_program()).args(sweeper.get_args());
    confined.envs(sweeper.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert!(confined.stdout(Stdio::null()).status().unwrap().success());
    assert_gone(&place, &processes, &fs::read_to_string(told).unwrap());
}
