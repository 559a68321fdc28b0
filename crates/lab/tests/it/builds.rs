//! Builds of PostgreSQL as levels of one run.

use std::sync::atomic::AtomicBool;

use crate::quickstart::quickstart;
use pgdyno_lab::run;
use pgdyno_model::facts::BuildSource;
use pgdyno_model::progress::Silent;
use pgdyno_model::record::SessionEnd;
use pgdyno_store::Store;
use pgdyno_test_support::install;

static GO_ON: AtomicBool = AtomicBool::new(false);

#[test]
fn two_folders_of_programs_are_levels_of_one_run() {
    let home = tempfile::tempdir().unwrap();
    let storage = home.path().join("storage");
    for folder in [home.path(), &storage] {
        std::fs::create_dir_all(folder).unwrap();
        // The server's account has to pass.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder, mode).unwrap();
    }
    let base = install(None).bindir;
    let head = home.path().join("head");
    std::os::unix::fs::symlink(&base, &head).unwrap();
    let builds = format!(
        "factors={{ server = {{ base = {{ \"postgres.bindir\" = \"{}\" }}, \
         head = {{ \"postgres.bindir\" = \"{}\" }} }} }}",
        base.display(),
        head.display()
    );
    let directory = format!("storage.disk.directory={}", storage.display());
    let sets = ["experiment.repeats=2", "telemetry.fsync=0s", &builds, &directory];
    let resolved = quickstart(Vec::new(), &sets);
    let told = pgdyno_lab::dry_run(&resolved).unwrap();
    assert!(told.contains(&format!("programs in {}", head.display())), "{told}");

    let store = home.path().join("store.sqlite3");
    let outcome = run::run(&resolved, &store, &Silent, &GO_ON).unwrap();
    assert_eq!((outcome.end, outcome.failed), (SessionEnd::Completed, 0));
    let store = Store::open_existing(&store).unwrap();
    let plan = store.run(&outcome.run).unwrap().plan;
    let trials = store.trials(&outcome.run).unwrap();
    assert_eq!(trials.len(), 4);
    for trial in trials {
        let wanted = plan.treatments[trial.treatment].postgres_bindir.clone().unwrap();
        let wanted = wanted.display().to_string();
        let build = trial.server.unwrap().build;
        assert!(
            matches!(&build, BuildSource::Found { bindir, .. } if *bindir == wanted),
            "{wanted}: {build:?}"
        );
    }
}
