//! `pgdyno new` by the real binary: from options, and from answers on a pseudo-terminal.

use std::process::Stdio;

use crate::support::terminal::Terminal;
use crate::support::{World, signal};
use pgdyno_experiment::draft::Preset;

/// Files and links in the working directory of `world` that commands of a test may have made.
fn written(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(world.path("")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter(|name| !["disk", "data", "state"].contains(&name.as_str())).collect();
    names.sort();
    names
}

#[test]
fn options_write_a_file_that_is_planned() {
    let world = World::new();
    let disk = world.disk();
    let rest =
        format!("--clients 2 --scale 3 --duration 2s --repeats 4 --storage {}", disk.display());
    let mut arguments = vec!["new", "mine", "--question", "Does \"more\" memory\npay?"];
    arguments.extend(["--factor", "work_mem=4MB,64MB"]);
    arguments.extend(["--factor", "auto_explain.log_format=['text', 'json']"]);
    arguments.extend(rest.split(' '));
    world.run(&arguments).exits(0).prints("pgdyno run mine.toml --dry-run");
    assert_eq!(written(&world), ["mine.toml"]);
    world
        .run(&["run", "mine.toml", "--dry-run"])
        .exits(0)
        .prints("4 treatments x 4 repeats = 16 trials")
        .prints(disk.to_str().unwrap());
}

#[test]
fn a_schema_in_the_folder_is_named_in_the_first_line() {
    let world = World::new();
    let schema = world.run(&["schema"]);
    assert_eq!((schema.code, schema.out.as_str()), (Some(0), pgdyno_experiment::file::SCHEMA));
    let first = |name: &str| {
        world.run(&["new", name, "--defaults"]).exits(0);
        let text = std::fs::read_to_string(world.path(&format!("{name}.toml"))).unwrap();
        text.lines().next().unwrap().to_owned()
    };
    assert!(!first("without").starts_with("#:schema"));
    world.file("experiment.schema.json", &schema.out);
    assert_eq!(first("with"), "#:schema ./experiment.schema.json");
}

#[test]
fn every_preset_is_planned_and_keeps_the_time_that_it_may_take() {
    let world = World::new();
    let disk = world.disk();
    for name in Preset::NAMES {
        let disk = disk.display();
        let line = format!("new {name} --preset {name} --storage {disk} --time 1h");
        let made = world.run_line(&line).with_case(name).exits(0);
        let planned =
            world.run(&["run", &format!("{name}.toml"), "--dry-run"]).with_case(name).exits(0);
        let time = planned.out.lines().find_map(|line| line.strip_prefix("Time: about ")).unwrap();
        let time: pgdyno_model::units::Span = time.parse().unwrap();
        assert!(time <= pgdyno_model::units::Span::from_secs(3600), "{name}: {time}");
        assert!(made.out.contains(&format!("about {time} in all")), "{name}: {}", made.out);
    }
}

/// Runs a new experiment at a rate that changes.
#[test]
fn a_new_experiment_runs_to_its_end() {
    let world = World::new();
    let disk = world.disk();
    let short = "--scale 1 --clients 2 --duration 1s --repeats 1";
    let line = format!("new --preset commit {short} --storage {}", disk.display());
    world.run_line(&line).exits(0);
    world.file("series.csv", "time,rate\n60,200\n61,50\n");
    let run = "run experiment.toml --set telemetry.fsync=0s --set load.rate=series.csv";
    world.run_line(run).exits(1).says("the stages of the rate take 2s, and the window is 1s");
    world.run_line(&format!("{run} --set load.duration=2s")).exits(0).prints("200 for 1s");
    let shown = world.show("latest");
    assert_eq!(shown["run"]["state"], "completed", "{shown}");
    for treatment in shown["treatments"].as_array().unwrap() {
        let [fast, slow] = &treatment["stages"].as_array().unwrap()[..] else {
            panic!("{treatment}")
        };
        assert_eq!((fast["due"].as_f64(), slow["due"].as_f64()), (Some(200.0), Some(50.0)));
        let done = [fast, slow].map(|stage| stage["transactions"].as_u64().unwrap());
        assert_eq!(Some(done[0] + done[1]), treatment["transactions"].as_u64(), "{treatment}");
    }
    world.assert_nothing_left();
}

#[test]
fn nothing_is_overwritten() {
    let world = World::new();
    world.file("mine.toml", "kept");
    std::os::unix::fs::symlink("nowhere", world.path("link.toml")).unwrap();
    std::fs::create_dir(world.path("folder.toml")).unwrap();
    for name in ["mine", "mine.toml", "link", "folder", "./mine.toml"] {
        let refused = world.run(&["new", name, "--defaults"]).with_case(name).exits(1);
        refused.says("help: ");
        assert_eq!(refused.out, "");
    }
    assert_eq!(std::fs::read_to_string(world.path("mine.toml")).unwrap(), "kept");
    assert_eq!(written(&world), ["folder.toml", "link.toml", "mine.toml"]);
}

#[test]
fn options_that_are_wrong_write_nothing() {
    let world = World::new();
    for (options, word) in [
        (&["--factor", "clients=0,8"][..], "1 or more"),
        (&["--factor", "clients=1,1"], "twice"),
        (&["--factor", "clients="], "at least one level"),
        (&["--factor", "clients"], "KEY=VALUES"),
        (&["--factor", "client=1,8"], "clients"),
        (&["--factor", "protocol=prepred"], "prepared"),
        (&["--factor", "work_mm=4MB,64MB"], "work_mem"),
        (&["--factor", "x]\n[load=1"], "setting"),
        (&["--preset", "commits"], "commit"),
        (&["--preset", "clients", "--factor", "clients=1,2"], "clients"),
        (&["--defaults", "--workload", "tpcb"], "tpcb-like"),
        (&["--defaults", "--workload", "./none"], "none"),
        (&["--defaults", "--storage", "none"], "no such folder"),
        (&["--defaults", "--time", "0s"], "no time"),
        (&["--defaults", "--time", "5m", "--repeats", "3"], "--repeats"),
        (&["--defaults", "--scale", "0"], "--scale"),
        (&["none/mine", "--defaults"], "none/mine.toml"),
        (&["..", "--defaults"], "no file's name"),
        // Nobody can be asked.
        (&[], "--preset"),
    ] {
        let refused = world.run(&[&["new"], options].concat());
        assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{options:?}");
        assert!(refused.err.contains(word), "{options:?}: {}", refused.err);
        assert_eq!(written(&world), Vec::<String>::new(), "{options:?}");
    }
}

/// Starts `pgdyno new` on a pseudo-terminal.
fn start(world: &World, options: &[&str]) -> Terminal {
    Terminal::start(world.command(&[&["new"], options].concat()), (80, 24), Some(Stdio::piped()))
}

#[test]
fn answers_are_checked_at_once_and_asked_again() {
    let world = World::new();
    world.file("taken.toml", "kept");
    let mut terminal = start(&world, &["--scale", "1"]);
    terminal.answer("Name of the file?", "taken\n");
    terminal.await_text("there already");
    terminal.answer("Name of the file?", "mine\n");
    terminal.answer("Number?", "7\n");
    terminal.await_text("1 to 6");
    terminal.answer("Number?", "6\n");
    terminal.answer("Which setting", "work_mem\n");
    terminal.await_text("names no setting");
    terminal.answer("Which setting", "clients=8,0\n");
    terminal.await_text("1 or more");
    terminal.answer("Which setting", "work_mm=4MB,64MB\n");
    terminal.await_text("did you mean");
    terminal.answer("Which setting", "work_mem=4MB,64MB\n");
    terminal.answer("Which existing folder", "none\n");
    terminal.await_text("no such folder");
    terminal.answer("Which existing folder", "disk\n");
    terminal.answer("How long", "soon\n");
    terminal.await_text("no length of time");
    terminal.answer("How long", "3m\n");
    terminal.end().0.exits(0).prints("pgdyno run mine.toml\n");
    world
        .run(&["run", "mine.toml", "--dry-run"])
        .prints("work_mem=64MB")
        .prints(world.disk().to_str().unwrap());
    assert_eq!(written(&world), ["mine.toml", "taken.toml"]);
}

#[test]
fn only_what_no_option_says_is_asked() {
    let world = World::new();
    let mut terminal =
        start(&world, &["mine", "--preset", "clients", "--time", "10m", "--scale", "1"]);
    terminal.answer("Which existing folder", "\n");
    terminal.end().0.exits(0);
    let silent = start(&world, &["silent", "--defaults"]).end().0;
    assert_eq!((silent.code, silent.err.as_str()), (Some(0), ""));
    assert_eq!(written(&world), ["mine.toml", "silent.toml"]);
}

#[test]
fn an_end_in_the_middle_writes_nothing() {
    let world = World::new();
    let mut terminal = start(&world, &["mine"]);
    terminal.answer("Number?", "1\n");
    // The end of input, as Ctrl-D types it.
    terminal.answer("Which existing folder", "\u{4}");
    let ended = terminal.end().0;
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{}", ended.err);

    let mut terminal = start(&world, &["mine"]);
    terminal.await_text("Number?");
    signal(i32::try_from(terminal.child.id()).unwrap(), "INT");
    let ended = terminal.end().0;
    assert_eq!((ended.code, ended.out.as_str()), (Some(130), ""), "{}", ended.err);
    assert_eq!(written(&world), Vec::<String>::new());
}
