//! `pgdyno rm`, `archive`, `import` and `store`: what a store of months needs, from outside.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::alike::assert_alike_but_for_thinning;
use crate::support::{Ended, World, elements, ended, finish, signal, write_old_store};
use pgdyno_model::facts::Owner;
use pgdyno_model::record::SessionRecord;
use pgdyno_model::units::Epoch;
use pgdyno_store::Store;
use pgdyno_store::notes::{Note, Notes};
use pgdyno_test_support::records::Random;
use pgdyno_test_support::{RELEASE_MOUNTS, is_root, needs, synthetic};
use rusqlite::Connection;
use serde_json::Value;

const OLD: &str = "quickstart-";
const SMALL: [&str; 2] = ["small-20261121-070000-aaaa", "small-20261121-070000-bbbb"];

/// A world whose store is one of pgdyno 0.1.0 with a run of `quickstart` that has seconds and
/// telemetry, and two small runs.
fn world() -> World {
    let world = World::new();
    write_old_store(&world.store());
    let mut random = Random(7);
    let plan = synthetic::plan(&["a", "b"], 3, &mut random);
    let mut store = Store::open(world.store()).unwrap();
    for (number, id) in (1..).zip(SMALL) {
        synthetic::add(&mut store, (id, number), &plan, |planned| {
            1000.0 + f64::from(planned.ordinal)
        });
    }
    world
}

fn ids(world: &World) -> Vec<String> {
    let listed = world.run(&["list", "--json"]).json();
    elements(&listed).map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

/// Asserts that nothing in the store, or in the store `file`, is damaged.
fn assert_sound(world: &World, file: Option<&str>) {
    let of = file.map_or(vec![], |file| vec!["--store", file]);
    world.run(&[&["verify"][..], &of].concat()).exits(0);
}

fn assert_refused(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
    for word in words.iter().chain(&["error: ", "help: "]) {
        assert!(ended.err.contains(word), "{word}: {}", ended.err);
    }
}

/// Takes the whole store behind pgdyno's back, without its triggers.
fn tamper(file: &Path, sql: &str) {
    let raw = Connection::open(file).unwrap();
    let triggers: Vec<(String, String)> = raw
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    triggers
        .iter()
        .for_each(|(name, _)| raw.execute_batch(&format!("DROP TRIGGER {name}")).unwrap());
    raw.execute_batch(sql).unwrap();
    triggers.iter().for_each(|(_, sql)| raw.execute_batch(sql).unwrap());
}

#[test]
fn only_named_runs_are_removed_and_the_file_shrinks() {
    let world = world();
    let kept = world.show(SMALL[1]);
    let before = fs::metadata(world.store()).unwrap().len();
    let unasked = world.run(&["rm", OLD]);
    assert_refused(&unasked, &["no terminal", "--yes"]);
    unasked.prints("run quickstart-");
    for (name, words) in [
        ("latest", &["`latest`", "pgdyno list"][..]),
        ("smal", &["could be any of 2"]),
        ("quickstat", &["quickstat", "did you mean"]),
        ("*", &["no run or probe is named `*`"]),
    ] {
        assert_refused(&world.run(&["rm", "--yes", name]), words);
    }
    assert_refused(&world.run(&["rm", "--yes", SMALL[0], "nobody"]), &["nobody"]);
    assert_eq!(ids(&world).len(), 3, "of several names all must be known");

    world.run(&["report", OLD]).exits(0);
    let removed = world.run(&["rm", "--yes", OLD, SMALL[0], SMALL[0]]).exits(0);
    assert_eq!(removed.out.matches(SMALL[0]).count(), 1, "{}", removed.out);
    removed.prints("the report of quickstart-");
    assert_eq!(ids(&world), [SMALL[1]]);
    assert_eq!(world.show(SMALL[1]), kept);
    assert!(fs::metadata(world.store()).unwrap().len() < before / 2);
    assert_sound(&world, None);
    let raw = Connection::open(world.store()).unwrap();
    let removals: i64 =
        raw.query_row("SELECT count(*) FROM removal", [], |row| row.get(0)).unwrap();
    assert_eq!(removals, 2);
    drop(raw);
    // What is left is watched as before, the list of removals too.
    tamper(&world.store(), "UPDATE removal SET record = 'other' WHERE id = 1");
    world.run(&["verify"]).exits(3);
}

#[test]
fn a_terminal_is_asked_and_no_is_the_default() {
    let world = world();
    let answer = |typed: &str| {
        let command = world.command(&["rm", SMALL[0]]);
        let program = command.get_program().to_str().unwrap();
        let mut child = Command::new("script")
            .args(["-q", "-e", "-c", &format!("{program} rm {}", SMALL[0]), "/dev/null"])
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (mut shown, mut byte) = (Vec::new(), [0]);
        while !shown.ends_with(b"[y/N] ") {
            assert_eq!(screen.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&shown));
            shown.push(byte[0]);
        }
        keys.write_all(typed.as_bytes()).unwrap();
        screen.read_to_end(&mut shown).unwrap();
        (child.wait().unwrap().code(), String::from_utf8_lossy(&shown).into_owned())
    };
    let (code, shown) = answer("\n");
    assert!(code == Some(0) && shown.contains("nothing was removed"), "{shown}");
    let (code, shown) = answer("\x03");
    assert!(code == Some(130) && shown.contains("nothing was removed"), "{shown}");
    assert_eq!(ids(&world).len(), 3);
    let (code, shown) = answer("y\n");
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(ids(&world).len(), 2);
}

#[test]
fn an_archived_and_removed_run_comes_back_as_it_was() {
    let world = world();
    let before = [world.show(OLD), world.show(SMALL[0])];
    let file = world.path("runs.pgdyno");
    let archive = file.to_str().unwrap();
    world.run(&["archive", OLD, SMALL[0], archive]).exits(0);
    assert_sound(&world, Some(archive));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let shown = world.run(&["show", OLD, "--json", "--store", archive]);
    assert_eq!(shown.json(), before[0]);
    let bytes = fs::read(&file).unwrap();
    assert_refused(&world.run(&["archive", SMALL[1], archive]), &["no file is overwritten"]);
    assert_eq!(fs::read(&file).unwrap(), bytes);

    let again = world.run(&["import", archive]).exits(0);
    assert_eq!(again.out.matches("skipped").count(), 2, "{}", again.out);
    world.run(&["rm", "--yes", OLD, SMALL[0]]).exits(0);
    let imported = world.run(&["import", archive, "--json"]).json();
    assert_eq!(imported["added"].as_array().unwrap().len(), 2, "{imported}");
    assert_eq!([world.show(OLD), world.show(SMALL[0])], before);
    assert_sound(&world, None);
    let resumed = world.run(&["run", "--resume", OLD]);
    let is_trusted = !rustix::process::geteuid().is_root();
    assert!(is_trusted || resumed.err.contains("was imported"), "{}", resumed.err);
    assert_eq!(fs::read(&file).unwrap(), bytes, "an archive is only read");
    let left: Vec<_> = fs::read_dir(file.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".pgdyno"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn an_anonymous_archive_has_the_run_without_its_machines_name() {
    const NAME: &str = "db-of-ours-7";
    let world = World::new();
    let plan = synthetic::plan(&["a", "b"], 3, &mut Random(7));
    fs::create_dir_all(world.store().parent().unwrap()).unwrap();
    let mut store = Store::open(world.store()).unwrap();
    synthetic::add_on(&mut store, Some(NAME), (SMALL[0], 1), &plan, |_| 1000.0);
    drop(store);
    let file = world.path("run.pgdyno");
    let archive = file.to_str().unwrap();
    world.run(&["archive", "--anonymous", SMALL[0], archive]).exits(0);
    assert_sound(&world, Some(archive));
    assert!(world.show(SMALL[0])["sessions"][0]["host"].to_string().contains(NAME));
    let shown = world.run(&["show", SMALL[0], "--json", "--store", archive]).exits(0).json();
    assert!(!shown.to_string().contains(NAME));
    assert_eq!(shown["treatments"], world.show(SMALL[0])["treatments"]);
}

#[test]
fn notes_go_along_with_an_archived_run_and_stay_when_it_is_removed() {
    let world = world();
    let note = |text: &str| Note { text: text.to_owned(), tags: vec!["kept".to_owned()] };
    let notes = Notes::open(&world.store()).unwrap();
    for (at, text) in [(1, "first"), (2, "second")] {
        notes.write(SMALL[0], &note(text), Epoch(at)).unwrap();
    }
    notes.write(SMALL[1], &note("of another run"), Epoch(3)).unwrap();
    let archive = world.path("old.sqlite3");
    let archived = world.run(&["archive", SMALL[0], archive.to_str().unwrap()]).exits(0);
    archived.prints(".notes");
    let beside = Notes::open_for_reading(&archive).unwrap().unwrap();
    assert_eq!(beside.all().unwrap().len(), 1, "only the notes on the archived run");
    world.run(&["rm", "--yes", SMALL[0]]).prints("the note on");

    let other = World::new();
    for _ in 0..2 {
        let imported = other.run(&["import", archive.to_str().unwrap()]);
        assert_eq!((imported.code, imported.err.as_str()), (Some(0), ""), "{}", imported.err);
    }
    let there = Notes::open_for_reading(&other.store()).unwrap().unwrap();
    assert_eq!(there.history(SMALL[0]).unwrap(), notes.history(SMALL[0]).unwrap());
}

#[test]
fn an_id_with_other_content_is_refused_and_nothing_is_lost() {
    let world = world();
    let file = world.path("runs.pgdyno");
    let archive = file.to_str().unwrap();
    world.run(&["archive", OLD, SMALL[0], archive]).exits(0);
    world.run(&["store", "thin", "--yes", OLD]).exits(0);
    world.run(&["rm", "--yes", SMALL[0]]).exits(0);
    let before = fs::read(world.store()).unwrap();
    assert_refused(&world.run(&["import", archive]), &["other content", "quickstart-"]);
    assert!(fs::read(world.store()).unwrap() == before, "nothing is changed");
    // The other record is not held up by it.
    world.run(&["import", archive, SMALL[0]]).exits(0);
    assert_eq!(ids(&world).len(), 3);
    assert_sound(&world, None);
}

#[test]
fn files_that_are_cut_damaged_newer_or_none_of_pgdynos_are_refused() {
    let world = world();
    let file = world.path("runs.pgdyno");
    let archive = file.to_str().unwrap();
    world.run(&["archive", OLD, archive]).exits(0);
    let whole = fs::read(&file).unwrap();
    let before = fs::read(world.store()).unwrap();
    for part in [1, 4, 9] {
        fs::write(&file, &whole[..whole.len() * part / 10]).unwrap();
        world.run(&["import", archive]).exits(1).says("error: ");
    }
    fs::write(&file, &whole).unwrap();
    tamper(&file, "UPDATE second SET transactions = transactions + 1 WHERE t_s = 1");
    assert_refused(&world.run(&["import", archive]), &["damaged"]);
    fs::write(&file, &whole).unwrap();
    Connection::open(&file)
        .unwrap()
        .execute_batch("CREATE TRIGGER t AFTER INSERT ON run BEGIN SELECT 1; END")
        .unwrap();
    world.run(&["import", archive]).exits(1).says("trigger");
    fs::write(&file, &whole).unwrap();
    Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    assert_refused(&world.run(&["import", archive]), &["newer pgdyno"]);
    fs::write(&file, "tps = 5").unwrap();
    assert_refused(&world.run(&["import", archive]), &["not a pgdyno store"]);
    assert_refused(&world.run(&["import", "nowhere"]), &["nowhere"]);
    assert!(fs::read(world.store()).unwrap() == before, "nothing is changed");
}

#[test]
fn a_store_of_a_newer_version_or_none_at_all_is_left_as_it_is() {
    let world = World::new();
    for arguments in [
        &["rm", "--yes", "a"][..],
        &["archive", "a", "b"],
        &["store", "size"],
        &["store", "thin", "--yes", "a"],
    ] {
        assert_refused(&world.run(arguments), &["there is no store"]);
    }
    assert!(!world.store().exists());
    let world = self::world();
    Connection::open(world.store()).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let before = fs::read(world.store()).unwrap();
    for arguments in [&["rm", "--yes", OLD][..], &["store", "thin", "--yes", OLD]] {
        assert_refused(&world.run(arguments), &["newer pgdyno"]);
    }
    assert!(fs::read(world.store()).unwrap() == before);
}

#[test]
fn a_run_at_work_is_neither_removed_nor_thinned_nor_archived() {
    let world = world();
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let owner = Owner {
        pid: std::process::id().cast_signed(),
        started_ticks: fields[19].parse().unwrap(),
        boot_id: boot_id.trim().to_owned(),
        host: None,
    };
    let session = SessionRecord { owner, ..synthetic::session(&["here".to_owned()]) };
    Store::open(world.store()).unwrap().begin_session(SMALL[0], &session).unwrap();
    let file = world.path("a");
    for arguments in [
        &["rm", "--yes", SMALL[1], SMALL[0]][..],
        &["store", "thin", "--yes", SMALL[0]],
        &["archive", SMALL[0], file.to_str().unwrap()],
    ] {
        assert_refused(&world.run(arguments), &["worked on by process"]);
    }
    assert_eq!(ids(&world).len(), 3);
    assert!(!file.exists());
}

#[test]
fn a_killed_removal_leaves_the_old_or_the_new_store() {
    let mut gone = 0;
    for delay_ms in [0, 5, 10, 15, 20, 30, 40, 60, 80, 120] {
        let world = world();
        let mut child = world.spawn(&["rm", "--yes", OLD]);
        std::thread::sleep(Duration::from_millis(delay_ms));
        let _ = child.kill();
        child.wait().unwrap();
        assert_sound(&world, None);
        let left = ids(&world);
        assert!(
            left.ends_with(&[SMALL[1].to_owned(), SMALL[0].to_owned()])
                || left.len() == 3
                || left.len() == 2
        );
        let is_gone = !left.iter().any(|id| id.starts_with(OLD));
        gone += u32::from(is_gone);
        assert_eq!(left.len(), if is_gone { 2 } else { 3 });
    }
    assert!(gone < 10, "no kill came in time");
}

#[test]
fn two_processes_at_once_both_succeed() {
    let world = world();
    let archive = world.path("a");
    world.run(&["archive", OLD, archive.to_str().unwrap()]).exits(0);
    let both = |a: &[&str], b: &[&str]| [a, b].map(|arguments| world.spawn(arguments)).map(finish);
    for done in both(&["rm", "--yes", OLD], &["rm", "--yes", SMALL[0]]) {
        assert_eq!(done.code, Some(0), "{}", done.err);
    }
    assert_eq!(ids(&world), [SMALL[1]]);
    let import = ["import", archive.to_str().unwrap()];
    let done = both(&import, &import);
    assert!(done.iter().all(|done| done.code == Some(0)), "{}{}", done[0].err, done[1].err);
    assert_eq!(ids(&world).len(), 2, "it is there once");
    let file = world.path("b");
    let archive = ["archive", SMALL[1], file.to_str().unwrap()];
    let codes = both(&archive, &archive).map(|done| done.code);
    assert!(codes.contains(&Some(0)), "{codes:?}");
    assert_sound(&world, Some(file.to_str().unwrap()));
    assert_sound(&world, None);
}

#[test]
fn an_archive_that_does_not_fit_leaves_nothing() {
    needs!(is_root, "only root mounts filesystems");
    let world = world();
    let disk = world.path("disk");
    let program = env!("CARGO_BIN_EXE_pgdyno");
    let within = |mount: &str, script: &str| {
        let script =
            format!("{RELEASE_MOUNTS}mount -t tmpfs {mount} none {} && {script}", disk.display());
        let command = world.command(&["--version"]);
        let mut shell = Command::new("unshare");
        shell.args(["-m", "sh", "-c", &script]);
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        ended(shell.output().unwrap())
    };
    let file = disk.join("a").display().to_string();
    let full = within(
        "-o size=200k",
        &format!("{program} archive {OLD} {file}; echo $?; ls -A {}", disk.display()),
    );
    full.says("full").says("help: make room");
    assert_eq!(full.out, "1\n");
    let read_only = within("-o ro", &format!("{program} archive {OLD} {file}"));
    assert_refused(&read_only, &["Read-only"]);
    // A store on a filesystem that is only read.
    let store = world.store().display().to_string();
    let copy = format!("cp {store} {0}/s && mount -o remount,ro {0}", disk.display());
    let run = format!("{copy} && {program} rm --yes {OLD} --store {}/s", disk.display());
    assert_refused(&within("-o size=50m", &run), &[]);
    let run = format!("{copy} && {program} store size --store {}/s", disk.display());
    assert_eq!(within("-o size=50m", &run).code, Some(0));
}

#[test]
fn thinning_keeps_figures_and_says_what_it_took() {
    let world = world();
    let id = ids(&world).into_iter().find(|id| id.starts_with(OLD)).unwrap();
    let before = world.show(&id);
    assert_eq!(before["thinned"], Value::Array(Vec::new()));
    let unasked = world.run(&["store", "thin", &id]);
    assert_refused(&unasked, &["--yes"]);
    unasked.prints("lost: ").prints("kept: ");
    assert_eq!(world.show(&id), before);
    // By date, only what began before it: this run on the 23rd, the others on the 21st.
    let others = world.run(&["store", "thin", "--yes", "--before", "2026-11-23"]).exits(0);
    others.prints(SMALL[0]);
    assert!(!others.out.contains(OLD), "{}", others.out);
    let thinned =
        world.run(&["store", "thin", "--yes", "--json", "--before", "2026-11-24"]).exits(0).json();
    assert_eq!(thinned[0]["run"], id.as_str(), "{thinned}");
    assert!(thinned[0]["samples"].as_u64().unwrap() > 0, "{thinned}");

    let after = world.show(&id);
    assert_eq!(after["thinned"][0]["samples"], thinned[0]["samples"]);
    let notes = |view: &Value| view["notes"].as_array().unwrap().clone();
    let new: Vec<Value> =
        notes(&after).into_iter().filter(|note| !notes(&before).contains(note)).collect();
    assert!(new.len() == 1 && new[0].as_str().unwrap().starts_with("Thinned on "), "{new:?}");
    assert_alike_but_for_thinning(before, after);
    assert_sound(&world, None);
    let page = world.page(&[&id]);
    assert!(page["view"]["thinned"][0]["thinned_at"].is_string());
    let exported = world.run(&["export", &id, "--format", "json"]).json();
    assert_eq!(exported["trials"][0]["telemetry_every_s"], 60);
    assert!(exported["trials"][0]["thinned_at"].is_string());
    world.run(&["store", "thin", "--yes", &id]).exits(0).prints("nothing to thin");
    world
        .run(&["store", "thin", "--yes", "--before", "2020-01-01"])
        .exits(0)
        .prints("nothing was removed");
    world.run(&["store", "thin", "--yes", "--before", "yesterday"]).exits(1).says("2026-01-31");
}

#[test]
fn sizes_add_up_to_the_file_and_name_the_largest() {
    let world = world();
    let size = world.run(&["store", "size", "--json"]).json();
    assert_eq!(size["schema"], "pgdyno.store-size/1");
    let file = fs::metadata(world.store()).unwrap().len();
    let sum: u64 = elements(&size["contents"]).map(|c| c["bytes"].as_u64().unwrap()).sum();
    assert_eq!((size["bytes"].as_u64(), sum), (Some(file), file));
    assert!(size["records"][0]["id"].as_str().unwrap().starts_with(OLD), "{size}");
    let thinnable = size["records"][0]["thinnable_bytes"].as_u64().unwrap();
    assert!(thinnable > 0 && thinnable < size["records"][0]["bytes"].as_u64().unwrap());
    world.run(&["store", "size"]).prints("telemetry").prints("largest");
}

#[test]
fn a_signal_ends_a_change_and_leaves_the_store_whole() {
    let world = world();
    let child = world.spawn(&["rm", "--yes", OLD]);
    signal(child.id().cast_signed(), "INT");
    let done = finish(child);
    assert!(matches!(done.code, Some(0 | 130)) || done.code.is_none(), "{:?}", done.code);
    assert_sound(&world, None);
}
