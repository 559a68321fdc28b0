//! Rates, retries, pipelines and conditions on the simulated network.

use std::io;
use std::time::SystemTime;

use pgdyno_model::experiment::OnError;
use pgdyno_model::units::Span;

use super::*;
use crate::failure::FailureKind;
use crate::spec::WindowEnd;
use crate::transaction_log::{LoggedOutcome, LoggedTransaction, TransactionLog, TransactionSink};

/// A log that keeps all it is told.
#[derive(Default)]
struct Kept(Arc<Mutex<Vec<LoggedTransaction>>>);

struct Sink(Arc<Mutex<Vec<LoggedTransaction>>>);

impl TransactionLog for Kept {
    fn open(&self, _: usize) -> io::Result<Box<dyn TransactionSink>> {
        Ok(Box::new(Sink(Arc::clone(&self.0))))
    }
}

impl TransactionSink for Sink {
    fn transaction(&mut self, transaction: &LoggedTransaction) {
        self.0.lock().unwrap().push(transaction.clone());
    }

    fn finish(&mut self) {}
}

static LOGGED: Mutex<Vec<LoggedTransaction>> = Mutex::new(Vec::new());

#[test]
fn a_window_in_which_nothing_is_due_lasts_to_its_end_where_pgbench_would_end() {
    let at_once = |_| -> Answer { Box::new(|_, _| after(MS, done(b'I'))) };
    let rare = |spec: &mut LoadSpec| spec.options.rate = Some(LoadRate::Constant(0.01));
    let load = Load { change: rare, warm_up: SECOND, clients: 2, ..Load::new("SELECT 1;") };
    let quiet = load.run(at_once).measurement;
    assert_eq!((quiet.transactions, quiet.measured_s, quiet.series.len()), (0, 5.0, 5));
    assert!((6.0..6.2).contains(&quiet.total_s), "{}", quiet.total_s);
    let as_pgbench = |spec: &mut LoadSpec| {
        spec.options.rate = Some(LoadRate::Constant(0.01));
        spec.window_end = WindowEnd::WithLastTransaction;
    };
    let load = Load { change: as_pgbench, ..Load::new("SELECT 1;") };
    let ended = load.run(at_once).measurement;
    assert!(ended.total_s < 1.0 && ended.measured_s < 1.0, "{ended:?}");
}

#[test]
fn a_window_that_its_last_transaction_closes_counts_whatever_began_in_its_time() {
    let as_pgbench = |spec: &mut LoadSpec| spec.window_end = WindowEnd::WithLastTransaction;
    let length = Length::Duration(Span(SECOND));
    let load = Load { clients: 2, change: as_pgbench, length, ..Load::new("SELECT 1;") };
    let m = load.run(steady(2_500 * MS)).measurement;
    assert_eq!((m.transactions, m.counters.drained_transactions), (2, 0));
    assert_eq!((m.latency.count(), m.sums.latency_count), (2, 2));
    assert_eq!(m.series.iter().map(|s| s.transactions).collect::<Vec<_>>(), [0, 0, 2]);
    assert!((2.5..2.6).contains(&m.measured_s), "{}", m.measured_s);
    assert!((m.tps().unwrap() - 2.0 / m.total_s).abs() < 1e-6, "{m:?}");
    // A failure counts as well, and what does not end within the grace.
    let fails = |_| -> Answer { Box::new(|_, _| after(2_500 * MS, error("40001", b'I'))) };
    let m = load.run(fails).measurement;
    assert_eq!((m.transactions, m.failed, m.counters.failed_outside), (0, 2, 0));
    let hangs = |_| -> Answer { Box::new(|_, _| Vec::new()) };
    let m = Load { grace: SECOND, ..load }.run(hangs).measurement;
    assert_eq!((m.failed, m.counters.failed_outside), (2, 0));
}

#[test]
fn with_a_rate_every_arrival_during_a_stall_is_seen_to_wait() {
    let stalls = |_| -> Answer {
        Box::new(|_, now| {
            let stalled = (2 * SECOND..3 * SECOND).contains(&now.since(Moment(0)));
            let delay = if stalled { Moment(0).after(3 * SECOND).since(now) } else { MS };
            after(delay, done(b'I'))
        })
    };
    let load = Load {
        change: |spec| spec.options.rate = Some(LoadRate::Constant(100.0)),
        ..Load::new("SELECT 1;")
    };
    let m = load.run(stalls).measurement;
    // Poisson: 500 arrivals in five seconds, give or take five standard deviations.
    assert!((390..610).contains(&m.transactions), "{}", m.transactions);
    // Some hundred were due during the stall, uniformly spread: a fifth of all waited 0 to 1 s, so
    // that the ninth decile of latency lies near half of it. A closed loop would have seen one long
    // latency.
    let p90 = m.latency.quantile_us(0.9).unwrap();
    assert!((300_000.0..700_000.0).contains(&p90), "{p90}");
    assert!(m.latency.quantile_us(0.5).unwrap() < 20_000.0);
    let lag_max = m.sums.lag_max_ns;
    assert!(lag_max > 900_000_000 && lag_max < 1_000_000_000, "{lag_max}");
    assert!(m.sums.skipped == 0 && m.sums.late == 0);
    let ended = m.transactions + m.counters.drained_transactions;
    let mean = m.sums.latency_sum_ns as f64 / 1e3 / ended as f64;
    assert!((60_000.0..160_000.0).contains(&mean), "{mean}");

    // With a limit, those that are too late to make it are skipped, and what is late is counted.
    let load = Load {
        change: |spec| {
            spec.options.rate = Some(LoadRate::Constant(100.0));
            spec.options.latency_limit = Some(Span(100 * MS));
        },
        ..Load::new("SELECT 1;")
    };
    let limited = load.run(stalls).measurement;
    assert!((60..130).contains(&limited.sums.skipped), "{}", limited.sums.skipped);
    assert!(limited.sums.late >= 1 && limited.sums.late < 30, "{}", limited.sums.late);
    assert_eq!(
        limited.transactions + limited.counters.drained_transactions + limited.sums.skipped,
        m.transactions + m.counters.drained_transactions
    );
}

#[test]
fn a_retry_repeats_the_same_draws_until_it_may_no_more() {
    let fails = |_| -> Answer {
        let mut tries = 0;
        Box::new(move |sql, _| {
            let reply = match sql {
                "BEGIN" => done(b'T'),
                "ROLLBACK" | "END" => done(b'I'),
                // Twice in three.
                _ => {
                    tries += 1;
                    if tries % 3 == 0 { done(b'T') } else { error("40001", b'E') }
                }
            };
            after(MS, reply)
        })
    };
    let load = |change| Load {
        change,
        ..Load::with_count(10, "\\set x random(1, 1000000000)\nBEGIN; UPDATE :x; END;")
    };
    let seen = load(|spec| spec.options.max_tries = 3).run(fails);
    let m = &seen.measurement;
    assert_eq!((m.transactions, m.failed, m.sums.retried, m.sums.retries), (10, 0, 10, 20));
    assert_eq!((m.scripts[0].commands[2].retries, m.scripts[0].commands[2].count), (20, 10));
    let updates: Vec<&String> =
        seen.asked[0].iter().filter(|sql| sql.starts_with("UPDATE")).collect();
    assert_eq!(updates.len(), 30);
    for tries in updates.chunks(3) {
        assert!(tries.iter().all(|sql| *sql == tries[0]), "{tries:?}");
    }
    assert_ne!(updates[0], updates[3]);

    let seen = load(|spec| {
        spec.options.max_tries = 2;
        spec.log = Some(Arc::new(Kept::default()));
    })
    .run(fails);
    let m = &seen.measurement;
    // Tries fail, fail, pass: fails, then passes at the first or second try, in turn.
    assert_eq!(m.transactions + m.failed, 10);
    assert_eq!(
        (m.sums.serialization_failures, m.sums.deadlock_failures, m.sums.other_failures),
        (m.failed, 0, 0)
    );
    assert!(m.failed > 0 && m.transactions > 0);
}

#[test]
fn errors_that_may_be_passed_over_leave_the_client_at_work() {
    let every_other = |_| -> Answer {
        let mut n = 0;
        Box::new(move |_, _| {
            n += 1;
            after(MS, if n % 2 == 0 { error("22012", b'I') } else { done(b'I') })
        })
    };
    let load = Load {
        change: |spec| {
            spec.options.on_error = OnError::Continue;
            spec.log = Some(Arc::new(Shared));
        },
        ..Load::with_count(10, "SELECT 1;")
    };
    let m = load.run(every_other).measurement;
    assert_eq!(
        (m.transactions, m.failed, m.counters.aborted_clients, m.sums.other_failures),
        (5, 5, 0, 5)
    );
    let logged = LOGGED.lock().unwrap();
    let numbers: Vec<u64> = logged.iter().map(|t| t.number).collect();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    assert!(logged.iter().all(|t| t.latency_ns >= 1_000_000 && t.done > SystemTime::UNIX_EPOCH));
    assert_eq!(logged[1].outcome, LoggedOutcome::Failed(FailureKind::Other));
    assert_eq!(logged[2].outcome, LoggedOutcome::Done);

    let load = Load {
        change: |spec| spec.options.on_error = OnError::AbortAll,
        clients: 3,
        ..Load::new("SELECT 1;")
    };
    let m = load.run(every_other).measurement;
    assert!((1..=3).contains(&m.counters.aborted_clients) && m.transactions <= 3, "{m:?}");
}

/// A log whose sink is [`LOGGED`].
struct Shared;

impl TransactionLog for Shared {
    fn open(&self, _: usize) -> io::Result<Box<dyn TransactionSink>> {
        struct Sink;
        impl TransactionSink for Sink {
            fn transaction(&mut self, transaction: &LoggedTransaction) {
                LOGGED.lock().unwrap().push(transaction.clone());
            }
            fn finish(&mut self) {}
        }
        Ok(Box::new(Sink))
    }
}

/// QueryResults a pipeline: results for as many statements as were asked, then readiness.
fn results(count: usize, status: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..count {
        bytes.extend(message(b'C', b"SELECT 1\0"));
    }
    bytes.extend(ready(status));
    bytes
}

#[test]
fn a_pipeline_is_sent_at_once_and_its_errors_belong_to_their_statements() {
    let script = "\\startpipeline\nBEGIN;\nUPDATE a;\nUPDATE b;\nEND;\n\\endpipeline\n";
    for piece in [1, 7, usize::MAX] {
        let network = Network { read: piece, ..Network::default() };
        let load = Load { protocol: Protocol::Extended, network, ..Load::with_count(6, script) };
        let seen = load.run(|_| Box::new(|_, _| after(MS, results(4, b'I'))));
        let m = &seen.measurement;
        assert_counts(m, (6, 0, 0));
        // One message that ends a pipeline for each transaction.
        assert_eq!(seen.asked[0].iter().filter(|s| *s != "goodbye").count(), 6);
        assert!(m.scripts[0].statements.iter().all(|s| s.latency.count() == 6));

        let fails = |_| -> Answer {
            let mut n = 0;
            Box::new(move |sql, _| {
                n += 1;
                let reply = match n {
                    // The second statement fails, what follows is passed over.
                    2 => [message(b'C', b"BEGIN\0"), error("40001", b'E')].concat(),
                    // The ROLLBACK.
                    3 => {
                        assert!(sql == "ROLLBACK", "{sql}");
                        done(b'I')
                    }
                    _ => results(4, b'I'),
                };
                after(MS, reply)
            })
        };
        let m = load.run(fails).measurement;
        assert_counts(&m, (5, 1, 0));
        let failed: Vec<_> = m.scripts[0].statements.iter().map(|s| s.failed).collect();
        assert_eq!(failed, [0, 1, 0, 0]);
    }
    for (script, protocol, words) in [
        (script, Protocol::Simple, "cannot use pipeline mode with the simple query protocol"),
        (
            "\\startpipeline\nSELECT 1;",
            Protocol::Extended,
            "end of script reached with pipeline open",
        ),
        ("\\startpipeline\n\\startpipeline", Protocol::Extended, "already in pipeline mode"),
        ("\\endpipeline", Protocol::Extended, "not in pipeline mode"),
    ] {
        let load = Load { protocol, ..Load::with_count(1, script) };
        let m = load.run(steady(MS)).measurement;
        assert_aborted(&m, words);
    }
}

#[test]
fn conditions_choose_what_is_executed() {
    let script = "\\set n :n + 1\n\\if :n % 4 = 0\nSELECT 0;\n\\elif :n % 4 = 1\n\\if :n > 4\n\
        SELECT 11;\n\\else\n\
        SELECT 10;\n\\endif\n\\elif :n % 4 = 2\n\\else\nSELECT 3;\n\\endif\nSELECT 9;";
    let load = Load {
        change: |spec| spec.variables.push(("n".into(), "0".into())),
        ..Load::with_count(8, script)
    };
    let seen = load.run(steady(MS));
    let numbers: Vec<&str> =
        seen.asked[0].iter().filter_map(|sql| sql.strip_prefix("SELECT ")).collect();
    let expected = ["10", "9", "9", "3", "9", "0", "9", "11", "9", "9", "3", "9", "0", "9"];
    assert_eq!(numbers, expected);
}

#[test]
fn each_transaction_can_have_its_own_connection() {
    let load = Load {
        protocol: Protocol::Prepared,
        change: |spec| spec.options.reconnect = true,
        clients: 2,
        ..Load::with_count(5, "SELECT 1;\nSELECT 2;")
    };
    let seen = load.run(steady(MS));
    let m = &seen.measurement;
    assert_counts(m, (10, 0, 0));
    // The first connections were there.
    assert_eq!(m.counters.reconnections, 8);
    // Nothing stays prepared.
    assert_eq!(seen.parsed, 20);
    assert_eq!(seen.asked[0].iter().filter(|sql| *sql == "goodbye").count(), 5);
}

#[test]
fn a_reply_that_comes_in_parts_has_its_first_byte_before_its_last() {
    let in_parts = |_| -> Answer {
        Box::new(|_, _| {
            let reply = done(b'I');
            let (first, rest) = reply.split_at(7);
            vec![
                (10 * MS, PeerAction::Send(first.to_vec())),
                (40 * MS, PeerAction::Send(rest.to_vec())),
            ]
        })
    };
    for protocol in [Protocol::Simple, Protocol::Prepared] {
        let load = Load { protocol, ..Load::with_count(20, "SELECT 1;\nSELECT 2;") };
        let m = load.run(in_parts).measurement;
        assert_eq!(m.transactions, 20);
        for statement in &m.scripts[0].statements {
            assert_eq!((statement.latency.count(), statement.first_byte.count()), (20, 20));
            let p50 = |latencies: &pgdyno_model::Latencies| latencies.quantile_us(0.5).unwrap();
            let (first, whole) = (p50(&statement.first_byte), p50(&statement.latency));
            // The simulated server acknowledges a Bind at once.
            let expected = if protocol == Protocol::Simple { 10_000.0 } else { 0.0 };
            assert!((first - expected).abs() < 50.0, "{protocol:?}: {first}");
            assert!((whole - 40_000.0).abs() < 50.0, "{protocol:?}: {whole}");
        }
    }
}

#[test]
fn with_a_rate_service_time_is_recorded_beside_latency() {
    let load = |change| Load { change, ..Load::new("SELECT 1;") };
    let m = load(|spec| spec.options.rate = Some(LoadRate::Constant(150.0)))
        .run(steady(10 * MS))
        .measurement;
    let service = m.service.as_ref().unwrap();
    assert_eq!(
        (service.count(), m.scripts[0].service.as_ref()),
        (m.latency.count(), Some(service))
    );
    // One client does a hundred a second: the rest waits, which service time does not see.
    assert!((service.max_us().unwrap() - 10_000.0).abs() < 50.0, "{service:?}");
    assert!(m.latency.quantile_us(0.5).unwrap() > 200_000.0, "{:?}", m.latency);
    assert_eq!(load(|_| {}).run(steady(10 * MS)).measurement.service, None);
}

#[test]
fn what_holds_the_event_loop_up_is_seen_as_its_lag() {
    let load = |pace, reconnect| {
        let change: fn(&mut LoadSpec) = if reconnect {
            |spec| {
                spec.options.reconnect = true;
                spec.options.rate = Some(LoadRate::Constant(200.0));
            }
        } else {
            |spec| spec.options.rate = Some(LoadRate::Constant(200.0))
        };
        Load {
            clients: 8,
            network: Network { pace, ..Network::default() },
            change,
            ..Load::new("SELECT 1;")
        }
        .run(steady(MS))
        .measurement
    };
    let free = load(MS, false).event_loop_lag.unwrap();
    assert!(free.max_us < 10.0, "{free:?}");
    // Making a connection takes the loop 4 ms, during which others become due: at 200 a second it
    // is busy most of the time.
    let held_up = load(4 * MS, true);
    let lag = held_up.event_loop_lag.unwrap();
    assert!(
        lag.p99_us > 3_000.0 && lag.max_us >= lag.p99_us && lag.p99_us >= lag.p50_us,
        "{lag:?}"
    );
}

#[test]
fn replies_that_overtake_each_other_reach_their_own_clients() {
    // The later a client asks, the sooner it is answered; how much so changes with every round.
    let crossing = |n: usize| -> Answer {
        let mut round = 0;
        Box::new(move |sql, _| {
            round += 1;
            let delay = MS * u32::try_from(1 + (16 - n) * (1 + round % 5)).unwrap();
            let own = sql.ends_with(&format!("= {n}"));
            after(delay, if own { done(b'I') } else { error("XX000", b'I') })
        })
    };
    for piece in [1, usize::MAX] {
        let load = Load {
            clients: 16,
            network: Network { read: piece, ..Network::default() },
            ..Load::with_count(30, "SELECT 1 = :client_id;\nSELECT 2 = :client_id;")
        };
        let seen = load.run(crossing);
        let m = &seen.measurement;
        assert_counts(m, (16 * 30, 0, 0));
        for (n, asked) in seen.asked.iter().enumerate() {
            let expected = [format!("SELECT 1 = {n}"), format!("SELECT 2 = {n}")];
            assert_eq!(asked.len(), 61, "60 statements and a goodbye");
            assert!(asked[..60].chunks(2).all(|pair| pair == expected), "client {n}: {asked:?}");
        }
        let of = |n: usize| m.scripts[0].statements[n].latency.count();
        assert_eq!((of(0), of(1)), (16 * 30, 16 * 30));
    }
}
