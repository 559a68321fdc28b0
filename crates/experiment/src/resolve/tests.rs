use std::path::PathBuf;

use super::*;
use crate::file::{Source, parse};
use crate::host::NoDevices;
use pgdyno_model::Advice;

fn plan(text: &str) -> Result<Plan, ExperimentError> {
    let source = Source {
        name: "try".into(),
        shown: "try".into(),
        text: text.into(),
        base: PathBuf::from("/"),
    };
    let experiment = parse(&source, &[]).unwrap();
    let shared_disks = SharedDisks::new(&experiment.storage, &NoDevices);
    resolve(&experiment, experiment.seed.unwrap_or(1), &shared_disks).map(|(plan, _)| plan)
}

fn sequence(plan: &Plan) -> Vec<usize> {
    plan.trials.iter().map(|t| t.treatment).collect()
}

const TWO_BY_TWO: &str = "[factors]\nsynchronous_commit = [\"on\", \"off\"]\nclients = [1, 8]\n";

#[test]
fn blocks_alternate_their_direction() {
    let plan = plan(&format!("[experiment]\norder = \"interleaved\"\n{TWO_BY_TWO}")).unwrap();
    assert_eq!(sequence(&plan), [0, 1, 2, 3, 3, 2, 1, 0, 0, 1, 2, 3]);
    assert_eq!(plan.treatments[3].levels.to_string(), "synchronous_commit=off clients=8");
    assert_eq!(plan.treatments[3].settings["synchronous_commit"], "off");
    assert_eq!((plan.trials[4].block, plan.trials[4].repeat), (2, 2));
}

#[test]
fn a_drawn_order_is_the_seeds_and_each_block_is_whole() {
    let text = format!("[experiment]\nseed = 7\n{TWO_BY_TWO}");
    let (first, second) = (plan(&text).unwrap(), plan(&text).unwrap());
    assert_eq!(first, second);
    let mut block: Vec<usize> = sequence(&first)[4..8].to_vec();
    block.sort_unstable();
    assert_eq!(block, [0, 1, 2, 3]);
    assert_ne!(sequence(&first), sequence(&plan(&text.replace("seed = 7", "seed = 8")).unwrap()));
}

#[test]
fn exclusions_leave_out_what_they_name() {
    let plan =
        plan(&format!("{TWO_BY_TWO}[[exclude]]\nsynchronous_commit = \"off\"\nclients = 1\n"))
            .unwrap();
    assert_eq!(plan.treatments.len(), 3);
    assert_eq!(plan.trials.len(), 9);
}

#[test]
fn threads_are_as_many_as_there_are_clients_for() {
    let plan = plan("[factors]\nclients = [1, 8]\n[load]\nthreads = 4\n").unwrap();
    assert_eq!([plan.treatments[0].threads, plan.treatments[1].threads], [1, 4]);
}

#[test]
fn names_that_mean_nothing_are_refused_with_what_there_is() {
    let help = |text: &str| {
        let e = plan(text).unwrap_err();
        format!("{e}\nhelp: {}", e.help().unwrap_or_default())
    };
    insta::assert_snapshot!(help("[factors]\nstorage = [\"nvme\"]\n[storage.nvm]\n\
                                  [storage.hdd]\n"), @"
    cannot put PGDATA on storage `nvme`: there is no `[storage.nvme]`
    help: described are nvm, hdd
    ");
    insta::assert_snapshot!(help("[storage.nvm]\n[storage.hdd]\n"), @r#"
    cannot choose a storage: hdd, nvm are described, and no factor `storage` names which to use
    help: add `storage = ["hdd"]` to `[factors]`
    "#);
    insta::assert_snapshot!(help("[factors]\nworkload = [\"tpcb\"]\n"), @"
    cannot load workload `tpcb`: there is no built-in workload and no folder of that name
    help: built in are tpcb-like, tprocc, htap, ycsb-a, ycsb-b, ycsb-c, ycsb-d, ycsb-e, ycsb-f, \
    ingest, numbers, group-commit, select-only, user-login, user-logout, simple-update, \
    numbers-delete, numbers-insert, numbers-update, numbers-updated, tprocc-statements, \
    group-commit-block, numbers-vacuumed, numbers-reindexed, numbers-updated-6, \
    numbers-updated-50, numbers-updated-100, group-commit-function, user-login-setrandom, \
    sysbench-oltp-read-only, sysbench-oltp-read-write, sysbench-oltp-write-only; a folder of your \
    own is named with a \
    slash (`./name`) and holds a workload.toml
    ");
    insta::assert_snapshot!(help("[factors]\nport = [1, 2]\n"), @"
    cannot set `port`: pgdyno sets it itself, so that its server stays private
    help: take it out of the file
    ");
    insta::assert_snapshot!(help("[factors]\nthreads = [1, 4]\n"), @"
    4 threads for 1 clients (threads=4): a thread would have no client
    help: exclude the combination, or give it more clients
    ");
    insta::assert_snapshot!(help("[factors]\nclients = [1]\n[[exclude]]\nclients = 1\n"), @"
    nothing is left to run: `[[exclude]]` leaves out every treatment
    help: remove an `[[exclude]]`, or add levels
    ");
    let sought =
        help("[factors]\nrate = [50]\n[load]\nfind = \"max_rate\"\nslo = \"p99 < 20ms\"\n");
    assert!(sought.contains("cannot vary `rate` and look for the highest one"), "{sought}");
    let mixed = "[factors]\nserver = { a = { \"postgres.dsn\" = \"host=x\" }, b = {} }\n";
    insta::assert_snapshot!(help(mixed), @"
    no server for server=b: other levels name a server by `postgres.dsn`
    help: give every level a `postgres.dsn`, or `[postgres] dsn` for those that have none
    ");
    insta::assert_snapshot!(help("[factors]\npostgres.version = [15]\n[postgres]\n\
                                  dsn = \"host=x\"\n"), @"
    cannot vary `postgres.version` on a server that pgdyno does not own (`postgres.dsn`)
    help: leave out `postgres.dsn`: pgdyno then makes a server of its own
    ");
}

#[test]
fn a_storage_without_a_name_is_not_the_only_one() {
    let error = plan("[factors]\nstorage = [\"\"]\n[storage.nvm]\n").unwrap_err();
    assert!(matches!(error, ExperimentError::Refused { .. }), "{error:?}");
}

#[test]
fn groups_are_the_workloads_with_what_the_experiment_sets() {
    let text = "[workload]\nname = \"htap\"\n[groups.writers]\nrate = 500\n\
                [factors]\n\"groups.analysts.clients\" = [1, 4]\n[load]\nthreads = 3\n";
    let plan = plan(text).unwrap();
    assert_eq!(plan.headline.as_deref(), Some("transfers"));
    let [few, many] = &plan.treatments[..] else { panic!() };
    assert_eq!((few.clients, many.clients, few.threads), (9, 12, 3));
    let told: Vec<String> = many.groups.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "writers: 8 clients, transactions due each second: 500",
            "analysts: 4 clients, think time 100ms"
        ]
    );
    assert!(!few.has_rate() && !few.is_closed_loop() && !few.is_loaded_alike(many));
    assert_eq!(many.levels.to_string(), "groups.analysts.clients=4");
}

#[test]
fn groups_that_do_not_go_together_are_refused() {
    let error = |text: &str| {
        let e = plan(&format!("[workload]\nname = \"htap\"\n{text}")).unwrap_err();
        format!("{e}\nhelp: {}", e.help().unwrap_or_default())
    };
    let said: Vec<String> = [
        "[load]\nclients = 4\n",
        "[factors]\nclients = [4, 8]\n",
        "[load]\nrate = 50\n",
        "[load]\nfind = \"max_rate\"\nslo = \"p99 < 20ms\"\n",
        "[groups.analysts]\nrate = 5\n",
        "[factors]\ngroups.readers.rate = [5]\n",
        "scale = 2\n[factors]\nworkload = [\"htap\", \"tpcb-like\"]\n",
        "[factors]\nworkload = [\"tpcb-like\"]\n[groups.analysts]\nclients = 2\n",
        "[groups.writers]\nrate = [[\"60s\", 5]]\n[load]\nduration = \"5s\"\n",
    ]
    .into_iter()
    .map(error)
    .collect();
    insta::assert_snapshot!(said.join("\n\n"));
}

#[test]
fn a_load_defines_variables_beside_those_of_its_workload() {
    let text = "[workload]\nname = \"sysbench-oltp-write-only\"\n\
        [load]\ndefine = { index_updates = 0, mine = 7 }\n";
    let define = plan(text).unwrap().treatments.remove(0).options.define;
    let (index, own) = (define["index_updates"].as_str(), define["mine"].as_str());
    assert_eq!((index, own, define["delete_inserts"].as_str()), ("0", "7", "1"));
}

#[test]
fn pauses_are_the_workloads_unless_the_load_multiplies_them() {
    let options = |text: &str| {
        let plan = plan(&format!("[workload]\nname = \"tprocc\"\n{text}"));
        plan.map(|plan| plan.treatments.iter().map(|t| t.options.pauses).collect::<Vec<_>>())
    };
    assert_eq!(options("").unwrap(), [Some(0.0)]);
    assert_eq!(options("[load]\npauses = 0.1\n").unwrap(), [Some(0.1)]);
    assert_eq!(options("[factors]\npauses = [0, 1]\n").unwrap(), [Some(0.0), Some(1.0)]);
    assert_eq!(options("[load]\nrate = 5\n").unwrap(), [Some(0.0)]);
    let said: Vec<String> = [
        "[load]\npauses = 1\nrate = 5\n",
        "[load]\npauses = 1\nfind = \"max_rate\"\nslo = \"p99 < 20ms\"\n",
        "[factors]\nworkload = [\"tpcb-like\"]\n[load]\npauses = 1\n",
    ]
    .into_iter()
    .map(|text| {
        let e = options(text).unwrap_err();
        format!("{e}\nhelp: {}", e.help().unwrap_or_default())
    })
    .collect();
    insta::assert_snapshot!(said.join("\n\n"));
}
