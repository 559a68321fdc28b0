//! `pgdyno crash --exhaustive --resume`: judging goes on where a session was killed.

use pgdyno_test_support::needs;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use crate::support::{Ended, World, elements, emulates_disks, finish, lying_server, signal};
use serde_json::Value;

/// Damage to the bytes of a file.
type Change = fn(&mut Vec<u8>);

/// Returns the arguments of `crash --exhaustive=flushes`: a short load in `world`, and `options`.
fn arguments(world: &World, options: &str) -> Vec<String> {
    let disk = world.disk();
    let words = "crash --exhaustive=flushes --json --clients 2 --storage";
    let words = words.split(' ').chain([disk.to_str().unwrap()]).chain(options.split(' '));
    words.map(str::to_owned).collect()
}

/// Returns the folders of kept stretches in `world`.
fn stretches(world: &World) -> Vec<PathBuf> {
    let sessions = fs::read_dir(world.path("data/pgdyno/crashes")).into_iter().flatten().flatten();
    sessions.map(|session| session.path().join("stretch")).filter(|path| path.exists()).collect()
}

/// Returns the only kept stretch in `world`, and the name of its session.
fn stretch(world: &World) -> (PathBuf, String) {
    let [folder] = stretches(world).try_into().unwrap();
    let session = folder.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    (folder, session)
}

/// Returns the states whose verdicts are kept in `folder`, in order.
fn verdicts(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("verdicts")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| !line["state"].is_null()).map(|line| line["state"].clone()).collect()
}

/// Waits until `child` has judged `enough` states. It must not end before.
fn until_judged(world: &World, child: &mut Child, enough: impl Fn(&[Value]) -> bool) {
    let mut until = |what, enough: &dyn Fn(&[Value]) -> bool| {
        world.until(what, || {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it was to");
            stretches(world).first().is_some_and(|folder| enough(&verdicts(folder)))
        });
    };
    until("a stretch to be recorded", &|_| true);
    until("states to be judged", &enough);
}

/// Starts a session, and kills it once it has judged `enough` states.
fn killed(world: &World, options: &str, enough: impl Fn(&[Value]) -> bool) {
    let mut child = world.spawn(&arguments(world, options));
    until_judged(world, &mut child, enough);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Runs `crash --resume` with `options`. Returns its end and its JSON.
fn resumed(world: &World, options: &[&str]) -> (Ended, Value) {
    let ended = world.run(&[&["crash", "--json", "--resume"], options].concat());
    let shown = ended.json();
    world.assert_gone();
    (ended, shown)
}

/// Returns the states of the document, without the times that judging them took.
fn without_times(shown: &Value) -> Value {
    let mut states = shown["states"].clone();
    for time in ["state_ms", "phases", "judging_ms"] {
        assert!(!states[time].is_null(), "{time}: {states}");
        states[time] = Value::Null;
    }
    let words = states["words"].as_array_mut().unwrap();
    words.retain(|line| !line.as_str().unwrap().starts_with("a state took"));
    states
}

/// Asserts that a session is refused with status 1 and the message `found`.
#[track_caller]
fn refused(world: &World, options: &[&str], found: &str) {
    world.run(&[&["crash", "--resume"], options].concat()).exits(1).says(found).says("help: ");
}

#[test]
#[ignore = "long: two sessions that judge many states"]
fn a_killed_session_is_judged_to_the_end_as_if_nobody_had_killed_it() {
    needs!(emulates_disks);
    let world = World::new();
    killed(&world, "--filesystem ext4 --load 60ms --jobs 2", |judged| judged.len() >= 2);
    let (folder, session) = stretch(&world);
    let saved = world.path("saved");
    let copied =
        Command::new("cp").args(["-a", "--sparse=always"]).args([&folder, &saved]).status();
    assert!(copied.unwrap().success());
    // Killed once more, as a server recovers on a clone of the disk.
    let mut again = world.spawn(&["crash", "--resume"]);
    let before = verdicts(&folder).len();
    until_judged(&world, &mut again, |judged| judged.len() > before);
    world.until("a server to recover", || !world.servers().is_empty());
    again.kill().unwrap();
    again.wait().unwrap();
    // A line that the killed process did not write to its end.
    let mut lines = fs::read(folder.join("verdicts")).unwrap();
    lines.extend(b"{\"state\":{\"kind\"");
    fs::write(folder.join("verdicts"), lines).unwrap();
    let (ended, shown) = resumed(&world, &[]);
    assert_eq!((shown["verdict"].as_str(), ended.code), (Some("pass"), Some(0)), "{shown}");
    ended.says(format!("going on with the load that {session} recorded"));
    let (boundaries, stretch) = (&shown["states"]["boundaries"], &shown["states"]["stretch"]);
    assert_eq!(boundaries["judged"], boundaries["total"]);
    assert_eq!(boundaries["total"].as_u64(), stretch["flushes"].as_u64().map(|n| n + 1));
    assert!(shown["complete"] == true && shown["controls"][0]["seen"] == true, "{shown}");
    assert!(stretches(&world).is_empty(), "nobody needs it any more");
    // The same stretch, judged by one process.
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    fs::rename(&saved, &folder).unwrap();
    fs::write(folder.join("verdicts"), "").unwrap();
    let (_, whole) = resumed(&world, &[&session, "--jobs", "1"]);
    assert_eq!(without_times(&shown), without_times(&whole));
    assert_eq!(shown["controls"][0]["verdict"], whole["controls"][0]["verdict"]);
}

#[test]
#[ignore = "long: many states of a disk"]
fn failures_that_were_found_before_the_kill_count() {
    needs!(emulates_disks);
    let world = World::new();
    let programs = lying_server::unflushing(&world, "/pg_wal/", 2);
    let bindir = programs.display();
    let options = format!("--filesystem xfs --load 200ms --set postgres.bindir={bindir}");
    let has_failed = |line: &&Value| line["verdict"].as_str().unwrap().starts_with("FAIL");
    killed(&world, &options, |judged| judged.iter().any(|line| has_failed(&line)));
    let earlier = verdicts(&stretch(&world).0);
    let failed: Vec<&Value> = earlier.iter().filter(has_failed).collect();
    let (ended, shown) = resumed(&world, &["--exhaustive=flushes"]);
    assert_eq!(ended.code, Some(4), "{shown}");
    let states = &shown["states"];
    assert!(states["failed"].as_u64() >= Some(failed.len() as u64), "{states}");
    assert!(states["boundaries"]["judged"].as_u64() > Some(earlier.len() as u64), "{states}");
    let first = &states["failures"][0];
    assert_eq!(
        (&first["newest"], &first["reason"]),
        (&failed[0]["state"]["newest"], &failed[0]["reason"])
    );
    assert!(!states["cause"].is_null(), "{states}");
    let kept = Path::new(states["kept"].as_str().unwrap());
    let log = kept.join("disk-log");
    let image = world.path("state.img");
    let newest = &first["newest"];
    let (log, image) = (log.display(), image.display());
    world.run_line(&format!("disk-log {log} --newest {newest} --image {image}")).exits(0);
    assert!(stretches(&world).is_empty());
}

#[test]
fn an_interrupted_session_says_how_to_go_on_and_each_obstacle_is_named() {
    needs!(emulates_disks);
    let world = World::new();
    refused(&world, &[], "nothing to resume");
    let interrupt = |mut child: Child, count| {
        until_judged(&world, &mut child, |judged| judged.len() >= count);
        signal(child.id(), "INT");
        let ended = finish(child).exits(130);
        world.assert_nothing_left();
        ended
    };
    let first = interrupt(world.spawn(&arguments(&world, "--filesystem btrfs --load 300ms")), 2);
    let (folder, session) = stretch(&world);
    first.says(format!("pgdyno crash --resume {session}"));
    let shown = first.json();
    assert_eq!((&shown["complete"], shown["verdict"].as_str()), (&false.into(), Some("partial")));
    world.run(&["clean"]).prints("did not judge to the end");
    assert!(folder.join("record.json").exists(), "no sweep removes it");

    let mut second = world.spawn(&["crash", "--resume", &session]);
    let before = verdicts(&folder).len();
    until_judged(&world, &mut second, |judged| judged.len() > before);
    refused(&world, &[], "another pgdyno judges its states now");
    world.run(&["clean", "--crashes"]).exits(1).prints("another pgdyno judges its states now");
    interrupt(second, before + 2);

    let other = "crash-20260101-000000-abcd";
    refused(&world, &[other], other);
    refused(&world, &["--exhaustive"], "--exhaustive=flushes");
    world
        .run(&["crash", "--resume", &session, "--load", "1s"])
        .exits(1)
        .says("cannot be used with");
    let changes: [(&str, Change, &str); 6] = [
        (
            "record.json",
            |text| replace(text, "\"pgdyno-stretch\":2", "\"pgdyno-stretch\":9"),
            "version 9",
        ),
        (
            "record.json",
            |text| replace(text, "\"server_version\":\"", "\"server_version\":\"0."),
            "PostgreSQL 0.",
        ),
        ("record.json", |text| text.truncate(text.len() / 2), "record.json is damaged"),
        ("writes", |log| log.truncate(log.len() / 2), "is damaged"),
        ("writes", |log| *log.last_mut().unwrap() ^= 1, "damaged"),
        ("verdicts", |lines| lines.splice(0..0, *b"x\n").for_each(drop), "verdicts is damaged"),
    ];
    for (name, change, found) in changes {
        let path = folder.join(name);
        let whole = fs::read(&path).unwrap();
        let mut changed = whole.clone();
        change(&mut changed);
        assert_ne!(whole, changed);
        fs::write(&path, changed).unwrap();
        refused(&world, &[&session], found);
        fs::write(&path, whole).unwrap();
    }
    for name in ["writes", "image", "ledger"] {
        let path = folder.join(name);
        fs::rename(&path, world.path("aside")).unwrap();
        refused(&world, &[&session], path.to_str().unwrap());
        fs::rename(world.path("aside"), &path).unwrap();
    }
    world.assert_nothing_left();
    let cleaned = world.run(&["clean", "--crashes"]);
    cleaned.prints(format!("removed: {session}"));
    assert_eq!((cleaned.code, folder.exists()), (Some(0), false));
    refused(&world, &[&session], "nothing to resume");
}

/// Replaces the first `from` in `text`.
fn replace(text: &mut Vec<u8>, from: &str, to: &str) {
    *text = String::from_utf8(text.clone()).unwrap().replacen(from, to, 1).into_bytes();
}

#[test]
#[ignore = "long: many states of a disk"]
fn a_session_whose_budget_ended_before_the_flushes_did_goes_on_with_more() {
    needs!(emulates_disks);
    let world = World::new();
    let first =
        world.run(&arguments(&world, "--filesystem ext4 --load 30ms --budget 1ms")).exits(5);
    let (_, session) = stretch(&world);
    first.says(format!("pgdyno crash --resume {session}"));
    refused(&world, &[], "its budget of 1ms is spent");
    let (ended, shown) = resumed(&world, &["--budget", "10m"]);
    assert_eq!((shown["verdict"].as_str(), ended.code), (Some("pass"), Some(0)), "{shown}");
    assert!(stretches(&world).is_empty());
}

#[test]
#[ignore = "long: a run with many states of a disk"]
fn a_run_that_was_killed_goes_on_with_the_states_of_its_treatment() {
    needs!(emulates_disks);
    let world = World::new();
    let text = format!(
        "[experiment]\nrepeats = 1\n[answer]\nkind = \"safety\"\n\
         [factors]\nsynchronous_commit = [\"on\", \"local\"]\n\
         [load]\nrate = 200\nduration = \"1s\"\nwarm_up = \"200ms\"\n[telemetry]\nfsync = \"0s\"\n\
         [storage.disk]\nfilesystem = \"ext4\"\n\
         backing = {{ emulated = {{ size = \"1300MiB\", directory = \"{}\" }} }}\n\
         [crash]\nfaults = [\"power\"]\nstates = \"flushes\"\nclients = 2\nload = \"30ms\"\n",
        world.disk().display()
    );
    let file = world.file("experiment.toml", &text);
    let mut child = world.spawn(&["run", file.to_str().unwrap()]);
    world.until("the trials to be over", || world.trials_stored() >= 2);
    until_judged(&world, &mut child, |judged| judged.len() >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let (_, session) = stretch(&world);
    refused(&world, &[&session], "belongs to run");
    refused(&world, &[], "nothing to resume");
    world
        .run(&["run", "--resume", "latest"])
        .exits(0)
        .says(format!("going on with the load that {session} recorded"));
    let shown = world.show("latest");
    let verdicts = elements(&shown["treatments"]);
    let verdicts: Vec<&Value> = verdicts.map(|treatment| &treatment["crash"]["verdict"]).collect();
    assert_eq!(verdicts, ["pass", "pass"]);
    assert!(stretches(&world).is_empty());
    world.assert_gone();
}

#[test]
#[ignore = "long: six sessions that are killed"]
fn a_kill_at_every_step_leaves_nothing() {
    needs!(emulates_disks);
    // What is told as a step begins, and how often until then. The second disk judges beside the
    // first.
    let steps = [
        ("making storage and cluster", 1),
        ("making storage disk", 1),
        (": load", 1),
        ("making storage disk", 2),
        ("judged", 1),
        ("judged", 4),
    ];
    let moments = [Duration::ZERO, Duration::from_millis(300)].into_iter().cycle();
    for ((words, times), into) in steps.into_iter().zip(moments) {
        let world = World::new();
        let mut child = world.spawn(&arguments(&world, "--filesystem ext4 --load 200ms --jobs 2"));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let told = lines.by_ref().map_while(Result::ok).filter(|line| line.contains(words));
        assert_eq!(told.take(times).count(), times, "{words}: it ended before it was to");
        std::thread::sleep(into);
        child.kill().unwrap();
        child.wait().unwrap();
        world.run(&["clean"]).with_case(words).exits(0);
        world.assert_gone();
        let removed = world.run(&["clean", "--crashes"]);
        assert_eq!((removed.code, stretches(&world).len()), (Some(0), 0), "{}", removed.out);
    }
}
