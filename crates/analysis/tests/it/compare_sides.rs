//! Machines as the sides of a comparison.

use pgdyno_analysis::analyse;
use pgdyno_analysis::comparison::runs::{CompareNote, CompareOptions, compare};
use pgdyno_model::record::SessionRecord;
use pgdyno_store::{Merge, Store};
use pgdyno_test_support::records::{
    by, fill_on, first_treatments, refused, run_called, session_record, speed_up, store,
};

/// Merges the run `id`, measured on `host`, into `store`; the host does `factor` times the work.
fn arrive(target: &mut Store, id: &str, host: &str, session: &SessionRecord, factor: f64) {
    let (_folder, mut there) = store();
    let record = run_called(id, first_treatments(1, 4));
    fill_on(&mut there, &record, session, |trial| speed_up(trial, factor));
    let mut merge = Merge::default();
    merge.add_store_of(Some(target), &there, &format!("ssh:{host}")).unwrap();
    merge.write(target).unwrap();
}

#[test]
fn hosts_are_compared_as_levels_of_a_factor() {
    let (_folder, mut store) = store();
    arrive(&mut store, "a", "db1", &session_record(), 1.0);
    let mut other = session_record();
    other.host.kernel = "Linux 7.1.0 x86_64".into();
    other.storage[0].filesystem = "xfs".into();
    arrive(&mut store, "b", "db2", &other, 1.1);
    assert_eq!(store.runs().unwrap().iter().flat_map(|run| &run.hosts).count(), 2);

    let refused = refused(compare(&store, "a", "b", &CompareOptions::default()));
    assert!(refused.contains("help: `--by host`"), "{refused}");
    let view = compare(&store, "a", "b", &by(&["host"])).unwrap();
    assert_eq!((&view.a.hosts[..], &view.b.hosts[..]), (&["db1".into()][..], &["db2".into()][..]));
    assert!(view.pairs[0].label.starts_with("host=db1→db2 "), "{}", view.pairs[0].label);
    assert!(view.unequal.iter().all(|unequal| unequal.on_purpose), "{:?}", view.unequal);
    let differ: Vec<&str> = view.unequal.iter().map(|unequal| unequal.what.as_str()).collect();
    assert_eq!(differ, ["host", "kernel", "filesystem"]);
    let hosts = view.notes.iter().find_map(|note| match note {
        CompareNote::OtherHosts(hosts) => Some(hosts),
        _ => None,
    });
    assert_eq!(hosts, Some(&[vec!["db1".to_owned()], vec!["db2".to_owned()]]));
    let of_runs = ["a", "b"].map(|run| analyse(&store, run).unwrap().run.host);
    assert_eq!(of_runs, ["db1", "db2"].map(|host| Some(host.to_owned())));
}

/// Machines of one kind differ in nothing that is recorded.
#[test]
fn earlier_runs_of_each_host_judge_that_host() {
    let (_folder, mut store) = store();
    for (n, host) in (0..6).zip(["db1", "db2"].into_iter().cycle()) {
        let factor = if host == "db1" { 1.0 } else { 2.0 };
        let drift = 1.0 + 0.002 * f64::from(n);
        arrive(&mut store, &format!("earlier-{n}"), host, &session_record(), factor * drift);
    }
    arrive(&mut store, "a", "db1", &session_record(), 1.0);
    arrive(&mut store, "b", "db2", &session_record(), 2.0);
    let interval = |asked: &CompareOptions| {
        let view = compare(&store, "a", "b", asked).unwrap();
        view.pairs[0].ratio.ci95.unwrap()
    };
    let [low, high] = interval(&by(&["host"]));
    assert!(1.8 < low && high < 2.2, "{low} {high}");
    // As runs of one machine they would be twice as far apart as these are equal.
    let [low, high] = interval(&CompareOptions::default());
    assert!(low < 1.0 && high > 3.0, "{low} {high}");
}
