//! `pgdyno doctor` on this machine, whatever it is.

use crate::support::World;
use serde_json::Value;

fn examined(world: &World, more: &[&str]) -> Value {
    let disk = world.disk();
    let mut arguments = vec!["doctor", disk.to_str().unwrap(), "--json"];
    arguments.extend(more);
    world.run(&arguments).exits(0).json()
}

/// The serial numbers of all devices in a tree.
fn serials(devices: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for device in devices.as_array().unwrap() {
        all.extend(device["serial"].as_str().map(str::to_owned));
        all.extend(serials(&device["on"]));
    }
    all
}

#[test]
fn what_is_advised_has_a_severity_a_remedy_and_a_source() {
    let world = World::new();
    let found = examined(&world, &[]);
    assert!(found["host"]["settings"]["sysctl"]["vm.swappiness"].is_string(), "{found}");
    assert!(found["directory"]["storage"]["filesystem"].is_string(), "{found}");
    for advice in found["advice"].as_array().unwrap() {
        assert!(
            ["danger", "warning", "note"].contains(&advice["severity"].as_str().unwrap()),
            "{advice}"
        );
        assert!(
            !advice["remedy"].as_array().unwrap().is_empty() && advice["source"].is_string(),
            "{advice}"
        );
    }
    // Whatever the machine, some rules apply to it.
    let judged = |what: &str| found[what].as_array().unwrap().len();
    assert!(judged("advice") + judged("fine") + judged("unseen") > 10, "{found}");
}

#[test]
fn serial_numbers_are_hashed_unless_they_are_to_be_kept() {
    let world = World::new();
    let of = |more: &[&str]| serials(&examined(&world, more)["directory"]["storage"]["devices"]);
    let (hashed, kept) = (of(&[]), of(&["--keep-serials"]));
    assert_eq!(hashed.len(), kept.len());
    assert!(hashed.iter().all(|s| s.starts_with("sha256:")), "{hashed:?}");
    assert!(kept.iter().all(|s| !s.starts_with("sha256:")), "{kept:?}");
}

#[test]
fn the_page_says_all_that_the_json_advises() {
    let world = World::new();
    let disk = world.disk();
    let page = world.run(&["doctor", disk.to_str().unwrap()]).out;
    for advice in examined(&world, &[])["advice"].as_array().unwrap() {
        let remedy = advice["remedy"][0].as_str().unwrap();
        assert!(page.contains(&format!("Do: {remedy}\n")), "{remedy}: {page}");
    }
    assert!(page.contains("checked and fine"), "{page}");
}
