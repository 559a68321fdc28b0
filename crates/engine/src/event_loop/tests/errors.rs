//! Errors, lost connections and servers that break the protocol.

use super::*;

#[test]
fn a_serialization_failure_is_rolled_back_and_counted_once() {
    let fails_every_third = |_| -> Answer {
        let mut transactions = 0;
        Box::new(move |sql, _| {
            let reply = match sql {
                "BEGIN" => {
                    transactions += 1;
                    done(b'T')
                }
                "UPDATE" if transactions % 3 == 0 => error("40001", b'E'),
                "UPDATE" => done(b'T'),
                "COMMIT" if transactions % 7 == 0 => error("40P01", b'I'),
                "COMMIT" | "ROLLBACK" => done(b'I'),
                other => panic!("{other}"),
            };
            after(MS, reply)
        })
    };
    let load = Load::with_count(21, "BEGIN; UPDATE; COMMIT;");
    let seen = load.run(fails_every_third);
    let m = seen.measurement;
    // Multiples of 3 fail at UPDATE, of 7 but not of 3 at COMMIT.
    assert_counts(&m, (12, 9, 0));
    assert_eq!(m.counters.failures.get("40001"), Some(&7));
    assert_eq!(m.counters.failures.get("40P01"), Some(&2));
    let statements: Vec<_> = m.scripts[0].statements.iter().map(|s| s.failed).collect();
    assert_eq!(statements, [0, 7, 2]);
    let rollbacks = seen.asked[0].iter().filter(|sql| *sql == "ROLLBACK").count();
    assert_eq!(rollbacks, 7, "only a failed block is rolled back");
}

#[test]
fn a_reply_that_nobody_asked_for_ends_the_client_and_is_no_measurement() {
    let complete = || message(b'C', b"SELECT 1\0");
    let notices = || {
        let settings = message(b'S', b"TimeZone\0UTC\0");
        [settings, message(b'A', b"\0\0\0\x01a\0b\0"), message(b'N', b"SNOTICE\0Mhi\0\0")].concat()
    };
    let pipeline = "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\endpipeline\n";
    let lies: [(&str, Vec<u8>); 9] = [
        ("five of ReadyForQuery", ready(b'I').repeat(4)),
        ("five whole answers", [complete(), ready(b'I')].concat().repeat(4)),
        ("a row without a query", message(b'D', b"\0\0")),
        ("copy data", message(b'd', b"x")),
        ("an error of nothing", error("40001", b'I')),
        ("a ParseComplete", message(b'1', b"")),
        ("a BackendKeyData", message(b'K', &[0; 8])),
        ("an authentication", message(b'R', &[0; 4])),
        ("notices, then an answer", [notices(), complete(), ready(b'I')].concat()),
    ];
    for (script, protocol) in [
        ("SELECT 1;", Protocol::Simple),
        ("SELECT 1;", Protocol::Extended),
        ("SELECT 1;", Protocol::Prepared),
        (pipeline, Protocol::Extended),
    ] {
        for (what, lie) in &lies {
            // Whole answers that come one by one are told from a fast server's only by who counts
            // them.
            let is_whole = lie.ends_with(&ready(b'I')) && !lie.starts_with(&ready(b'I'));
            let pieces: &[usize] = if is_whole { &[usize::MAX] } else { &[1, 5, usize::MAX] };
            for &piece in pieces {
                let network = Network { read: piece, ..Network::default() };
                let load = Load { network, protocol, ..Load::with_count(500, script) };
                let answer = |_| -> Answer {
                    let answer = [complete(), ready(b'I'), lie.clone()].concat();
                    let two = [complete(), complete(), ready(b'I'), lie.clone()].concat();
                    let answer = if script == pipeline { two } else { answer };
                    Box::new(move |_, _| after(MS, answer.clone()))
                };
                let m = load.run(answer).measurement;
                assert_eq!(m.counters.aborted_clients, 1, "{protocol:?}, {what}, {piece}");
                assert!(m.transactions <= 1, "{protocol:?}, {what}, {piece}: {}", m.transactions);
                assert_eq!(
                    m.counters.failures.get("08P01"),
                    Some(&1),
                    "{what}: {:?}",
                    m.counters.abort_reasons
                );
            }
        }
        let load = Load { protocol, ..Load::with_count(50, script) };
        let honest = |_| -> Answer {
            let results = if script == pipeline { 2 } else { 1 };
            let answer = [complete().repeat(results), notices(), ready(b'I'), notices()].concat();
            Box::new(move |_, _| after(MS, answer.clone()))
        };
        let m = load.run(honest).measurement;
        assert_counts(&m, (50, 0, 0));
    }
}

#[test]
fn what_the_server_should_not_send_ends_the_client_with_a_reason() {
    let copy = message(b'G', b"\0\0\0");
    let mut torn_then_closed = done(b'I');
    torn_then_closed.truncate(20);
    let fatal = message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mterminating\0\0");
    for (reply, hangs_up, code, words) in [
        (b"HTTP/1.1 400 Bad Request\r\n".to_vec(), false, "08P01", "broke the protocol"),
        (message(b'!', b""), false, "08P01", "type `!`"),
        (
            [message(b'C', b"BEGIN\0"), message(b'Z', b"?")].concat(),
            false,
            "08P01",
            "`status` is 63",
        ),
        (message(b'R', b"\0\0\0\0"), false, "08P01", "type `R`"),
        (b"E\x3f\xff\xff\xff".to_vec(), false, "08P01", "at most 1048576 are taken"),
        (b"D\0\0\0\x03".to_vec(), false, "08P01", "is 3 bytes long"),
        (copy, false, "0A000", "COPY is not supported"),
        (torn_then_closed, true, "08006", "connection lost"),
        (fatal, true, "08006", "57P01"),
        ([done(b'I'), ready(b'I')].concat(), false, "", ""),
    ] {
        let answer = |_| -> Answer {
            let reply = reply.clone();
            Box::new(move |_, _| {
                let mut acts = after(MS, reply.clone());
                acts.extend(hangs_up.then_some((2 * MS, PeerAction::HangUp)));
                acts
            })
        };
        for piece in [1, 3, usize::MAX] {
            let network = Network { read: piece, ..Network::default() };
            let load = Load { network, ..Load::with_count(1, "SELECT 1;") };
            let m = load.run(answer).measurement;
            if code.is_empty() {
                // One answer too many, but the client had ended.
                assert_counts(&m, (1, 0, 0));
                continue;
            }
            assert_counts(&m, (0, 1, 1));
            assert_eq!(
                m.counters.failures.get(code),
                Some(&1),
                "{words}: {:?}",
                m.counters.abort_reasons
            );
            assert_aborted(&m, words);
        }
    }
}

#[test]
fn a_script_that_ends_inside_a_transaction_counts_and_ends_its_client() {
    let load = Load::with_count(5, "BEGIN;");
    let m = load.run(|_| Box::new(|_, _| after(MS, done(b'T')))).measurement;
    assert_counts(&m, (1, 0, 1));
    assert_aborted(&m, "inside a transaction block");
}

#[test]
fn a_lost_connection_fails_its_transaction_and_is_made_anew_as_often_as_is_allowed() {
    // Every third transaction ends in a hang-up, one of them after the server said why.
    let hangs_up = |_| -> Answer {
        let mut asked = 0;
        Box::new(move |_, _| {
            asked += 1;
            match asked {
                3 => vec![(MS, PeerAction::HangUp)],
                6 => vec![
                    (MS, PeerAction::Send(error("57P01", b'I')[..20].to_vec())),
                    (MS, PeerAction::HangUp),
                ],
                9 => {
                    let fatal = message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mbye\0\0");
                    vec![(MS, PeerAction::Send(fatal)), (2 * MS, PeerAction::HangUp)]
                }
                _ => after(MS, done(b'I')),
            }
        })
    };
    let load = |change, protocol| Load {
        protocol,
        change,
        clients: 2,
        ..Load::with_count(10, "SELECT 1;")
    };
    for protocol in [Protocol::Simple, Protocol::Prepared] {
        let seen = load(|spec| spec.options.reconnect_lost = ReconnectLost::UpTo(1), protocol)
            .run(hangs_up);
        let m = &seen.measurement;
        assert_counts(m, (14, 6, 0));
        assert_eq!(m.counters.failures.get("08006"), Some(&6));
        assert_eq!((m.counters.lost_connections, m.counters.reconnections), (6, 6));
        assert_eq!(m.scripts[0].statements[0].failed, 6);
        // What was prepared went with its connection.
        let prepared = if protocol == Protocol::Prepared { 2 * 4 } else { 0 };
        assert_eq!(seen.parsed, prepared);
        let m = load(|_| {}, protocol).run(hangs_up).measurement;
        assert_eq!(
            (m.transactions, m.failed, m.counters.aborted_clients, m.counters.lost_connections),
            (4, 2, 2, 0)
        );
    }
    // One that is lost again and again is given up after so many, and never where there is no
    // limit.
    let gone = |_| -> Answer { Box::new(|_, _| vec![(MS, PeerAction::HangUp)]) };
    let m = load(|spec| spec.options.reconnect_lost = ReconnectLost::UpTo(3), Protocol::Simple)
        .run(gone);
    let m = m.measurement;
    assert_eq!(
        (m.failed, m.counters.aborted_clients, m.counters.lost_connections),
        (2 * 4, 2, 2 * 3)
    );
    let m = load(|spec| spec.options.reconnect_lost = ReconnectLost::Always, Protocol::Simple)
        .run(gone);
    let m = m.measurement;
    assert_eq!(
        (m.transactions, m.failed, m.counters.aborted_clients, m.counters.lost_connections),
        (0, 20, 0, 20)
    );
}

#[test]
fn a_client_whose_server_stays_away_tries_again_ever_more_rarely() {
    let hangs_up = |_| -> Answer {
        Box::new(|_, now| {
            if now < Moment(0).after(SECOND) {
                after(MS, done(b'I'))
            } else {
                vec![(MS, PeerAction::HangUp)]
            }
        })
    };
    let away = Network {
        away: Some((Moment(0).after(SECOND), Moment(0).after(3 * SECOND))),
        ..Network::default()
    };
    let back = |_| steady(MS)(0);
    let load = |change| Load { network: away, change, ..Load::new("\\sleep 10 ms\nSELECT 1;") };
    let m =
        load(|spec| spec.options.reconnect_lost = ReconnectLost::Always).run(hangs_up).measurement;
    assert!(m.transactions > 80 && m.counters.aborted_clients == 0, "{m:?}");
    let m = load(|spec| {
        spec.options.reconnect_lost = ReconnectLost::UpTo(3);
        spec.options.reconnect = true;
    })
    .run(back)
    .measurement;
    assert_eq!((m.counters.aborted_clients, m.counters.lost_connections), (1, 0));
    assert_aborted(&m, "after 3 in a row");
    let m = load(|spec| {
        spec.options.reconnect_lost = ReconnectLost::UpTo(8);
        spec.options.reconnect = true;
    })
    .run(back)
    .measurement;
    assert_eq!((m.counters.aborted_clients, m.failed), (0, 0), "nothing was under way");
    let silent = m.series.iter().filter(|s| s.transactions == 0).count();
    assert!((1..=2).contains(&silent) && m.series.len() == 5, "{:?}", m.series);
}

#[test]
fn a_client_that_gives_up_leaves_the_others_alone() {
    let second_hangs_up = |n| -> Answer {
        Box::new(move |_, now| {
            if n == 1 && now.since(Moment(0)) > SECOND {
                vec![(MS, PeerAction::HangUp)]
            } else {
                after(MS, done(b'I'))
            }
        })
    };
    let m = Load { clients: 3, ..Load::new("SELECT 1;") }.run(second_hangs_up).measurement;
    assert_eq!((m.counters.aborted_clients, m.measured_s), (1, 5.0));
    assert_eq!(m.transactions, 2 * 4999 + 1001);
    assert_eq!(
        m.counters.abort_reasons,
        ["client 1: connection lost: the server closed the connection (SQLSTATE 08006)"]
    );
}

#[test]
fn a_transaction_that_does_not_end_is_given_up_after_the_grace() {
    let hangs = |_| -> Answer { Box::new(|_, _| Vec::new()) };
    let m = Load { clients: 2, grace: 3 * SECOND, ..Load::new("SELECT 1;") }.run(hangs).measurement;
    assert_eq!(
        (m.transactions, m.failed, m.counters.failed_outside, m.counters.aborted_clients),
        (0, 0, 2, 2)
    );
    assert_aborted(&m, "3s after the last could begin");
    assert_eq!(m.measured_s, 5.0);
    assert_eq!(m.series.len(), 5);
}
