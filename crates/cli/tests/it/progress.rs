//! Progress of a command: the view on a terminal, lines and JSON elsewhere, and a run of another
//! process.

use std::process::{Command, Stdio};

use crate::support::terminal::Terminal;
use crate::support::{self, World, finish, quick, signal};
use pgdyno_model::live::LiveRun;
use pgdyno_report::live::{LiveRecord, LiveState, LiveTrialState};

/// Returns the command of a run with four trials a repeat, each long enough to be looked at.
fn short_run(world: &World, repeats: &str) -> Command {
    let repeats = format!("experiment.repeats={repeats}");
    world.command(&quick(world, "quickstart", &[&repeats, "load.duration=3s", "load.warm_up=1s"]))
}

/// Returns the command that measures the fsync rate of the world's disk: work with progress and
/// without PostgreSQL.
fn fsync(world: &World, options: &[&str]) -> Command {
    let disk = world.disk();
    let target = ["fsync", disk.to_str().unwrap(), "--duration", "1ms"];
    world.command(&[&target, options].concat())
}

fn has_row(rows: &[String], label: &str, text: &str) -> bool {
    rows.iter().any(|row| row.starts_with(label) && row.contains(text))
}

/// The rows of the view: its title stands above the plan, unless the screen moved it out.
fn view(rows: &[String]) -> &[String] {
    let plan = rows.iter().position(|row| row.starts_with("plan")).unwrap();
    &rows[plan.saturating_sub(1)..]
}

/// Keeps a capture for docs/terminal.md where PGDYNO_KEEP_CAPTURES names a folder.
fn keep(name: &str, rows: &[String]) {
    if let Some(folder) = std::env::var_os("PGDYNO_KEEP_CAPTURES") {
        let file = std::path::Path::new(&folder).join(format!("{name}.txt"));
        // Lines before name the folder of the test.
        let first = rows.iter().position(|row| row.starts_with("trial")).unwrap();
        std::fs::write(file, rows[first..].join("\n") + "\n").unwrap();
    }
}

/// Watches a short run on a terminal of `columns` columns from its beginning to its end.
fn watch_a_run(columns: u16, no_color: &str) -> String {
    let world = World::new();
    let mut command = short_run(&world, "1");
    command.env("TERM", "xterm-256color").env("NO_COLOR", no_color);
    let mut terminal = Terminal::start(command, (columns, 40), None);
    let rows = terminal.await_rows("second trial under load", |rows| {
        has_row(rows, "trial 2/4", "repeat 1")
            && has_row(rows, "plan", "1 done, 3 left")
            && has_row(rows, "now", "measuring, 2 of 3 s; about ")
            && has_row(rows, "latency", "p99")
    });
    keep(&format!("run-{columns}"), &rows);
    assert!(view(&rows).iter().all(|row| row.chars().count() < columns.into()), "{rows:#?}");
    assert!(has_row(&rows, "plan", "■▸··"), "{rows:#?}");
    assert!(has_row(&rows, "tps", "│"), "{rows:#?}");
    assert!(has_row(&rows, "latency", "█"), "{rows:#?}");
    assert!(has_row(&rows, "waits", ""), "{rows:#?}");
    assert!(has_row(&rows, "lag", " ms"), "{rows:#?}");
    // The first trial's result stands above the view.
    let result = rows.iter().position(|row| row.starts_with("trial 1/4") && row.contains("p99"));
    let plan = rows.iter().position(|row| row.starts_with("plan"));
    assert!(result.is_some() && result < plan, "{rows:#?}");

    let (ended, rows) = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    for label in ["plan", "now", "tps ", "latency", "waits", "lag"] {
        assert!(!rows.iter().any(|row| row.starts_with(label)), "{label} stays: {rows:#?}");
    }
    assert!(has_row(&rows, "report: ", ".html"), "{rows:#?}");
    world.assert_nothing_left();
    ended.err
}

#[test]
fn a_run_on_80_columns_is_drawn_in_place_with_colours() {
    assert!(watch_a_run(80, "").contains("\x1b[32m"));
}

#[test]
#[ignore = "long: a run that is watched"]
fn a_run_on_200_columns_has_no_colours_where_nobody_wants_them() {
    let written = watch_a_run(200, "1");
    let sequences: Vec<&str> = written.split("\x1b[").skip(1).collect();
    assert!(!sequences.is_empty());
    for sequence in sequences {
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        assert_ne!(&sequence[end..=end], "m", "{sequence:?}");
    }
}

#[test]
fn a_view_follows_the_width_of_its_terminal_and_a_signal_takes_it_away() {
    let world = World::new();
    let mut command = short_run(&world, "2");
    command.env("TERM", "xterm-256color");
    let mut terminal = Terminal::start(command, (100, 30), None);
    let under_load = |rows: &[String]| has_row(rows, "now", "measuring, ");
    terminal.await_rows("load at 100 columns", under_load);
    terminal.resize((40, 30));
    terminal.await_rows("load at 40 columns", |rows| {
        under_load(rows)
            && rows.iter().filter(|row| row.starts_with("plan")).count() == 1
            && view(rows).iter().all(|row| row.chars().count() < 40)
    });
    terminal.resize((120, 30));
    terminal.await_rows("load at 120 columns", |rows| {
        under_load(rows) && rows.iter().filter(|row| row.starts_with("plan")).count() == 1
    });
    signal(i32::try_from(terminal.child.id()).unwrap(), "INT");
    let (ended, rows) = terminal.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert!(!rows.iter().any(|row| row.starts_with("plan") || row.starts_with("now")), "{rows:#?}");
    assert!(has_row(&rows, "interrupted", "--resume"), "{rows:#?}");
    world.assert_nothing_left();
}

#[test]
fn a_terminal_that_moves_no_cursor_and_a_pipe_get_lines_without_escapes() {
    let world = World::new();
    let on_terminal = |mut command: Command, term: &str| {
        command.env("TERM", term).env("CLICOLOR_FORCE", "1");
        Terminal::start(command, (80, 24), Some(Stdio::piped())).end().0
    };
    let dumb = on_terminal(fsync(&world, &[]), "dumb");
    let plain = on_terminal(fsync(&world, &["--progress", "plain"]), "xterm");
    let mut piped = fsync(&world, &[]);
    let piped = support::ended(piped.env("CLICOLOR_FORCE", "1").output().unwrap());
    for ended in [dumb, plain, piped] {
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        ended.says("fsync probe of");
        assert!(!ended.err.contains('\x1b') && !ended.out.contains('\x1b'), "{}", ended.err);
    }
    for silent in [&["--progress", "none"] as &[&str], &["--quiet"]] {
        assert_eq!(on_terminal(fsync(&world, silent), "xterm").err, "", "{silent:?}");
    }
    on_terminal(fsync(&world, &[]), "xterm").says("\x1b[");
}

#[test]
fn the_help_has_colours_by_the_same_rules() {
    let world = World::new();
    let help = |name: &str, value: &str| {
        let mut command = world.command(&["show", "--help"]);
        for other in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(other);
        }
        support::ended(command.env(name, value).output().unwrap()).out.contains('\x1b')
    };
    assert!(!help("CLICOLOR", "1"), "a pipe gets no colours");
    assert!(help("CLICOLOR_FORCE", "1"));
    let mut command = world.command(&["show", "--help"]);
    command.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
    assert!(!support::ended(command.output().unwrap()).out.contains('\x1b'));
    // On a terminal they are there until somebody turns them off.
    let on_terminal = |value: &str| {
        let mut command = world.command(&["show", "--help"]);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        command.env("TERM", "xterm-256color").env("CLICOLOR", value);
        let (ended, _) = Terminal::start(command, (80, 24), None).end();
        (ended.out + &ended.err).contains("\x1b[")
    };
    assert!(on_terminal("1") && !on_terminal("0"));
}

#[test]
fn json_tells_a_whole_run_one_record_a_line() {
    let world = World::new();
    let mut command = short_run(&world, "1");
    command.args(["--set", "load.duration=1s", "--progress", "json"]);
    let ended = support::ended(command.output().unwrap()).exits(0);
    let record = |line: &str| serde_json::from_str::<LiveRecord>(line);
    let records: Vec<LiveRecord> = ended
        .err
        .lines()
        .map(|line| record(line).unwrap_or_else(|e| panic!("{line}: {e}")))
        .collect();
    let has_begun = |record: &LiveRecord| match record {
        LiveRecord::Begun(run) => run.schema == LiveRun::SCHEMA,
        _ => false,
    };
    assert_eq!(records.iter().filter(|record| has_begun(record)).count(), 1);
    let mut state = LiveState::default();
    let mut seconds = 0;
    for record in records {
        seconds += u32::from(matches!(record, LiveRecord::Second(_)));
        state.add(record);
    }
    assert!(seconds >= 4, "{seconds}");
    let has_tps = |trial: &LiveTrialState| match trial {
        LiveTrialState::Done { tps, .. } => tps.is_some_and(|tps| tps > 0.0),
        _ => false,
    };
    assert!(state.trials.len() == 4 && state.trials.iter().all(has_tps), "{:#?}", state.trials);
    assert_eq!(state.ended, Some(("completed".to_owned(), None)));
}

#[test]
fn another_process_watches_a_run_leaves_it_alone_and_sees_its_end() {
    let world = World::new();
    let mut run = short_run(&world, "1")
        .args(["--set", "factors.clients=[1]"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let attach = |options: &[&str]| {
        let mut command = world.command(&[&["attach"], options].concat());
        command.env("TERM", "xterm-256color");
        command
    };
    world.until("the run to begin", || {
        support::ended(attach(&["nobody"]).output().unwrap()).code == Some(1)
            && world.path("data/pgdyno/store.sqlite3.live").exists()
    });
    let mut terminal = Terminal::start(attach(&[]), (80, 30), None);
    let rows = terminal.await_rows("load", |rows| has_row(rows, "now", "measuring, "));
    keep("attach-80", &rows);
    assert!(has_row(&rows, "run quickstart", "Ctrl-C leaves it alone"), "{rows:#?}");
    signal(i32::try_from(terminal.child.id()).unwrap(), "INT");
    let (left, rows) = terminal.end();
    assert_eq!(left.code, Some(130), "{}", left.err);
    assert!(rows.join("").contains("goes on"), "{rows:#?}");
    assert!(run.try_wait().unwrap().is_none(), "the run was ended");

    let plain = support::ended(attach(&["latest"]).output().unwrap()).exits(0);
    assert!(!plain.err.contains('\x1b') && plain.err.contains("trial 2/2"), "{}", plain.err);
    plain.prints("completed, 2 of 2 trials");
    assert!(run.wait().unwrap().success());
    // The live file stays until the next run: the end can still be seen.
    support::ended(attach(&[]).output().unwrap()).exits(0);
    world.assert_nothing_left();
}

#[test]
fn a_run_whose_process_is_killed_is_said_to_have_died() {
    let world = World::new();
    let mut run =
        short_run(&world, "1").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    world.until("a trial in the store", || world.trials_stored() > 0);
    let watcher = world.spawn(&["attach"]);
    signal(i32::try_from(run.id()).unwrap(), "KILL");
    run.wait().unwrap();
    finish(watcher).exits(1).says("did not end: its process").says("--resume");
    world.run(&["clean"]).exits(0);
    world.assert_nothing_left();
}
