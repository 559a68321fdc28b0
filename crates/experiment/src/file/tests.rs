use std::path::{Path, PathBuf};

use pgdyno_model::experiment::{Length, LoadOptions, OnError, Order};
use pgdyno_model::level::{Key, LevelValue};
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::units::Span;
use pgdyno_model::{Advice, Experiment};

use super::{FileError, Override, Source, key_name, parse};

pub(super) fn source(text: &str) -> Source {
    Source {
        name: "try".into(),
        shown: "try.toml".into(),
        text: text.into(),
        base: PathBuf::from("/base"),
    }
}

pub(super) fn error(text: &str) -> String {
    shown(&parse(&source(text), &[]).expect_err("it must be refused"))
}

fn shown(error: &FileError) -> String {
    match error.help() {
        Some(help) => format!("{error}\nhelp: {help}"),
        None => error.to_string(),
    }
}

pub(super) fn with(text: &str, overrides: &[&str]) -> Result<Experiment, FileError> {
    let overrides = overrides.iter().map(|o| Override::parse(o)).collect::<Result<Vec<_>, _>>()?;
    parse(&source(text), &overrides)
}

#[test]
fn an_empty_file_is_a_whole_experiment() {
    let e = parse(&source(""), &[]).unwrap();
    assert_eq!((e.name.as_str(), e.repeats.get(), e.order), ("try", 3, Order::Randomized));
    assert_eq!(e.load.length, Length::Duration(Span::from_secs(5)));
    assert!(e.storage.contains_key("disk") && e.between.checkpoint);
}

#[test]
fn waits_are_looked_for_ten_times_a_second_unless_the_file_says_otherwise() {
    let asked = |text: &str| parse(&source(text), &[]).unwrap().telemetry.wait_events;
    assert_eq!(asked(""), "100ms".parse().unwrap());
    assert_eq!(asked("[telemetry]\nwait_events = \"0s\""), Span::default());
    let refused = error("[telemetry]\nwait_events = \"5ms\"");
    assert!(refused.contains("10ms"), "{refused}");
}

#[test]
fn factors_keep_their_order_and_know_what_they_set() {
    let e = parse(
        &source(
            "[factors]\nsynchronous_commit = ['on', false]\nclients = [1, 8]\n\
             postgres.version = ['16', 17]\n\
             commit = { sync = {}, group = { commit_delay = 10, commit_siblings = 16 } }\n",
        ),
        &[],
    )
    .unwrap();
    let names: Vec<&str> = e.factors.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["synchronous_commit", "clients", "postgres.version", "commit"]);
    assert_eq!(e.factors[1].levels[1].sets, [(Key::Clients, LevelValue::Int(8))]);
    assert_eq!(e.factors[2].levels[0].sets[0].0, Key::PostgresVersion);
    assert_eq!(e.factors[3].levels[0].sets, []);
    assert_eq!(e.factors[3].levels[1].sets.len(), 2);
}

#[test]
fn an_unknown_key_is_answered_with_its_place_and_the_nearest() {
    insta::assert_snapshot!(error("[load]\nclients = 2\nduraton = \"5s\"\n"), @"
    try.toml:3:1: unknown key `duraton`
    3 | duraton = \"5s\"
      | ^^^^^^^
    help: nearest is `duration`; allowed here: duration, rate, threads, protocol, warm_up, \
    pauses, slo, define, clients, on_error, find, transactions, max_tries, reconnect, \
    latency_limit, reconnect_lost
    ");
}

#[test]
fn wrong_values_are_answered_with_their_place() {
    insta::assert_snapshot!(error("[workload]\nscale = 0\n"), @"
    try.toml:2:9: invalid value: integer `0`, expected a whole number from 1
    2 | scale = 0
      |         ^
    ");
    insta::assert_snapshot!(error("[experiment]\norder = \"interleavd\"\n"), @r#"
    try.toml:2:9: unknown value `interleavd`
    2 | order = "interleavd"
      |         ^^^^^^^^^^^^
    help: nearest is `interleaved`; allowed here: interleaved, randomized, sequential
    "#);
    insta::assert_snapshot!(error("[load]\nduration = 300\n"), @"
    try.toml:2:12: invalid type: integer `300`, expected a length of time in quotes, \
    like \"5s\", \"250ms\", \"2m 30s\"
    2 | duration = 300
      |            ^^^
    ");
    insta::assert_snapshot!(error("[load]\nduration = \"0s\"\n"), @r#"
    try.toml:2:12: `load.duration` is 0s
    2 | duration = "0s"
      |            ^^^^
    help: a trial needs at least a second: "5s", "2m"
    "#);
    insta::assert_snapshot!(error("[factors]\nclients = [1, 0]\n"), @"
    try.toml:2:15: factor `clients`: `0` is no number of clients; it must be 1 or more
    2 | clients = [1, 0]
      |               ^
    ");
    insta::assert_snapshot!(error("[factors]\nclient = [1, 2]\n"), @"
    try.toml:2:1: unknown factor `client`
    2 | client = [1, 2]
      | ^^^^^^
    help: nearest is `clients`; a factor is one of clients, threads, protocol, rate, pauses, \
    latency_limit, max_tries, on_error, reconnect, reconnect_lost, scale, workload, \
    postgres.version, postgres.bindir, postgres.dsn, storage, device.scheduler, \
    device.read_ahead_kb, device.nr_requests, device.write_cache, device.raid_cache, generators \
    or a PostgreSQL setting
    ");
    insta::assert_snapshot!(error("[factors]\npauses = [1, -1]\n"), @"
    try.toml:2:14: factor `pauses`: `-1` cannot multiply pauses; a number from 0 to 1000 can
    2 | pauses = [1, -1]
      |              ^^
    help: 1: keying and think times as the workload has them; 0: none
    ");
    insta::assert_snapshot!(error("[factors]\nprotocol = [\"prepred\"]\n"), @r#"
    try.toml:2:13: factor `protocol`: unknown protocol `prepred`
    2 | protocol = ["prepred"]
      |             ^^^^^^^^^
    help: nearest is `prepared`; allowed: simple, extended, prepared
    "#);
    insta::assert_snapshot!(error("[factors]\nfsync = []\n"), @"
    try.toml:2:9: a factor needs at least one level
    2 | fsync = []
      |         ^^
    ");
    insta::assert_snapshot!(error("[factors]\nclients = [1]\n\n[[exclude]]\nclients = 3\n"), @"
    try.toml:4:1: `[[exclude]]` names clients = 3, which is no level of it
    4 | [[exclude]]
      | ^^^^^^^^^^^
    help: its levels are 1
    ");
    let twice = "[factors]\nclients = [1]\nc = { few = { clients = 2 } }\n";
    insta::assert_snapshot!(error(twice), @"try.toml: factors `clients` and `c` both set \
                                           `clients`: one would undo the other");
    insta::assert_snapshot!(error("[load\n"), @"
    try.toml:1:6: unclosed table, expected `]`
    1 | [load
      |      ^
    ");
}

#[test]
fn a_margin_is_a_share_in_percent() {
    let margin =
        |text: &str| with(&format!("[experiment]\nmargin = \"{text}\"\n"), &[]).map(|e| e.margin);
    assert_eq!(margin("2.5%").unwrap(), Some(0.025));
    assert_eq!(with("", &[]).unwrap().margin, None);
    for wrong in ["0%", "100%", "-3%", "NaN%", "0.03", "%"] {
        assert!(margin(wrong).is_err(), "{wrong}");
    }
    insta::assert_snapshot!(error("[experiment]\nmargin = \"3\"\n"), @r#"
    try.toml:2:10: `3` is no margin
    2 | margin = "3"
      |          ^^^
    help: a percentage above 0 and below 100, such as "3%"
    "#);
}

#[test]
fn an_override_wins_and_is_blamed_when_it_is_wrong() {
    let file = "[load]\nduration = \"5s\"\n[factors]\nclients = [1, 8]\n";
    let e =
        with(file, &["load.duration=2s", "factors.clients=[4]", "storage.disk.directory=/mnt/new"])
            .unwrap();
    assert_eq!(e.load.length, Length::Duration(Span::from_secs(2)));
    assert_eq!(e.factors[0].levels.len(), 1);
    assert_eq!(e.storage["disk"].named_directory(), Some(Path::new("/mnt/new")));
    assert_eq!(
        with(file, &["load.transactions=10"]).unwrap().load.length,
        Length::Transactions(10)
    );
    insta::assert_snapshot!(shown(&with(file, &["load.durations=2s"]).unwrap_err()), @"
    --set load.durations=2s: unknown key `durations`
    help: nearest is `duration`; allowed here: duration, transactions, rate, define, clients, \
    threads, protocol, pauses, max_tries, find, warm_up, on_error, slo, reconnect, latency_limit, \
    reconnect_lost
    ");
    insta::assert_snapshot!(shown(&with(file, &["load.duration=2x"]).unwrap_err()), @"
    --set load.duration=2x: `2x` is no length of time; write it like \"5s\", \"250ms\", \
    \"2m 30s\"
    ");
    insta::assert_snapshot!(shown(&with(file, &["factors.clients=[0]"]).unwrap_err()), @"
    --set factors.clients=[0]: factor `clients`: `0` is no number of clients; it must be 1 or more
    ");
    insta::assert_snapshot!(shown(&with(file, &["load"]).unwrap_err()), @"
    --set load: there is no `key=value` in it
    help: write it like `--set load.duration=2s` or `--set factors.clients=[1,16]`
    ");
}

#[test]
fn a_load_says_what_pgbenchs_options_say() {
    let e = with(
        "[load]\nrate = 200\nlatency_limit = \"50ms\"\nmax_tries = 3\non_error = \"continue\"\n\
         reconnect = true\n\
         define = { batch = 10, share = 2.0, name = \"x y\", flag = true }\n\
         [factors]\nmax_tries = [1, 0]\n\
         slow = { none = {}, some = { rate = 0.5, latency_limit = \"2s\" } }\n",
        &["load.reconnect=false"],
    )
    .unwrap();
    let options = &e.load.options;
    assert_eq!((&options.rate, options.max_tries), (&Some(LoadRate::Constant(200.0)), 3));
    assert_eq!((options.on_error, options.reconnect), (OnError::Continue, false));
    assert_eq!(options.latency_limit, Some("50ms".parse().unwrap()));
    let defined: Vec<(&str, &str)> =
        options.define.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(defined, [("batch", "10"), ("flag", "true"), ("name", "x y"), ("share", "2.0")]);
    assert_eq!(e.factors[0].levels[1].sets, [(Key::MaxTries, LevelValue::Int(0))]);
    assert_eq!(e.factors[1].levels[1].sets.len(), 2);
    assert_eq!(with("", &[]).unwrap().load.options, LoadOptions::default());
}

#[test]
fn options_of_a_load_that_cannot_be_are_answered_with_their_place() {
    for (file, place, words) in [
        ("[load]\nrate = 0\n", "try.toml:2:8", "no rate"),
        ("[load]\nrate = \"fast\"\n", "try.toml:2:8", "`fast` is no rate"),
        ("[load]\nlatency_limit = 50\n", "try.toml:2:17", "no length of time"),
        ("[load]\nlatency_limit = \"0s\"\n", "try.toml:2:17", "would be late"),
        ("[load]\nmax_tries = -1\n", "try.toml:2:13", "a whole number from 0"),
        ("[load]\non_error = \"abort\"\n", "try.toml:2:12", "abort-client"),
        ("[load]\nreconnect = 1\n", "try.toml:2:13", "true or false"),
        ("[load]\ndefine = { a-b = 1 }\n", "try.toml:2:12", "variable's name"),
        ("[load]\ndefine = { a = [1] }\n", "try.toml:2:16", "a string, a number or a boolean"),
        ("[factors]\nrate = [100, -1]\n", "try.toml:2:14", "no rate"),
        ("[factors]\nrate = [\"5 for ever\"]\n", "try.toml:2:9", "no stage"),
        ("[load]\nrate = [[\"60s\", 5], 7]\n", "try.toml:2:8", "`7` is no stage"),
        ("[load]\nrate = [[\"1500ms\", 5]]\n", "try.toml:2:8", "whole seconds"),
        ("[load]\nrate = [[\"5 m\", 0]]\n", "try.toml:2:8", "nothing is due"),
        ("[load]\nrate = []\n", "try.toml:2:8", "nothing is due"),
        ("[load]\nrate = \"no.csv\"\n", "try.toml:2:8", "rates of /base/no.csv"),
        ("[factors]\non_error = [\"go\"]\n", "try.toml:2:13", "abort-all"),
        ("[factors]\nreconnect = [1]\n", "try.toml:2:14", "neither true nor false"),
        ("[factors]\nmax_trys = [1]\n", "try.toml:2:1", "max_tries"),
    ] {
        let found = error(file);
        assert!(found.starts_with(place) && found.contains(words), "{file}: {found}");
    }
}

#[test]
fn a_rate_may_have_stages_which_then_end_the_load() {
    let rate = |text: &str| Some(text.parse::<LoadRate>().unwrap());
    let length = |seconds| Length::Duration(Span::from_secs(seconds));
    let file = "[load]\nrate = [[\"60s\", 500], [\"30s\", 500, 2000.5]]\n";
    let load = with(file, &[]).unwrap().load;
    assert_eq!(load.options.rate, rate("500 for 60s, 500 to 2000.5 for 30s"));
    assert_eq!(load.length, length(90));
    let other = ["load.rate=[[\"2s\", 7]]", "load.duration=5s"];
    let load = with(file, &other).unwrap().load;
    assert_eq!((load.options.rate, load.length), (rate("7 for 2s"), length(5)));
    let text = ["load.rate=7 for 2s, 8 for 1s"];
    assert_eq!(with("", &text).unwrap().load.options.rate, rate("7 for 2s, 8 for 1s"));

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("day.csv"), "time,rate\n0,5\n9,50\n").unwrap();
    let text = "[load]\nrate = \"day.csv\"\n[factors]\nrate = [\"day.csv\", 5]\n";
    let source = Source { base: folder.path().into(), ..source(text) };
    let experiment = parse(&source, &[]).unwrap();
    assert_eq!(experiment.load.options.rate, rate("5 for 9s, 50 for 9s"));
    let level = &experiment.factors[0].levels[0];
    assert_eq!(level.label, LevelValue::Text("day.csv".into()));
    assert_eq!(level.sets, [(Key::Rate, LevelValue::Text("5 for 9s, 50 for 9s".into()))]);
}

#[test]
fn a_server_listens_for_generators_on_an_address_or_the_file_is_refused() {
    let listening = "[postgres]\nlisten = \"10.0.0.1\"\n[generators]\nlaunch = \"ssh:gen1\"\n";
    let e = parse(&source(listening), &[]).unwrap();
    assert_eq!(e.postgres.listen, Some([10, 0, 0, 1].into()));
    for (file, place, words) in [
        ("[postgres]\nlisten = \"gen1\"\n", "try.toml:2:10", "IP address"),
        ("[postgres]\nlisten = \"0.0.0.0\"\n", "try.toml:2:10", "name the one that they reach"),
        ("[postgres]\nlisten = \"::1\"\nconnect = \"tcp\"\n", "try.toml:2:10", "keep one"),
        ("[postgres]\nlisten = \"::1\"\ndsn = \"host=h\"\n", "try.toml:2:10", "keep one"),
        ("[generators]\nlaunch = \"ssh:gen1\"\n", "try.toml:2:10", "postgres.listen"),
        ("[postgres]\nobserve = \"ssh:db1\"\n", "try.toml:2:11", "names none"),
        ("[postgres]\nobserve = \"db1\"\ndsn = \"host=db1\"\n", "try.toml:2:11", "ssh:HOST"),
    ] {
        let found = error(file);
        assert!(found.starts_with(place) && found.contains(words), "{file}: {found}");
    }
}

#[test]
fn relative_paths_start_from_the_files_folder() {
    let e =
        with("[storage.a]\ndirectory = \"x\"\n[workload]\nscripts = [{ file = \"s.sql\" }]\n", &[])
            .unwrap();
    assert_eq!(e.storage["a"].named_directory(), Some(Path::new("/base/x")));
    assert_eq!(e.workload.scripts, [(PathBuf::from("/base/s.sql"), 1)]);
}

#[test]
fn probes_before_and_after_are_read_and_what_makes_no_sense_is_refused() {
    use pgdyno_model::experiment::{ProbeKind, ProbeStages};
    let of = |text: &str| parse(&source(text), &[]).unwrap().probe;
    assert_eq!(of(""), ProbeStages::default());
    let asked = of(
        "[probe]\nbefore = ['fsync']\nafter = ['fsync', 'disk']\nduration = '50ms'\nsize = '64MiB'",
    );
    assert_eq!(
        (asked.before, asked.after),
        (vec![ProbeKind::Fsync], vec![ProbeKind::Fsync, ProbeKind::Disk])
    );
    assert!(!asked.after_trim && of("[probe]\nafter_trim = true").after_trim);
    assert_eq!((asked.duration, asked.size.0), ("50ms".parse().unwrap(), 64 << 20));
    for (text, words) in [
        ("[probe]\nbefore = [\"fsnyc\"]", "fsync"),
        ("[probe]\nafter = [\"disk\", \"disk\"]", "twice"),
        ("[probe]\nbetween = [\"disk\"]", "between"),
        ("[probe]\nsize = \"4\"", "4GB"),
        ("[probe]\nduration = \"0s\"", "10ms"),
        ("[postgres]\ndsn = \"host=h\"\n[probe]\nafter = [\"fsync\"]", "pgdyno fsync DIR"),
        ("[postgres]\ndsn = \"host=h\"\n[probe]\nafter_trim = true", "after_trim"),
    ] {
        let refused = error(text);
        assert!(refused.contains(words) && refused.contains("try.toml:"), "{refused}");
    }
}

#[test]
fn a_run_that_ends_by_itself_is_asked_for_by_precision_or_budget() {
    let stopping = |text: &str| {
        let e = parse(&source(&format!("[experiment]\n{text}\n")), &[]).unwrap();
        (e.repeats.get(), e.stopping.map(|s| (s.floor, s.ceiling, s.precision, s.budget)))
    };
    let minutes = Some(Span::from_secs(1800));
    assert_eq!(stopping("repeats = 7"), (7, None));
    assert_eq!(stopping("precision = \"3%\""), (30, Some((4, 30, Some(0.03), None))));
    assert_eq!(stopping("budget = \"30m\"\nrepeats = 40"), (40, Some((40, 40, None, minutes))));
    assert_eq!(
        stopping("precision = \"0.5%\"\nbudget = \"30m\"\nrepeats = 2\nmax_repeats = 9"),
        (9, Some((2, 9, Some(0.005), minutes)))
    );
    let said: Vec<String> = [
        "max_repeats = 9",
        "precision = \"3\"",
        "precision = \"3%\"\norder = \"sequential\"",
        "budget = \"0s\"",
        "precision = \"3%\"\nrepeats = 1",
        "precision = \"3%\"\nrepeats = 5\nmax_repeats = 4",
    ]
    .into_iter()
    .map(|text| error(&format!("[experiment]\n{text}\n")))
    .collect();
    insta::assert_snapshot!(said.join("\n\n"));
}

#[test]
fn the_highest_rate_is_looked_for_with_an_objective() {
    let e = with(
        "[load]\nduration = \"20s\"",
        &["load.find=max_rate", "load.slo=p99 < 20ms, failed < 0.1%"],
    )
    .unwrap();
    assert_eq!(e.load.find.unwrap().to_string(), "p99 < 20ms, failed < 0.1%");
    let alone = shown(&with("", &["load.slo=p99 < 20ms", "load.clients=2"]).unwrap_err());
    assert!(
        alone.starts_with("--set load.slo=p99 < 20ms: `load.slo` is given without `load.find`"),
        "{alone}"
    );
    let said: Vec<String> = [
        "find = \"max_rate\"",
        "find = \"max\"\nslo = \"p99 < 20ms\"",
        "find = \"max_rate\"\nslo = \"p99 < 20ms, faild < 1%\"",
        "find = \"max_rate\"\nslo = \"p99 < 20\"",
        "find = \"max_rate\"\nslo = \"p99 < 20ms\"\nrate = 50",
        "find = \"max_rate\"\nslo = \"p99 < 20ms\"\ntransactions = 50",
    ]
    .into_iter()
    .map(|text| error(&format!("[load]\n{text}\n")))
    .collect();
    insta::assert_snapshot!(said.join("\n\n"));
}

#[test]
fn factors_keep_their_order_whatever_is_set() {
    let text = "[factors]\nstage.first = { clients = 1 }\nstage.second = { clients = 2 }\n\
                protocol = [\"simple\", \"prepared\"]\n\
                postgres.version = [15]\n[factors.commit]\non = { synchronous_commit = \"on\" }\n\
                off = { synchronous_commit = \"off\" }\n";
    let source =
        Source { name: "try".into(), shown: "try".into(), text: text.into(), base: "/".into() };
    let names = |overrides: &[Override]| -> Vec<String> {
        parse(&source, overrides).unwrap().factors.into_iter().map(|factor| factor.name).collect()
    };
    assert_eq!(names(&[]), ["stage", "protocol", "postgres.version", "commit"]);
    let set = |text: &str| Override::parse(text).unwrap();
    assert_eq!(names(&[set("workload.scale=2")]), names(&[]));
    assert_eq!(
        names(&[set("factors.protocol=[\"extended\"]"), set("load.duration=2s")]),
        names(&[])
    );
}

fn with_dsns(text: &str, dsns: &[&str]) -> Result<Experiment, FileError> {
    let dsns: Vec<String> = dsns.iter().map(|dsn| (*dsn).to_owned()).collect();
    let base = PathBuf::from("/lab");
    let source = Source { name: "try".into(), shown: "try.toml".into(), text: text.into(), base };
    parse(&source, &Override::servers(&dsns)?)
}

fn labels(experiment: &Experiment) -> Vec<String> {
    experiment.factors.iter().flat_map(|f| &f.levels).map(|level| level.label.to_string()).collect()
}

#[test]
fn several_dsns_are_levels_of_a_factor_called_server_and_one_is_the_experiments() {
    let one = with_dsns("", &["host=a password=x"]).unwrap();
    assert_eq!((one.postgres.dsn.is_some(), one.factors.len()), (true, 0));

    let (base, head) =
        ("postgresql://u:hunter2@a:5432/d?options=-c%20x.y:=1", "host=b port=6 password=hunter2");
    let named = [&format!("base:={base}")[..], &format!("head:={head}")];
    let experiment = with_dsns("", &named).unwrap();
    assert_eq!(
        (experiment.factors[0].name.as_str(), labels(&experiment)),
        ("server", vec!["base".into(), "head".into()])
    );
    let servers: Vec<&str> = experiment.postgres.servers.keys().map(String::as_str).collect();
    assert_eq!(servers, ["a:5432/d", "b:6"]);
    assert_eq!(experiment.postgres.servers["b:6"].reveal(), head);
    assert!(experiment.postgres.is_external() && experiment.postgres.dsn.is_none());
    assert!(!format!("{experiment:?}").contains("hunter2"));

    assert_eq!(labels(&with_dsns("", &[base, head]).unwrap()), ["a:5432/d", "b:6"]);
    for wrong in [&["host=a", "host=a"][..], &["a:=hunter2"], &["a:=host=a", "a:=host=b"]] {
        let error = with_dsns("", wrong).unwrap_err();
        assert!(error.help().is_some() && !error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn a_dsn_of_the_command_line_takes_the_place_of_the_files_without_a_password() {
    for level in ["\"postgres.dsn\" = \"host=a user=u\"", "postgres = { dsn = \"host=a user=u\" }"]
    {
        let file = format!(
            "[factors]\nserver = {{ base = {{ {level}, work_mem = \"1MB\" }}, head = {{ \
             \"postgres.dsn\" = \"host=b\" }} }}\n"
        );
        let experiment = with_dsns(&file, &["base:=host=a user=u password=p"]).unwrap();
        assert_eq!(labels(&experiment), ["base", "head"]);
        assert!(experiment.postgres.servers["a"].reveal().contains("password=p"), "{level}");
        assert!(
            experiment.factors[0].levels[0]
                .sets
                .iter()
                .any(|(key, _)| *key == Key::Setting("work_mem".into()))
        );
    }
}

#[test]
fn a_message_about_a_line_with_a_dsn_shows_no_password() {
    for text in [
        "[postgres]\ndsn = \"host=x password=hunter2\" oops\n",
        "[factors]\n'postgres.dsn' = ['host=x password=hunter2', 'host=x password=hunter2']\n",
        "[factors]\n\"postgres.dsn\" = [\"hunter2\"]\n",
        "[factors]\n'postgres.dsn' = ['host=x']\n[[exclude]]\n\
         'postgres.dsn' = 'host=y password=hunter2'\n",
        "[factors]\nserver = { a = { 'postgres.dsn' = 'host=x password=hunter2', clients = 0 } }\n",
    ] {
        let error = with_dsns(text, &[]).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn programs_that_factors_name_are_found_from_the_files_folder() {
    let text = "[factors.server]\nbase = { 'postgres.bindir' = 'base/bin' }\n\
                head = { 'postgres.bindir' = '/head/bin' }\n";
    let experiment = with_dsns(text, &[]).unwrap();
    let bindirs: Vec<String> =
        experiment.factors[0].levels.iter().map(|level| level.sets[0].1.to_string()).collect();
    assert_eq!(
        (labels(&experiment), bindirs),
        (vec!["base".into(), "head".into()], vec!["/lab/base/bin".into(), "/head/bin".into()])
    );
}

#[test]
fn groups_of_clients_are_set_below_their_names() {
    let text = "[groups.readers]\nclients = 8\nrate = [[\"10s\", 5], [\"5s\", 5, 50]]\n\
                [groups.b]\nthink_time = \"40ms\"\n\
                postgres.dsn = \"host=replica password=hunter2\"\n\
                [postgres]\ndsn = \"host=primary\"\n\
                [factors]\ngroups.b.clients = [1, 2]\n\
                mix = { a = { groups.b = { postgres.dsn = \"host=second\" } } }\n";
    let e = with(text, &["groups.readers.clients=9"]).unwrap();
    let told = |sets: &[(Key, LevelValue)]| -> Vec<String> {
        sets.iter().map(|(key, value)| format!("{} = {value}", key_name(key))).collect()
    };
    assert_eq!(
        told(&e.groups),
        [
            "groups.b.think_time = 40ms",
            "groups.b.postgres.dsn = replica",
            "groups.readers.clients = 9",
            "groups.readers.rate = 5 for 10s, 5 to 50 for 5s"
        ]
    );
    assert_eq!(told(&e.factors[0].levels[1].sets), ["groups.b.clients = 2"]);
    assert_eq!(told(&e.factors[1].levels[0].sets), ["groups.b.postgres.dsn = second"]);
    let names: Vec<&String> = e.postgres.servers.keys().collect();
    assert_eq!(names, ["replica", "second"]);
    let said: Vec<String> = [
        "[groups.a]\nclients = 0\n",
        "[groups.a]\nthink_time = \"soon\"\n",
        "[groups.a]\nrate = \"fast\"\n",
        "[groups.a]\npostgres.dsn = \"host=replica\"\n",
        "[groups.a]\npostgres.dsn = \"replica\"\n[postgres]\ndsn = \"host=primary\"\n",
        "[factors]\ngroups.a.threads = [1]\n",
        "[factors]\n\"groups.a.clients\" = [0]\n",
    ]
    .into_iter()
    .map(error)
    .collect();
    insta::assert_snapshot!(said.join("\n\n"));
}
