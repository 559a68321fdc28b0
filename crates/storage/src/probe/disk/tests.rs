use pgdyno_model::probe::Transfers;

use super::*;

fn options(builtin: bool) -> DiskOptions {
    DiskOptions {
        size: Bytes(16 << 20),
        per_point: Duration::from_millis(20),
        zones: 2,
        builtin,
        ..DiskOptions::default()
    }
}

fn journal(state: &Path) -> Journal {
    Journal::open(state).unwrap()
}

/// Returns a measurement of the points that `is_wanted` names, with plausible answers and nothing
/// left.
fn measured(builtin: bool, mut is_wanted: impl FnMut(&Planned) -> bool) -> DiskProbe {
    // A colon in a path would be two files to fio.
    let (dir, state) =
        (tempfile::Builder::new().prefix("a:b c").tempdir().unwrap(), tempfile::tempdir().unwrap());
    let journal = journal(state.path());
    let mut plan = DiskPlan::new(dir.path(), &options(builtin)).unwrap();
    assert_eq!(plan.points.len(), 2 + 2 + 3 * 7);
    plan.points.retain(&mut is_wanted);
    let (storage, probe) = plan.measure(&journal, &|_, _| {}, &AtomicBool::new(false)).unwrap();
    assert!(!storage.filesystem.is_empty() && probe.complete, "{probe:?}");
    assert_eq!((probe.points.len(), probe.span), (plan.points.len(), Bytes(16 << 20)));
    for point in &probe.points {
        let done = |side: Option<Transfers>| {
            side.is_some_and(|t| {
                t.operations > 0 && t.iops > 0.0 && t.latency.us_max >= t.latency.us_p50
            })
        };
        let reads = matches!(point.pattern, Pattern::Read | Pattern::RandRead);
        assert!(done(point.read) || !reads, "{point:?}");
        assert!(done(point.write) != reads || point.pattern == Pattern::RandRw, "{point:?}");
        assert!(point.seconds > 0.0, "{point:?}");
    }
    let filled: u64 =
        probe.points.iter().filter(|p| p.pattern == Pattern::Write).map(|p| p.length.0).sum();
    assert_eq!(filled, 16 << 20);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert!(journal.entries().unwrap().is_empty());
    probe
}

#[test]
fn pgdynos_own_load_measures_every_point() {
    let probe = measured(true, |_| true);
    assert!(probe.driver.contains("simpler than fio"), "{}", probe.driver);
    let written: u64 = probe
        .points
        .iter()
        .filter_map(|p| (p.pattern == Pattern::Write).then_some(p.write?.operations))
        .sum();
    assert_eq!(written, 16, "each block of the file once");
}

#[test]
fn fio_measures_every_pattern() {
    use std::io::Write as _; // past the test runner, which keeps what passing tests print to itself
    if fio::Fio::find().unwrap().is_none() {
        let _ =
            writeln!(io::stderr(), "\nskipped: fio_measures_every_pattern: fio is not installed");
        return;
    }
    // fio takes long to start: the writes, which fill the file, and one point of each other
    // pattern.
    let mut seen = Vec::new();
    let probe = measured(false, |point| {
        let is_wanted = point.pattern == Pattern::Write || !seen.contains(&point.pattern);
        seen.push(point.pattern);
        is_wanted
    });
    assert!(probe.driver.starts_with("fio-"), "{}", probe.driver);
}

#[test]
fn a_signal_ends_it_and_what_was_measured_is_kept() {
    let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let journal = journal(state.path());
    let stop = AtomicBool::new(false);
    let plan = DiskPlan::new(dir.path(), &options(true)).unwrap();
    let signal = |_: &str, done: f64| stop.store(done > 0.1, std::sync::atomic::Ordering::Relaxed);
    let (_, probe) = plan.measure(&journal, &signal, &stop).unwrap();
    assert!(!probe.complete && probe.points.len() == 3, "{probe:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let stopped = plan.measure(&journal, &|_, _| {}, &AtomicBool::new(true)).unwrap_err();
    assert_eq!(stopped.kind(), FailureKind::Interrupted, "{stopped}");
    assert!(journal.entries().unwrap().is_empty());
}

#[test]
fn a_device_is_only_read() {
    let device = DiskPlan {
        path: "/dev/sdx".into(),
        is_device: true,
        span: Bytes(20 << 20),
        size: None,
        points: points(10 << 20, 2, Duration::from_secs(3))
            .into_iter()
            .filter(|p| !p.pattern.writes())
            .collect(),
        per_point: Duration::from_secs(3),
        fio: Some(fio::Fio::at("/usr/bin/fio".into())),
    };
    let lines = device.lines();
    let runs: Vec<&String> = lines.iter().filter(|l| l.starts_with("run: ")).collect();
    assert_eq!(runs.len(), 2 + 7);
    assert!(runs.iter().all(|l| l.contains("--readonly") && l.contains("read --bs")), "{runs:?}");
    assert!(device.not_measured()[0].contains("would destroy"));
}

#[test]
fn the_dry_run_shows_fios_arguments() {
    let state = "/state/place";
    let fio = fio::Fio::at("/usr/bin/fio".into());
    let all = points(1 << 20, 1, Duration::from_millis(1500));
    let shown = |point: &Planned| {
        fio.step(point, Path::new("/mnt/a:b/span"), Path::new(state), false, true).to_string()
    };
    insta::assert_snapshot!(shown(&all[0]));
    insta::assert_snapshot!(shown(all.last().unwrap()));
}

#[test]
fn what_is_no_answer_of_fios_is_told_with_the_point() {
    let point = &points(1 << 20, 1, Duration::ZERO)[2];
    let told = |text: &str| fio::parse(point, text).unwrap_err().to_string();
    assert!(told("").contains("randread, queue depth 1"));
    assert!(told("fio: note\n{\"jobs\": []}").contains("0 jobs"));
    let side = concat!(
        r#"{"total_ios": 0, "iops": 0, "bw_bytes": 0, "runtime": 0, "#,
        r#""lat_ns": {"mean": 0, "max": 0}}"#
    );
    let answer = |error: i32| {
        format!(r#"{{"jobs": [{{"error": {error}, "read": {side}, "write": {side}}}]}}"#)
    };
    assert!(told(&answer(5)).contains("Input/output error"), "{}", told(&answer(5)));
    assert!(told(&answer(0)).contains("no request"));
}

#[test]
fn a_target_that_will_not_do_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let told = |path: &Path, options: &DiskOptions| {
        let error = DiskPlan::new(path, options).err().unwrap();
        (error.to_string(), error.help().unwrap_or_default())
    };
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(told(&dir.path().join("file"), &options(true)).0.contains("neither a directory nor"));
    assert!(told(&dir.path().join("missing"), &options(true)).1.contains("exists"));
    let small = DiskOptions { size: Bytes(1 << 20), ..options(true) };
    assert!(told(dir.path(), &small).1.contains("--size"));
    let of_an_experiment = DiskOptions { size_from: SizeSource::Experiment, ..small };
    assert!(told(dir.path(), &of_an_experiment).1.contains("probe.size"));
    let state = tempfile::tempdir().unwrap();
    let huge =
        DiskPlan::new(dir.path(), &DiskOptions { size: Bytes(1 << 60), ..options(true) }).unwrap();
    let error =
        huge.measure(&journal(state.path()), &|_, _| {}, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, ProbeError::NoRoom { .. }), "{error}");
}
