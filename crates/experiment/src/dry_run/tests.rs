use std::path::Path;

use pgdyno_model::facts::BuildSource;
use pgdyno_model::units::Bytes;
use pgdyno_storage::Wipe;

use super::*;
use crate::file::{Override, Source};
use crate::host::NoDevices;
use crate::recipes;

fn prepare(source: Source, overrides: Vec<Override>) -> ResolvedExperiment {
    ResolvedExperiment::new(source, overrides, &NoDevices).unwrap()
}

fn somewhere(resolved: &ResolvedExperiment) -> Machine {
    let mut storages = design_storages(resolved, Path::new("/disk")).unwrap();
    for planned in storages.values_mut() {
        planned.available = Some(Bytes(50_000_000_000));
    }
    let bindir = PathBuf::from("/opt/postgresql/17/bin");
    let source = BuildSource::Found { bindir: bindir.display().to_string(), how: "PATH".into() };
    let install = Install { bindir, version: "17.4".into(), major: 17, source };
    let any = Build { bindir: None, version: None };
    let other = Build { bindir: None, version: Some(16) };
    Machine {
        account: Account { name: "postgres".into(), uid: 70, gid: 70 },
        socket_base: PathBuf::from("/run"),
        default_storage: PathBuf::from("/var/lib/pgdyno"),
        programs: [
            (any, BuildPrograms::Installed(install, Judgement::Taken)),
            (other, BuildPrograms::ToFetch("16.0".into())),
        ]
        .into(),
        storages,
        files: Vec::new(),
    }
}

#[test]
fn the_quickstarts_plan_is_told_whole() {
    let seed = || vec![Override::parse("experiment.seed=1").unwrap()];
    let resolved = prepare(recipes::source("quickstart").unwrap(), seed());
    insta::assert_snapshot!(dry_run(&resolved, Some(&somewhere(&resolved))));
}

#[test]
fn a_seed_that_is_drawn_is_told_with_how_to_keep_it() {
    let resolved = prepare(recipes::source("quickstart").unwrap(), Vec::new());
    let told = dry_run(&resolved, Some(&somewhere(&resolved)));
    let keep = format!("`--set experiment.seed={}` keeps this one", resolved.plan.seed);
    assert!(told.contains(&keep), "{told}");
}

#[test]
fn who_offers_the_load_is_told_for_each_treatment() {
    let levels = "factors.generators=[\"none\", \"local:1\"]";
    let set = vec![Override::parse(levels).unwrap()];
    let resolved = prepare(recipes::source("quickstart").unwrap(), set);
    let told = dry_run(&resolved, Some(&somewhere(&resolved)));
    let treatments = resolved.plan.treatments.len();
    assert_eq!(told.matches(", generators local:1").count(), treatments / 2, "{told}");
    assert!(!told.contains(", generators none"), "{told}");
}

#[test]
fn a_build_to_be_fetched_and_a_lack_of_room_are_told() {
    let mut source = recipes::source("quickstart").unwrap();
    source.text = source.text.replace("[factors]", "[factors]\npostgres.version = [16]");
    let resolved = prepare(source, Vec::new());
    let mut here = somewhere(&resolved);
    here.storages.get_mut("disk").unwrap().available = Some(Bytes(1_000));
    let [needed, available] = [60, 50].map(|gigabytes| Bytes(gigabytes * 1_000_000_000));
    here.files = vec![FilesRoom { directory: "/d".into(), needed, available: Some(available) }];
    let told = dry_run(&resolved, Some(&here));
    assert!(told.contains("fetch PostgreSQL 16.0 from Maven Central"), "{told}");
    assert!(told.contains("not checked: 2 settings; this build is not here to be asked"), "{told}");
    assert!(told.contains("That is not enough: it would be refused"), "{told}");
    assert!(told.contains("Room in /d: 60.0 GB for files of storages; 50.0 GB free"), "{told}");
    assert!(told.contains("That is not enough: trials on storages"), "{told}");
}

#[test]
fn a_device_a_raid_and_what_is_set_on_them_are_told_step_by_step() {
    let text = include_str!("storages.toml");
    let source = Source {
        name: "stacks".into(),
        shown: "stacks".into(),
        text: text.into(),
        base: "/".into(),
    };
    let mut resolved = prepare(source, Vec::new());
    resolved.wipe =
        Wipe { devices: vec!["/dev/disk/by-id/nvme-none".into()], overwrite_signature: true };
    let told = dry_run(&resolved, Some(&somewhere(&resolved)));
    insta::assert_snapshot!(told);
}

#[test]
fn a_run_that_ends_by_itself_tells_its_looks_and_the_range_of_its_time() {
    let mut source = recipes::source("quickstart").unwrap();
    source.text =
        "[experiment]\nprecision = \"2%\"\nmargin = \"3%\"\nbudget = \"10m\"\nmax_repeats = 60\n\
                   [factors]\nclients = [1, 8]\n"
            .into();
    let resolved = prepare(source, Vec::new());
    let told = dry_run(&resolved, Some(&somewhere(&resolved)));
    for words in [
        "2 treatments x 4 to 60 repeats = 8 to 120 trials",
        "differ significantly, or shown to differ by less than 3%, or known to ±2%; looked at \
         after 4, 6, 9, 13, 19, 28, 42, 60 blocks",
        "after 4 blocks no block begins that does not fit into 10m",
        "  then up to 56 blocks more",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let time = told.lines().find(|line| line.starts_with("Time: ")).unwrap();
    assert!(time.contains(" to 10m"), "{time}");
}

#[test]
fn a_search_tells_its_steps() {
    let mut source = recipes::source("quickstart").unwrap();
    source.text = "[load]\nfind = \"max_rate\"\nslo = \"p99 < 20ms\"\nduration = \"20s\"\n".into();
    let resolved = prepare(source, Vec::new());
    let told = dry_run(&resolved, Some(&somewhere(&resolved)));
    let words = "each trial: looks for the highest rate that keeps p99 < 20ms, to 3%: steps of 5s \
                 each, the answer confirmed with \
                 20s measured after 1s warm-up";
    assert!(told.contains(words), "{told}");
}

#[test]
fn a_given_servers_plan_names_no_password() {
    let mut source = recipes::source("quickstart").unwrap();
    source.text.push_str("\n[postgres]\ndsn = \"postgresql://anna:hunter2@localhost/test\"\n");
    let told = dry_run(&prepare(source, Vec::new()), None);
    assert!(told.contains("make schema pgdyno") && !told.contains("hunter2"), "{told}");
    assert!(told.contains("not checked: names and values of settings"), "{told}");
}

#[test]
fn what_the_load_does_beyond_its_scripts_is_told() {
    let mut source = recipes::source("quickstart").unwrap();
    source.text =
        "[load]\nrate = 50\nlatency_limit = \"20ms\"\non_error = \"continue\"\nreconnect = true\n\
                   define = { batch = 2 }\n[factors]\nmax_tries = [1, 0]\n"
            .into();
    let resolved = prepare(source, Vec::new());
    let told = dry_run(&resolved, Some(&somewhere(&resolved)));
    let words = ", 50 transactions due each second, latency limit 20ms, tries without end, clients \
                 go on after \
                 errors, a connection for each transaction, :batch = 2";
    assert!(told.contains(words), "{told}");
    let first = words.replace(", tries without end", "");
    assert!(told.contains(&first), "{told}");
}
