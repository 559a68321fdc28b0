//! `pgdyno audit`: exit codes, what is shown, what is kept.

use crate::support::World;

/// 900 s of 16 clients, as pgbench 16 prints it.
fn pgbench(transactions: u32) -> String {
    let tps = f64::from(transactions) / 900.01;
    format!(
        "transaction type: <builtin: TPC-B (sort of)>\nscaling factor: 100\nquery mode: prepared\n\
         number of clients: 16\n\
         number of threads: 8\nduration: 900 s\n\
         number of transactions actually processed: {transactions}\n\
         latency average = {:.3} ms\ninitial connection time = 20.000 ms\n\
         tps = {tps:.6} (without initial connection time)\n\n",
        16_000.0 / tps
    )
}

fn consistent() -> String {
    [3_600_000, 3_590_000, 3_612_000].map(pgbench).concat()
}

#[test]
fn a_consistent_report_ends_well_and_a_contradiction_with_3() {
    let world = World::new();
    world.file("good.txt", &consistent());
    let good = world.run(&["audit", "good.txt"]).exits(0);
    good.prints("no finding; ").prints("checks are right");

    world.file("bad.txt", &consistent().replacen("duration: 900 s", "duration: 600 s", 1));
    let bad = world.run(&["audit", "good.txt", "bad.txt"]).exits(3);
    bad.prints("bad.txt:7: serious (transactions, likely)");
    bad.prints("| number of transactions actually processed: 3600000");

    // One measurement is worth a warning, and no failure.
    world.file("single.txt", &pgbench(3_600_000));
    world.run(&["audit", "single.txt"]).exits(0);
}

#[test]
fn json_names_rule_severity_line_message_and_what_was_computed() {
    let world = World::new();
    world.file("bad.txt", &consistent().replacen("duration: 900 s", "duration: 600 s", 1));
    let json = world.run(&["audit", "--json", "--no-store", "bad.txt"]).exits(3).json();
    let finding = &json["findings"][0];
    assert_eq!(
        (finding["rule"].as_str(), finding["severity"].as_str()),
        (Some("transactions"), Some("serious"))
    );
    assert_eq!((finding["line"].as_u64(), finding["file"].as_str()), (Some(7), Some("bad.txt")));
    assert!(finding["message"].as_str().unwrap().contains("not 600 s"));
    assert_eq!(finding["computed"]["printed_seconds"].as_f64(), Some(600.0));
    assert!(json["checked"].as_array().unwrap().len() >= 5);
    assert!(json["files"][0]["imported"].is_null());
    assert!(!world.path("data/pgdyno/store.sqlite3").exists(), "--no-store made a store");
}

#[test]
fn what_was_recognised_is_kept_once_and_shown_as_imported() {
    let world = World::new();
    world.file("good.txt", &consistent());
    let first = world.run(&["audit", "good.txt"]);
    let id = first.out.lines().find_map(|l| l.strip_prefix("imported as ")).unwrap().to_owned();
    let again = world.run(&["audit", "good.txt"]);
    assert!(
        again.out.contains(&format!("imported as {id}")),
        "the same figures are kept once: {}",
        again.out
    );

    let listed = world.run(&["list"]);
    listed.prints("imported, not measured").prints(&id);
    assert!(listed.out.contains("no runs yet"), "imported figures are no run: {}", listed.out);
    let json = world.run(&["list", "--imported", "--json"]).json();
    assert_eq!(
        (json.as_array().unwrap().len(), json[0]["provenance"].as_str()),
        (1, Some("imported"))
    );

    world
        .run(&["show", &id[..12]])
        .exits(0)
        .prints("pgdyno did not measure this")
        .prints("3600000");
    let json = world.show(&id);
    assert_eq!(json["provenance"], "imported");
    assert_eq!(json["recognised"]["runs"][0]["transactions"]["value"].as_f64(), Some(3_600_000.0));
    let page = world.page(&[&id]);
    assert_eq!((&page["kind"], &page["view"]["id"]), (&"import".into(), &id.as_str().into()));
    // Nothing that asks for runs gets it.
    world.run(&["show", "latest"]).exits(1);
    world.run(&["report", "latest", "-o", "r.html"]).exits(1);
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_nothing_is_kept() {
    let world = World::new();
    world.file("good.txt", &consistent());
    let missing = world.run(&["audit", "good.txt", "missing.txt"]);
    assert_eq!((missing.code, missing.out.as_str()), (Some(1), ""));
    missing.says("cannot read the report missing.txt");
    std::fs::write(world.path("binary"), b"\x7fELF\0\0").unwrap();
    world.run(&["audit", "binary"]).exits(1).says("it is no text").says("help:");
    assert!(!world.path("data/pgdyno/store.sqlite3").exists());
    world.run(&["audit"]).exits(1);
    // A folder in the store's place: what was found is shown, and that it could not be kept.
    world.run(&["audit", "good.txt", "--store", "."]).exits(1).prints("no finding").says("error:");
}

#[test]
fn a_report_without_figures_is_neither_right_nor_wrong() {
    let world = World::new();
    world.file("prose.txt", "PostgreSQL was fast.\n");
    let ended = world.run(&["audit", "prose.txt"]).exits(0);
    assert!(
        ended.out.contains("nothing was recognised") && !ended.out.contains("imported as"),
        "{}",
        ended.out
    );
}
