use std::path::PathBuf;

use pgdyno_model::experiment::{Length, Order};
use pgdyno_model::level::{Key, LevelValue};
use pgdyno_model::units::Span;

use super::{FileError, Override, Source, parse};

fn source(text: &str) -> Source {
    Source { name: "try".into(), shown: "try.toml".into(), text: text.into(), base: PathBuf::from("/base") }
}

fn error(text: &str) -> String {
    shown(&parse(&source(text), &[]).expect_err("it must be refused"))
}

fn shown(error: &FileError) -> String {
    match error.help() {
        Some(help) => format!("{error}\nhelp: {help}"),
        None => error.to_string(),
    }
}

fn with(text: &str, overrides: &[&str]) -> Result<pgdyno_model::Experiment, FileError> {
    let overrides = overrides.iter().map(|o| Override::parse(o)).collect::<Result<Vec<_>, _>>()?;
    parse(&source(text), &overrides)
}

#[test]
fn an_empty_file_is_a_whole_experiment() {
    let e = parse(&source(""), &[]).unwrap();
    assert_eq!((e.name.as_str(), e.repeats.get(), e.order), ("try", 3, Order::Interleaved));
    assert_eq!(e.load.length, Length::Duration(Span::from_secs(5)));
    assert!(e.storage.contains_key("disk") && e.between.checkpoint);
}

#[test]
fn factors_keep_their_order_and_know_what_they_set() {
    let e = parse(
        &source(
            "[factors]\nsynchronous_commit = [\"on\", false]\nclients = [1, 8]\npostgres.version = [\"16\", 17]\n\
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
    insta::assert_snapshot!(error("[load]\nclients = 2\nduraton = \"5s\"\n"), @r#"
    try.toml:3:1: unknown key `duraton`
    3 | duraton = "5s"
      | ^^^^^^^
    help: nearest is `duration`; allowed here: duration, threads, protocol, warm_up, clients, transactions
    "#);
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
    insta::assert_snapshot!(error("[load]\nduration = 300\n"), @r#"
    try.toml:2:12: invalid type: integer `300`, expected a length of time in quotes, like "5s", "250ms", "2m 30s"
    2 | duration = 300
      |            ^^^
    "#);
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
    help: nearest is `clients`; a factor is one of clients, threads, protocol, scale, workload, postgres.version, storage or a PostgreSQL setting
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
    insta::assert_snapshot!(error("[factors]\nclients = [1]\nc = { few = { clients = 2 } }\n"), @"try.toml: factors `clients` and `c` both set `clients`: one would undo the other");
    insta::assert_snapshot!(error("[load\n"), @"
    try.toml:1:6: unclosed table, expected `]`
    1 | [load
      |      ^
    ");
}

#[test]
fn an_override_wins_and_is_blamed_when_it_is_wrong() {
    let file = "[load]\nduration = \"5s\"\n[factors]\nclients = [1, 8]\n";
    let e =
        with(file, &["load.duration=2s", "factors.clients=[4]", "storage.disk.directory=/mnt/new"]).unwrap();
    assert_eq!(e.load.length, Length::Duration(Span::from_secs(2)));
    assert_eq!(e.factors[0].levels.len(), 1);
    assert_eq!(e.storage["disk"].directory, Some(PathBuf::from("/mnt/new")));
    assert_eq!(with(file, &["load.transactions=10"]).unwrap().load.length, Length::Transactions(10));
    insta::assert_snapshot!(shown(&with(file, &["load.durations=2s"]).unwrap_err()), @"
    --set load.durations=2s: unknown key `durations`
    help: nearest is `duration`; allowed here: duration, transactions, clients, threads, protocol, warm_up
    ");
    insta::assert_snapshot!(shown(&with(file, &["load.duration=2x"]).unwrap_err()), @r#"--set load.duration=2x: `2x` is no length of time; write it like "5s", "250ms", "2m 30s""#);
    insta::assert_snapshot!(shown(&with(file, &["factors.clients=[0]"]).unwrap_err()), @"--set factors.clients=[0]: factor `clients`: `0` is no number of clients; it must be 1 or more");
    insta::assert_snapshot!(shown(&with(file, &["load"]).unwrap_err()), @"
    --set load: there is no `key=value` in it
    help: write it like `--set load.duration=2s` or `--set factors.clients=[1,16]`
    ");
}

#[test]
fn relative_paths_start_from_the_files_folder() {
    let e =
        with("[storage.a]\ndirectory = \"x\"\n[workload]\nscripts = [{ file = \"s.sql\" }]\n", &[]).unwrap();
    assert_eq!(e.storage["a"].directory, Some(PathBuf::from("/base/x")));
    assert_eq!(e.workload.scripts, [(PathBuf::from("/base/s.sql"), 1)]);
}
