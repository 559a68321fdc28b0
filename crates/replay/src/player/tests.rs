use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::sim::{Answer, Sent, SimConnections, SimReactor};
use super::*;
use crate::ReadOptions;
use crate::report::ReplayEnd;

static RUN: AtomicBool = AtomicBool::new(false);
const MS: Duration = Duration::from_millis(1);
const READY: &[u8] = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

/// Returns a recording of (millisecond, session, message, detail), with a record of each session's
/// end at `end` milliseconds.
fn record(end: u64, lines: &[(u64, &str, &str, &str)]) -> Recording {
    let mut lines = lines.to_vec();
    let mut sessions: Vec<&str> = lines.iter().map(|(_, session, ..)| *session).collect();
    sessions.sort_unstable();
    sessions.dedup();
    lines.extend(sessions.iter().map(|session| (end, *session, "disconnection: ", "")));
    let (mut text, mut numbers) = (String::new(), HashMap::new());
    for (ms, session, message, detail) in lines {
        let number = numbers.entry(session).or_insert(0);
        *number += 1;
        let (message, detail) = (message.replace('"', "\\\""), detail.replace('"', "\\\""));
        text.push_str(&format!(
            "{{\"timestamp\":\"2026-11-30 22:{:02}:{:02}.{:03} UTC\",\"dbname\":\"db\",\
             \"session_id\":\"{session}\",\"line_num\":{number},\"error_severity\":\"LOG\",\
             \"message\":\"{message}\",\"detail\":\"{detail}\"}}\n",
            ms / 60_000,
            ms / 1000 % 60,
            ms % 1000
        ));
    }
    let options = ReadOptions::default();
    Recording::from_source(Path::new("sim"), text.as_bytes(), &options).unwrap()
}

/// Returns a server that answers every query after `took`.
fn answers(took: Duration) -> Answer {
    Box::new(move |sent| {
        let mut reply = Vec::new();
        for tag in sent.tags.chars() {
            match tag {
                'P' => reply.extend_from_slice(b"1\0\0\0\x04"),
                'Q' | 'S' => reply.extend_from_slice(READY),
                _ => {}
            }
        }
        Some((reply, took))
    })
}

struct Played {
    sent: Vec<Sent>,
    tally: Tally,
    end: ReplayEnd,
    elapsed: Duration,
}

fn play(recording: &Recording, options: &ReplayOptions, links: usize, answer: Answer) -> Played {
    play_on(recording, options, links, answer, &mut SimConnections::default())
}

fn play_on(
    recording: &Recording,
    options: &ReplayOptions,
    links: usize,
    answer: Answer,
    connections: &mut SimConnections,
) -> Played {
    let mut reactor = SimReactor::new(answer);
    let mut player = Player::new(recording, options, links);
    let (end, elapsed) = run(&mut player, &mut reactor, connections, &RUN, &mut |_| {}).unwrap();
    Played { sent: reactor.sent, tally: player.into_tally(), end, elapsed }
}

/// Returns when each message was sent, in milliseconds, with its type bytes.
fn times(played: &Played) -> Vec<(u128, &str)> {
    played.sent.iter().map(|sent| (sent.at.as_millis(), sent.tags.as_str())).collect()
}

fn ms(latencies: &pgdyno_model::latency::Latencies, quantile: f64) -> f64 {
    (latencies.quantile_us(quantile).unwrap() / 1e3).round()
}

fn at_speed(speed: Speed) -> ReplayOptions {
    ReplayOptions { speed, ..ReplayOptions::default() }
}

#[test]
fn statements_are_sent_when_they_are_due_and_sessions_end_when_they_ended() {
    let recording = record(
        900,
        &[
            (100, "a", "statement: SELECT 1", ""),
            (150, "b", "statement: SELECT 2", ""),
            (400, "a", "statement: SELECT 3", ""),
        ],
    );
    let played = play(&recording, &ReplayOptions::default(), 2, answers(MS));
    // Times count from the log's begin, 100 ms.
    assert_eq!(times(&played), [(0, "Q"), (50, "Q"), (300, "Q"), (800, "X"), (800, "X")]);
    assert_eq!((played.end, played.elapsed), (ReplayEnd::Completed, 800 * MS));
    let twice = play(&recording, &at_speed(Speed::Factor(2.0)), 2, answers(MS));
    assert_eq!(times(&twice), [(0, "Q"), (25, "Q"), (150, "Q"), (400, "X"), (400, "X")]);
    let most = play(&recording, &at_speed(Speed::Max), 2, answers(MS));
    assert_eq!(times(&most), [(0, "Q"), (0, "Q"), (1, "Q"), (1, "X"), (2, "X")]);
}

#[test]
fn a_one_second_stall_delays_every_statement_due_during_it() {
    let lines: Vec<_> = (0..100).map(|n| (n * 20, "a", "statement: SELECT 1", "")).collect();
    let recording = record(5_000, &lines);
    // The server stands still from 500 ms to 1,500 ms.
    let mut usual = answers(MS);
    let stalls = Box::new(move |sent: &Sent| {
        let (reply, took) = usual(sent)?;
        let is_stalled = (500..1_500).contains(&sent.at.as_millis());
        Some((reply, if is_stalled { 1_500 * MS - sent.at } else { took }))
    });
    let played = play(&recording, &ReplayOptions::default(), 1, stalls);
    let tally = &played.tally;
    assert_eq!(tally.latency.count(), 100);
    // One statement met the stall. The 49 that were due in it and the next 2 or so wait with it.
    assert_eq!(ms(&tally.service, 0.98), 1.0);
    assert_eq!(ms(&tally.latency, 1.0), 1_000.0);
    let late = tally.latency.iter().filter(|(ns, _)| *ns > 2_000_000);
    let late: u64 = late.map(|(_, count)| count).sum();
    assert!((50..=54).contains(&late), "{late}");
    assert_eq!(ms(&tally.lag, 1.0), 980.0);
}

#[test]
fn a_session_keeps_its_order_and_sends_what_is_late_at_once() {
    let recording = record(
        60,
        &[
            (0, "a", "statement: SELECT 1", ""),
            (10, "a", "statement: SELECT 2", ""),
            (20, "a", "statement: SELECT 3", ""),
        ],
    );
    let played = play(&recording, &ReplayOptions::default(), 1, answers(30 * MS));
    assert_eq!(times(&played), [(0, "Q"), (30, "Q"), (60, "Q"), (90, "X")]);
    assert_eq!(ms(&played.tally.lag, 1.0), 40.0);
    assert_eq!(ms(&played.tally.latency, 1.0), 70.0);
}

#[test]
fn named_statements_are_prepared_once_and_again_after_discard() {
    let recording = record(
        60,
        &[
            (0, "a", "execute s: SELECT $1", "parameters: $1 = 'x'"),
            (1, "a", "execute s: SELECT $1", "parameters: $1 = NULL"),
            (2, "a", "execute s: SELECT 2", ""),
            (3, "a", "statement: DISCARD ALL", ""),
            (4, "a", "execute s: SELECT 2", ""),
            (5, "a", "execute <unnamed>: SELECT 3", ""),
            (6, "a", "execute <unnamed>: SELECT 3", ""),
        ],
    );
    let played = play(&recording, &ReplayOptions::default(), 1, answers(MS / 2));
    let tags: Vec<_> = played.sent.iter().map(|sent| sent.tags.as_str()).collect();
    let expected = ["CPBES", "BES", "CPBES", "Q", "CPBES", "PBES", "PBES", "X"];
    assert_eq!(tags, expected);
    let bind = b"B\0\0\0\x12\0s\0\0\0\0\x01\0\0\0\x01x\0\0";
    assert!(played.sent[0].bytes.windows(bind.len()).any(|bytes| bytes == bind));
}

#[test]
fn a_session_that_finds_no_free_connection_waits_and_its_wait_counts() {
    let recording =
        record(10, &[(0, "a", "statement: SELECT 1", ""), (1, "b", "statement: SELECT 2", "")]);
    let played = play(&recording, &ReplayOptions::default(), 1, answers(50 * MS));
    assert_eq!(times(&played), [(0, "Q"), (50, "X"), (50, "Q"), (100, "X")]);
    assert_eq!((played.tally.peak_sessions, played.tally.sessions), (1, 2));
    assert_eq!(ms(&played.tally.lag, 1.0), 49.0);
}

#[test]
fn errors_are_compared_with_those_of_the_log() {
    let text = |ms: u64, fields: &str, number: u64| {
        format!(
            "{{\"timestamp\":\"2026-11-30 22:00:00.{ms:03} UTC\",\"dbname\":\"db\",\
             \"session_id\":\"a\",\"line_num\":{number},{fields}}}\n"
        )
    };
    let error = |sql: &str| {
        format!("\"error_severity\":\"ERROR\",\"state_code\":\"42703\",\"statement\":\"{sql}\"")
    };
    let log = |sql: &str| format!("\"error_severity\":\"LOG\",\"message\":\"statement: {sql}\"");
    let lines = [error("both"), error("other"), error("only"), log("new"), log("none")];
    let lines = (1..).zip(lines).map(|(number, fields)| text(number, &fields, number));
    let lines: String = lines.collect();
    let options = ReadOptions::default();
    let recording = Recording::from_source(Path::new("sim"), lines.as_bytes(), &options).unwrap();
    let fails = Box::new(|sent: &Sent| {
        let sql = String::from_utf8_lossy(&sent.bytes[5..]).into_owned();
        let code = match sql.trim_end_matches('\0') {
            "both" => "42703",
            "other" | "new" => "40001",
            _ => return Some((READY.to_vec(), MS)),
        };
        let fields = format!("SERROR\0C{code}\0Mno {sql}\0");
        let mut reply = vec![b'E'];
        reply.extend_from_slice(&u32::try_from(fields.len() + 4).unwrap().to_be_bytes());
        reply.extend_from_slice(fields.as_bytes());
        reply.extend_from_slice(b"Z\0\0\0\x05I");
        Some((reply, MS))
    });
    let played = play(&recording, &at_speed(Speed::Max), 1, fails);
    let counts: Vec<_> = played.tally.errors.values().collect();
    let [serialization, column] = &counts[..] else { panic!("{counts:?}") };
    assert_eq!((column.also_in_log, column.other_in_log, column.new), (1, 0, 0));
    assert_eq!((serialization.also_in_log, serialization.other_in_log), (0, 1));
    assert_eq!((serialization.new, played.tally.failed_only_in_log), (1, 1));
}

#[test]
fn a_lost_session_leaves_its_statements_and_the_others_go_on() {
    let recording = record(
        60,
        &[
            (0, "a", "statement: SELECT 1", ""),
            (1, "b", "statement: SELECT 2", ""),
            (2, "a", "statement: SELECT 3", ""),
            (3, "b", "statement: SELECT 4", ""),
        ],
    );
    let mut usual = answers(MS / 2);
    let closes = Box::new(move |sent: &Sent| {
        let is_first = String::from_utf8_lossy(&sent.bytes).contains("SELECT 1");
        if is_first { None } else { usual(sent) }
    });
    let played = play(&recording, &ReplayOptions::default(), 2, closes);
    let tally = &played.tally;
    assert_eq!((tally.latency.count(), tally.unanswered, tally.unsent), (2, 1, 1));
    assert_eq!((tally.lost_sessions, played.end), (1, ReplayEnd::Completed));
}

#[test]
fn a_session_that_cannot_be_connected_leaves_its_statements() {
    let recording =
        record(60, &[(0, "a", "statement: SELECT 1", ""), (1, "b", "statement: SELECT 2", "")]);
    let mut connections = SimConnections { limit: Some(1), ..SimConnections::default() };
    let options = ReplayOptions::default();
    let played = play_on(&recording, &options, 2, answers(MS), &mut connections);
    assert_eq!((played.tally.failed_connections, played.tally.unsent), (1, 1));
    assert_eq!(played.tally.latency.count(), 1);
}

#[test]
fn a_statement_without_a_reply_is_cancelled_and_then_given_up() {
    let recording =
        record(60, &[(0, "a", "statement: SELECT 1", ""), (1, "a", "statement: SELECT 2", "")]);
    let options =
        ReplayOptions { statement_timeout: Duration::from_secs(5), ..ReplayOptions::default() };
    let mut connections = SimConnections::default();
    let never = Box::new(|_: &Sent| Some((Vec::new(), Duration::from_secs(1_000))));
    let played = play_on(&recording, &options, 1, never, &mut connections);
    assert_eq!(*connections.cancelled.borrow(), [0]);
    assert_eq!((played.tally.unanswered, played.tally.unsent), (1, 1));
    assert_eq!((played.end, played.elapsed.as_secs()), (ReplayEnd::Completed, 15));
}

#[test]
fn a_replay_whose_time_is_over_cancels_and_counts_the_rest() {
    let recording = record(
        60_000,
        &[
            (0, "a", "statement: SELECT 1", ""),
            (50_000, "a", "statement: SELECT 2", ""),
            (55_000, "b", "statement: SELECT 3", ""),
        ],
    );
    let max_duration = Some(Duration::from_secs(3));
    let options = ReplayOptions { max_duration, ..ReplayOptions::default() };
    let mut connections = SimConnections::default();
    let never = Box::new(|_: &Sent| Some((Vec::new(), Duration::from_secs(1_000))));
    let played = play_on(&recording, &options, 2, never, &mut connections);
    assert_eq!((played.end, played.elapsed.as_secs()), (ReplayEnd::OutOfTime, 3));
    assert_eq!(*connections.cancelled.borrow(), [played.sent[0].link]);
    assert_eq!((played.tally.unanswered, played.tally.unsent), (1, 2));
}

#[test]
fn copy_data_that_the_server_awaits_are_refused() {
    let recording = record(60, &[(0, "a", "statement: SELECT f()", "")]);
    let copies = Box::new(|sent: &Sent| {
        let reply = if sent.tags == "f" { READY.to_vec() } else { b"G\0\0\0\x07\0\0\0".to_vec() };
        Some((reply, MS))
    });
    let played = play(&recording, &ReplayOptions::default(), 1, copies);
    assert_eq!(times(&played), [(0, "Q"), (1, "f"), (60, "X")]);
}
