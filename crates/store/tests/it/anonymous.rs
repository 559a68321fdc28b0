//! An anonymous archive has a run's figures, and not its machine's names.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pgdyno_analysis::analyse;
use pgdyno_model::facts::BlockDevice;
use pgdyno_model::record::SessionEnd;
use pgdyno_store::{Identity, Store, Stored};
use pgdyno_test_support::records::probes::disk_probe;
use pgdyno_test_support::records::{RUN, add_run, plan, run_record, session_record, trial};

/// Texts that identify the machine of the run and of the probe.
const NAMES: [&str; 6] = ["host-of-anna", "1d-of-machine", "5d1c", "root=UUID", "s3r1al", "w0rld"];

#[test]
fn an_anonymous_archive_is_whole_but_for_what_identifies_its_machine() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path().join("store")).unwrap();
    let mut session = session_record();
    session.owner.boot_id = NAMES[2].into();
    session.host.name = Some(NAMES[0].into());
    session.host.id = Some(NAMES[1].into());
    session.host.settings.cmdline = Some(format!("quiet {}", NAMES[3]));
    let disk = BlockDevice {
        serial: Some(NAMES[4].into()),
        wwn: Some(NAMES[5].into()),
        ..BlockDevice::default()
    };
    session.storage[0].devices = vec![BlockDevice { on: vec![disk], ..BlockDevice::default() }];
    let record = run_record(plan(1));
    let trials = record.plan.trials.iter().map(|planned| trial(&record.plan, *planned));
    add_run(&mut store, &record, &session, SessionEnd::Completed, trials.collect::<Vec<_>>());
    let mut probe = disk_probe();
    probe.host = session.host.clone();
    let probed = probe.id.clone();
    store.add_probe(None, &probe).unwrap();

    let records = [Stored::Run(RUN.into()), Stored::Probe(probed.clone())];
    let archived = |name: &str, identity| {
        let file = folder.path().join(name);
        store.archive(&records, &file, identity, Arc::new(AtomicBool::new(false))).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let told: Vec<&str> = NAMES
            .into_iter()
            .filter(|name| bytes.windows(name.len()).any(|part| part == name.as_bytes()))
            .collect();
        (Store::open_for_reading(&file).unwrap(), told)
    };
    let (_, told) = archived("whole", Identity::Kept);
    assert_eq!(told, NAMES);
    let (anonymous, told) = archived("anonymous", Identity::Removed);
    assert_eq!(told, [""; 0]);

    assert!(anonymous.verify(&[]).unwrap().sound);
    let (before, mut after) = (analyse(&store, RUN).unwrap(), analyse(&anonymous, RUN).unwrap());
    let host = &after.sessions[0].host;
    assert_eq!((&host.cpu_model, host.cpus, &host.name), (&session.host.cpu_model, 2, &None));
    assert_eq!(anonymous.probe(&probed).unwrap().host.name, None);
    after.sessions = before.sessions.clone();
    let json = |view| serde_json::to_value(view).unwrap();
    assert_eq!(json(&after), json(&before), "nothing else differs");
}
