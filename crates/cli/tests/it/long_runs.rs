//! A run can be watched, stopped, and left alone: without its terminal, and with a command that is
//! told of its end.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::support::live::{live_run, until_load};
use crate::support::{self, World, at_full_speed, ended, finish, quick, signal};
use pgdyno_lab::live::{self, Follower};
use pgdyno_model::record::SessionEnd;
use pgdyno_report::live::{LiveRecord, LiveState, LiveTrialState};
use pgdyno_test_support::{RELEASE_MOUNTS, is_root, needs, skip, write_program};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

const FOUR_TRIALS: [&str; 3] =
    ["factors.clients=[1, 2]", "experiment.repeats=1", "load.duration=2s"];

/// Returns the arguments of a quick run of four trials.
fn four_trials(world: &World) -> Vec<String> {
    quick(world, "quickstart", &FOUR_TRIALS)
}

/// Returns the arguments of a quick run of two trials, with `more` in them.
fn two_trials(world: &World, more: &[&str]) -> Vec<String> {
    let mut args = quick(world, "quickstart", &["factors.clients=[1]", "experiment.repeats=1"]);
    args.extend(more.iter().map(|word| (*word).to_owned()));
    args
}

fn completed_trials(world: &World) -> usize {
    let shown = world.show("latest");
    let trials = shown["trials"].as_array().unwrap();
    assert!(trials.iter().all(|trial| trial["failure"].is_null()), "{trials:?}");
    trials.len()
}

#[test]
fn a_run_is_watched_from_its_first_record_to_its_last() {
    let world = World::new();
    // Under a full load the samples meet sessions that wait.
    let more =
        ["telemetry.interval=200ms", "factors.synchronous_commit=[\"on\"]", "load.duration=1s"];
    let sets = [&["factors.clients=[4, 8]"], &FOUR_TRIALS[1..], &more].concat();
    let child = world.spawn(&at_full_speed(&world, "quickstart", &sets));
    let run = live_run(&world);
    let folder = live::folder(&world.store());
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.clone()), 0o700);
    assert_eq!(mode(folder.join(format!("{}.jsonl", run.run))), 0o600);
    assert_eq!(run.ended, None);

    let mut follower = Follower::open(&world.store(), &run.run).unwrap();
    let (mut state, mut records) = (LiveState::default(), Vec::new());
    world.until("the run to end", || {
        for record in follower.poll().unwrap().iter().map(LiveRecord::new) {
            records.push(record.clone());
            state.add(record);
        }
        state.ended.is_some()
    });
    finish(child).exits(0);
    assert!(matches!(records[0], LiveRecord::Begun(_)));
    assert_eq!(state.ended, Some(("completed".to_owned(), None)));
    assert_eq!((state.trials.len(), follower.skipped()), (2, 0));
    for trial in &state.trials {
        assert!(
            matches!(trial, LiveTrialState::Done { tps: Some(tps), .. } if *tps > 0.0),
            "{trial:?}"
        );
    }
    let seconds = records.iter().filter_map(|record| match record {
        LiveRecord::Second(second) if second.measuring => Some(second),
        _ => None,
    });
    let seconds: Vec<_> = seconds.collect();
    assert!(seconds.len() >= 2, "{}", seconds.len());
    assert!(seconds.iter().any(|second| second.event_loop_lag_us_p99.is_some()));
    assert!(seconds.iter().any(|second| !second.waits.is_empty()));
    assert!(seconds.iter().flat_map(|s| &s.waits).all(|(event, _)| event != "Client:ClientRead"));
    let last = live::find(&world.store(), "latest").unwrap();
    assert_eq!((last.is_alive, last.ended), (false, Some((SessionEnd::Completed, None))));
}

#[test]
fn stop_ends_a_run_after_the_trial_and_resume_goes_on() {
    let world = World::new();
    let child = world.spawn(&four_trials(&world));
    let run = live_run(&world);
    let mut follower = Follower::open(&world.store(), &run.run).unwrap();
    until_load(&world, &mut follower);
    world.run(&["stop", "latest"]).exits(0).prints(&run.run);
    finish(child).exits(130);
    assert_eq!(world.show("latest")["run"]["state"], "interrupted");
    let stored = completed_trials(&world);
    assert!((1..4).contains(&stored), "the trial in progress was measured to its end: {stored}");
    assert!(!live::folder(&world.store()).join(format!("{}.stop", run.run)).exists());
    world.assert_nothing_left();

    world.run(&["stop", &run.run]).exits(1).says("is gone").says("help:");
    world.run(&["run", "--resume", &run.run]).exits(0);
    assert_eq!(completed_trials(&world), 4);
}

#[test]
fn stop_now_ends_a_run_at_once() {
    let world = World::new();
    let told = world.path("told.json");
    let notify = format!("cat > '{}'", told.display());
    let sets = ["factors.clients=[1]", "load.duration=10min"];
    let mut args = quick(&world, "quickstart", &sets);
    args.extend(["--notify".to_owned(), notify]);
    let child = world.spawn(&args);
    live_run(&world);
    world.until("a server to work", || !world.servers().is_empty());
    world.run(&["stop", "latest", "--now"]).exits(0);
    finish(child).exits(130);
    let outcome = support::read_json(&told);
    let state = (&outcome["state"], &outcome["exit_status"]);
    assert_eq!(state, (&"interrupted".into(), &130.into()), "{outcome}");
    world.assert_nothing_left();
}

/// Returns the id in `run ID works without…`.
fn detached_run(out: &str) -> (String, i32) {
    let (run, rest) = out.strip_prefix("run ").unwrap().split_once(' ').unwrap();
    let (_, pid) = rest.split_once("as process ").unwrap();
    (run.to_owned(), pid.lines().next().unwrap().parse().unwrap())
}

#[test]
fn a_detached_run_goes_on_without_the_terminal_through_a_hangup() {
    let world = World::new();
    let told = world.path("told.json");
    let notify = format!("cat > '{}'", told.display());
    let started = world.run(&two_trials(&world, &["--detach", "--notify", &notify])).exits(0);
    let (run, pid) = detached_run(&started.out);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    assert_eq!((fields[3], fields[4]), (pid.to_string().as_str(), "0"), "its own session, no tty");
    signal(pid, "HUP");
    world.until_gone(pid);
    assert_eq!(world.show(&run)["run"]["state"], "completed");
    let log = live::folder(&world.store()).join(format!("{run}.log"));
    assert!(std::fs::read_to_string(log).unwrap().contains("tps"));
    let outcome = support::read_json(&told);
    assert_eq!(outcome["run"], run.as_str());
    assert_eq!((&outcome["state"], &outcome["exit_status"]), (&"completed".into(), &0.into()));
    world.assert_nothing_left();
}

#[test]
fn a_detached_run_that_cannot_begin_says_why() {
    let world = World::new();
    world.run(&["run", "no-such-recipe", "--detach"]).exits(1).says("no-such-recipe");
    let logs = std::fs::read_dir(live::folder(&world.store())).unwrap().count();
    assert_eq!(logs, 0, "no log is left of a run that is not there");
}

#[test]
fn a_detached_run_gets_a_scope_of_systemd_where_a_manager_answers() {
    needs!(is_root, "only root mounts filesystems");
    let script = format!(
        "{RELEASE_MOUNTS}mount -t tmpfs none /run && mkdir -p /run/systemd/system && exec \"$@\""
    );
    let scope = ["--scope --quiet --collect -- true", "--scope --quiet --collect -- PGDYNO run"];
    for (answer, calls) in [("exec \"$@\"", &scope[..]), ("exit 1", &scope[..1])] {
        let world = World::new();
        let (bin, told) = (world.path("bin"), world.path("told"));
        std::fs::create_dir(&bin).unwrap();
        let manager = format!(
            "#!/bin/sh\necho \"$@\" >> {}\nwhile [ \"$1\" != -- ]; do shift; done\nshift\n\
             {answer}\n",
            told.display()
        );
        write_program(&bin.join("systemd-run"), &manager);
        let args = ["run", "no-such-recipe", "--detach"];
        let mut command = world.wrapped(&["unshare", "-m", "sh", "-c", &script, "sh"], &args);
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let begun = ended(command.env("PATH", path).output().unwrap());
        assert!(begun.err.contains("no-such-recipe"), "{answer}: {}{}", begun.out, begun.err);
        let told = std::fs::read_to_string(told).unwrap();
        let told = told.replace(env!("CARGO_BIN_EXE_pgdyno"), "PGDYNO");
        assert_eq!(told.lines().count(), calls.len(), "{answer}: {told}");
        for (line, call) in told.lines().zip(calls) {
            assert!(line.starts_with(call), "{answer}: {line}");
        }
    }
}

#[test]
fn a_run_survives_the_end_of_its_terminal() {
    let world = World::new();
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal =
        || Stdio::from(std::fs::File::options().read(true).write(true).open(&name).unwrap());
    // pgdyno becomes the leader of the terminal's session, to which a hangup is sent.
    let mut session = world.wrapped(&["setsid", "--ctty"], &two_trials(&world, &[]));
    let mut child =
        session.stdin(terminal()).stdout(terminal()).stderr(terminal()).spawn().unwrap();
    drop(session);
    let live = live_run(&world);
    drop(master);
    child.wait().unwrap();
    assert_eq!(world.show(&live.run)["run"]["state"], "completed");
    assert_eq!(completed_trials(&world), 2);
    world.assert_nothing_left();
}

#[test]
fn a_killed_run_is_seen_as_dead_and_its_live_file_goes_with_the_next_start() {
    let world = World::new();
    let mut child = world.spawn(&four_trials(&world));
    let run = live_run(&world).run;
    let mut follower = Follower::open(&world.store(), &run).unwrap();
    until_load(&world, &mut follower);
    child.kill().unwrap();
    child.wait().unwrap();
    follower.poll().unwrap();
    assert!(!follower.is_alive());
    let dead = live::find(&world.store(), &run).unwrap();
    assert_eq!((dead.is_alive, dead.ended), (false, None));
    world.run(&["stop", &run]).exits(1);
    world.run(&two_trials(&world, &[])).exits(0);
    let left = live::runs(&world.store()).unwrap();
    assert!(left.len() == 1 && left[0].run != run, "{left:?}");
    world.assert_nothing_left();
}

#[test]
fn a_command_that_is_told_and_fails_costs_a_warning_only() {
    let world = World::new();
    let run = world.run(&two_trials(&world, &["--notify", "exit 3"])).exits(0);
    run.says("--notify exit 3");
    // A run that cannot begin is told of too.
    let told = world.path("told.json");
    let notify = format!("cat > '{}'", told.display());
    world.run(&["run", "no-such-recipe", "--notify", &notify]).exits(1);
    let outcome = support::read_json(&told);
    assert_eq!(outcome["schema"], "pgdyno.outcome/1");
    assert_eq!((&outcome["state"], &outcome["run"]), (&"failed".into(), &serde_json::Value::Null));
    assert!(outcome["error"].as_str().unwrap().contains("no-such-recipe"), "{outcome}");
}

/// Waits for the line of standard error that says where metrics are.
fn metrics_port(child: &mut Child) -> u16 {
    let mut stderr = child.stderr.take().unwrap();
    let (mut text, mut piece) = (String::new(), [0; 256]);
    let port = loop {
        let read = stderr.read(&mut piece).unwrap();
        assert!(read > 0, "{text}");
        text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        if let Some((_, rest)) = text.split_once("http://127.0.0.1:")
            && let Some((port, _)) = rest.split_once("/metrics")
        {
            break port.parse().unwrap();
        }
    };
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    port
}

/// Has Prometheus' own parser read `text`, where Python has it.
fn read_by_prometheus(text: &str) {
    let script = "import sys\n\
        try: from prometheus_client.openmetrics.parser import \
        text_string_to_metric_families as read\n\
        except ImportError: sys.exit(77)\n\
        print(' '.join(family.name for family in read(sys.stdin.read())))";
    let mut python = Command::new("python3");
    python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut python) = python.spawn() else {
        return skip("read_by_prometheus", "there is no python3");
    };
    python.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let read = finish(python);
    if read.code == Some(77) {
        return skip("read_by_prometheus", "Python has no prometheus_client");
    }
    assert_eq!(read.code, Some(0), "{}\n{text}", read.err);
    read.prints("pgdyno_latency_seconds").prints("pgdyno_tps");
}

#[test]
fn metrics_are_scraped_while_slow_clients_wait() {
    let world = World::new();
    let mut child = world.spawn(&two_trials(&world, &["--metrics", "0"]));
    let port = metrics_port(&mut child);
    // They say nothing, for as long as the run takes.
    let slow: Vec<TcpStream> =
        (0..4).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    let ask = |request| support::ask(port, request).unwrap();
    let scrape = || ask("GET /metrics");
    let mut answer = String::new();
    world.until("seconds of load", || {
        answer = scrape();
        answer.contains("pgdyno_tps{")
    });
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\ncontent-type: application/openmetrics-text"));
    assert!(answer.ends_with("# EOF\n") && answer.contains("pgdyno_trials{"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    read_by_prometheus(body);
    assert!(ask("GET /").starts_with("HTTP/1.1 404"));
    assert!(ask("POST /metrics").starts_with("HTTP/1.1 405"));
    let long = format!("GET /{}", "x".repeat(40_000));
    let refused = support::ask(port, &long).unwrap();
    assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 4"), "{refused}");
    world
        .run(&["run", "quickstart", "--metrics", &port.to_string()])
        .exits(1)
        .says(format!("127.0.0.1:{port}"))
        .says("help:");
    drop(slow);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_live_folder_that_is_not_the_runs_own_is_left_alone_and_the_run_goes_on() {
    let world = World::new();
    let (folder, elsewhere) = (live::folder(&world.store()), world.path("elsewhere"));
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
    let run = world.run(&two_trials(&world, &[])).exits(0);
    assert_eq!(run.err.matches("cannot be watched").count(), 1, "{}", run.err);
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    world.run(&two_trials(&world, &["--detach"])).exits(1);
    assert!(std::fs::read_link(&folder).is_ok(), "the link is not ours to remove");
}
