//! When a load ends, and what counts as its time.

use pgdyno_model::measurement::CommandSums;

use super::*;

#[test]
fn a_load_ends_when_its_last_client_does() {
    // Whole milliseconds and the microseconds that the simulated network takes.
    let total_ms = |script| {
        let load = Load::with_count(5, script);
        let m = load.run(steady(MS)).measurement;
        assert_counts(&m, (5, 0, 0));
        (m.total_s * 1000.0).floor()
    };
    assert_eq!(total_ms("\\sleep 20 ms"), 100.0);
    assert_eq!(total_ms("\\set x 1"), 0.0);
    assert_eq!(total_ms("\\set x 1\n\\sleep 1 ms\n"), 5.0);
    assert_eq!(total_ms("SELECT 1;\n\\sleep 9 ms\n"), 50.0);
    assert_eq!(total_ms("\\sleep 9 ms\nSELECT 1;\n"), 50.0);
}

#[test]
fn a_transaction_without_sql_takes_as_long_as_its_steps() {
    let load = |script, clients| Load { clients, ..Load::with_count(5, script) };
    let m = load("\\sleep 20 ms", 3).run(steady(MS)).measurement;
    let mean_ms = m.sums.mean_us().unwrap() / 1000.0;
    assert!((20.0..20.1).contains(&mean_ms), "{mean_ms}");
    assert_eq!(m.scripts[0].commands[0].count, 15);
    // One that only computes lets simulated time pass, too: one turn of the loop.
    let m = load("\\set x 1", 1).run(steady(MS)).measurement;
    assert!(m.latency.max_us().unwrap() > 0.0, "{:?}", m.latency);
}

#[test]
fn seconds_have_what_each_command_did_in_them() {
    let load = Load {
        warm_up: SECOND,
        length: Length::Duration(Span(3 * SECOND)),
        ..Load::new("SELECT 1;\n\\sleep 9 ms\nSELECT 2;\n")
    };
    let m = load.run(steady(MS)).measurement;
    assert_eq!(m.series.len(), 3);
    let mut sum = Vec::new();
    for second in &m.series {
        let [first, sleep, last] = second.commands[..] else { panic!("{:?}", second.commands) };
        // A transaction takes 11 ms, so that one may lie on each edge of a second.
        assert!(first.count.abs_diff(second.transactions) <= 1, "{first:?}");
        assert!(last.count.abs_diff(second.transactions) <= 1, "{last:?}");
        assert!((9000.0..9100.0).contains(&sleep.mean_us().unwrap()), "{sleep:?}");
        CommandSums::merge_all(&mut sum, &second.commands);
    }
    for (command, seconds) in m.scripts[0].commands.iter().zip(sum) {
        // The whole has the transaction that ended after the window, too.
        assert!(command.count - seconds.count <= 1, "{} and {seconds:?}", command.count);
    }
}

#[test]
fn what_queued_up_during_the_warm_up_is_no_latency_of_the_window() {
    // The server does nothing until half a second after the opening.
    let wakes_late = |_| -> Answer {
        Box::new(|_, now| {
            after(MS.max(Moment(0).after(2 * SECOND + SECOND / 2).since(now)), done(b'I'))
        })
    };
    let load = |warm_up, change| Load { clients: 2, warm_up, change, ..Load::new("SELECT 1;") };
    let rate: fn(&mut LoadSpec) = |spec| spec.options.rate = Some(LoadRate::Constant(100.0));
    let m = load(2 * SECOND, rate).run(wakes_late).measurement;
    // Two were under way at the opening, and had been since the load began.
    let max = m.latency.max_us().unwrap();
    assert!((2_300_000.0..2_500_100.0).contains(&max), "{max}");
    // Those due in the first half second of the window waited for it; those due before were not
    // sent.
    let p85 = m.latency.quantile_us(0.85).unwrap();
    assert!(p85 < 100_000.0, "{p85}");
    assert!((400..600).contains(&m.transactions), "{}", m.transactions);
    assert!(m.sums.lag_max_ns < 510_000_000, "{}", m.sums.lag_max_ns);

    // One that is steady is measured as if it had not been warmed up.
    let wakes_in_time = |_| -> Answer {
        Box::new(|_, now| after(MS.max(Moment(0).after(SECOND).since(now)), done(b'I')))
    };
    let m = load(SECOND, rate).run(wakes_in_time).measurement;
    assert!(m.latency.quantile_us(0.99).unwrap() < 10_000.0, "{:?}", m.latency);
    assert!(m.sums.lag_max_ns < 10_000_000, "{}", m.sums.lag_max_ns);
}
