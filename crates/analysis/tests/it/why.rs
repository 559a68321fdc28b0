//! Where the difference between two treatments lies.

use pgdyno_analysis::{RunView, WhyView};
use pgdyno_model::record::SessionEnd;
use pgdyno_test_support::records::{
    add_run, assert_adds_up, failed_trial, filesystems, run_record, session_record, set_statements,
    store, trial, zfs_and_xfs,
};

fn only(view: &RunView) -> &WhyView {
    assert_eq!(view.why.len(), 1, "{:?}", view.why);
    &view.why[0]
}

#[test]
fn sides_and_gap_are_of_the_same_trials() {
    // Of the second treatment's trials two have no place in a block of the first.
    let record = run_record(filesystems(4));
    let trials = record.plan.trials.iter().map(|planned| {
        let mut t = trial(&record.plan, *planned);
        let off = 1.0 + 0.1 * f64::from(t.block) + 0.002 * f64::from((t.ordinal * 3) % 4);
        set_statements(&mut t, off);
        if t.treatment == 1 && t.block > 2 {
            t = failed_trial(*planned);
        }
        t
    });
    let view = add_run(&mut store().1, &record, &session_record(), SessionEnd::Failed, trials);
    // Whatever is said adds up.
    for why in &view.why {
        let latency = why.latency.as_ref().unwrap();
        assert_adds_up(latency);
        assert!((latency.b_us - latency.a_us - latency.gap_us.value).abs() < 1e-6, "{latency:?}");
    }
    assert_eq!(view.why.len(), 1, "{:?}", view.comparisons);
}

#[test]
fn a_trial_whose_polls_found_every_backend_idle_has_no_active_time() {
    let polled = |idle_block: Option<u32>, load: f64| {
        zfs_and_xfs(4, move |t| {
            let waits = t.telemetry.iter_mut().find(|table| table.probe == "wait_events").unwrap();
            let is_idle = idle_block.is_none_or(|block| t.treatment == 1 && t.block == block);
            let active = if is_idle { 0.0 } else { 40.0 };
            for sample in &mut waits.samples {
                sample.values.fill(Some(0.0));
                for (i, backends) in [(0, 1.0), (2, active * load), (4, (48.0 - active) * load)] {
                    sample.values[i] = Some(10.0 * backends * sample.t_s);
                }
            }
        })
    };
    // One of four trials on XFS: the mean has it as 0.
    let one = polled(Some(2), 1.0);
    let active = only(&one).active.as_ref().unwrap();
    assert_adds_up(active);
    assert!((active.a_us / (0.75 * 40.0 / 48.0 * 4400.0) - 1.0).abs() < 0.02, "{active:?}");
    // No backend at all was seen.
    let none = polled(None, 0.0);
    assert!(only(&none).active.is_none());
    assert_eq!(only(&none).missing, ["time by wait event: no poll saw a backend of the load"]);
}

#[test]
fn figures_are_given_for_each_transaction_and_what_was_not_watched_is_said() {
    let view = zfs_and_xfs(3, |t| {
        t.telemetry.retain(|table| table.probe != "cpu" && table.probe != "wait_events");
    });
    let why = only(&view);
    let names: Vec<&str> = why.figures.iter().map(|f| f.name).collect();
    assert!(
        names.contains(&"WAL per transaction") && names.contains(&"device writes"),
        "{names:?}"
    );
    let wal = why.figures.iter().find(|f| f.name == "WAL per transaction").unwrap();
    assert!(wal.ratio.is_some() && wal.a.unwrap() > 0.0);
    assert!(why.active.is_none());
    assert_eq!(
        why.missing,
        ["CPU: `cpu` was not watched", "time by wait event: `wait_events` was not watched"]
    );
}
