//! The write cache of a RAID controller as a factor.
//!
//! No controller is here. A script in MegaCli's place keeps the policy in a file, answers in
//! MegaCli's words, and notes how it was called.

use pgdyno_test_support::{needs, test_name};
use std::os::unix::fs::PermissionsExt;

use crate::support::{self, Ended, World, elements, ended, is_root};

/// Volume 2 of controller 1 writes back at first.
fn controller(world: &World) {
    let (policy, calls) = (world.file("policy", "WriteBack"), world.path("calls"));
    let script = format!(
        "#!/bin/sh\n\
         echo \"$*\" >> {calls}\n\
         case \"$*\" in\n\
         '-LDSetProp WB -L2 -a1 -NoLog') printf WriteBack > {policy} ;;\n\
         '-LDSetProp WT -L2 -a1 -NoLog') printf WriteThrough > {policy} ;;\n\
         '-LDGetProp -Cache -L2 -a1 -NoLog')\n\
         echo \"Adapter 1-VD 2(target id: 2): Cache Policy:$(cat {policy}), ReadAheadNone, Direct, \
         No Write Cache if bad BBU\" ;;\n\
         *) exit 1 ;;\n\
         esac\n",
        calls = calls.display(),
        policy = policy.display()
    );
    let program = world.file("bin/MegaCli64", &script);
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(world: &World, sets: &[&str], more: &[&str]) -> Ended {
    let directory = format!("storage.disk.directory={}", world.disk().display());
    let volume =
        "storage.disk.device.raid_volume={ tool = \"megacli\", controller = 1, volume = 2 }";
    let sets: Vec<&str> =
        [directory.as_str(), volume, "experiment.repeats=1"].iter().chain(sets).copied().collect();
    let mut args = support::quick(world, "quickstart", &sets);
    args.extend(more.iter().map(|word| (*word).to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(world.path("bin")).chain(std::env::split_paths(&path));
    let mut command = world.command(&args);
    ended(command.env("PATH", std::env::join_paths(folders).unwrap()).output().unwrap())
}

fn calls(world: &World) -> Vec<String> {
    let calls = std::fs::read_to_string(world.path("calls")).unwrap_or_default();
    calls.lines().map(str::to_owned).collect()
}

const POLICIES: &str = "factors={ \"device.raid_cache\" = [\"write-back\", \"write-through\"] }";

#[test]
fn a_missing_program_is_named_in_the_dry_run_with_where_it_comes_from() {
    let world = World::new();
    let planned = run(&world, &[POLICIES], &["--dry-run"]).exits(0);
    let set = "MegaCli64 -LDSetProp WT -L2 -a1 -NoLog";
    assert!(planned.out.contains(set), "the dry run shows the command: {}", planned.out);
    if is_root(test_name!()) {
        let why = "the program megacli is not installed";
        planned.prints(why);
    }
}

#[test]
fn the_policy_is_a_factor_and_is_put_back_afterwards() {
    needs!(is_root);
    let world = World::new();
    controller(&world);
    run(&world, &[POLICIES], &[]).exits(0);
    assert_eq!(std::fs::read_to_string(world.path("policy")).unwrap(), "WriteBack");
    let sets: Vec<String> =
        calls(&world).into_iter().filter(|call| call.starts_with("-LDSetProp")).collect();
    assert_eq!(sets, ["-LDSetProp WT -L2 -a1 -NoLog", "-LDSetProp WB -L2 -a1 -NoLog"]);
    let view = world.show("latest");
    let levels: Vec<&str> = elements(&view["treatments"])
        .map(|t| t["factors"]["device.raid_cache"].as_str().unwrap())
        .collect();
    assert_eq!(levels, ["write-back", "write-through"]);
    world.assert_nothing_left();
}

#[test]
fn a_policy_that_is_none_or_of_no_volume_is_refused() {
    let world = World::new();
    run(&world, &["storage.disk.device.raid_cache=sometimes"], &["--dry-run"])
        .exits(1)
        .says("write-through");
    let set = "factors={ \"device.raid_cache\" = [\"write-back\"] }";
    world.run(&["run", "quickstart", "--dry-run", "--set", set]).exits(1).says("raid_volume");
}
