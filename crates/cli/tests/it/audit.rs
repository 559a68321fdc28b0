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
    let good = world.run(&["audit", "good.txt"]);
    assert_eq!(good.code, Some(0), "{}", good.err);
    assert!(
        good.out.contains("no finding; ") && good.out.contains("checks are right"),
        "{}",
        good.out
    );

    world.file("bad.txt", &consistent().replacen("duration: 900 s", "duration: 600 s", 1));
    let bad = world.run(&["audit", "good.txt", "bad.txt"]);
    assert_eq!(bad.code, Some(3), "{}", bad.out);
    assert!(bad.out.contains("bad.txt:7: serious (transactions, likely)"), "{}", bad.out);
    assert!(
        bad.out.contains("| number of transactions actually processed: 3600000"),
        "{}",
        bad.out
    );

    // One measurement is worth a warning, and no failure.
    world.file("single.txt", &pgbench(3_600_000));
    assert_eq!(world.run(&["audit", "single.txt"]).code, Some(0));
}

#[test]
fn json_names_rule_severity_line_message_and_what_was_computed() {
    let world = World::new();
    world.file("bad.txt", &consistent().replacen("duration: 900 s", "duration: 600 s", 1));
    let ended = world.run(&["audit", "--json", "--no-store", "bad.txt"]);
    assert_eq!(ended.code, Some(3));
    let json: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
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
    assert!(
        listed.out.contains("imported, not measured") && listed.out.contains(&id),
        "{}",
        listed.out
    );
    assert!(listed.out.contains("no runs yet"), "imported figures are no run: {}", listed.out);
    let json: serde_json::Value =
        serde_json::from_str(&world.run(&["list", "--imported", "--json"]).out).unwrap();
    assert_eq!(
        (json.as_array().unwrap().len(), json[0]["provenance"].as_str()),
        (1, Some("imported"))
    );

    let shown = world.run(&["show", &id[..12]]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert!(
        shown.out.contains("pgdyno did not measure this") && shown.out.contains("3600000"),
        "{}",
        shown.out
    );
    let json = world.show(&id);
    assert_eq!(json["provenance"], "imported");
    assert_eq!(json["recognised"]["runs"][0]["transactions"]["value"].as_f64(), Some(3_600_000.0));
    let page = world.page(&[&id]);
    assert_eq!((&page["kind"], &page["view"]["id"]), (&"import".into(), &id.as_str().into()));
    // Nothing that asks for runs gets it.
    assert_eq!(world.run(&["show", "latest"]).code, Some(1));
    assert_eq!(world.run(&["report", "latest", "-o", "r.html"]).code, Some(1));
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_nothing_is_kept() {
    let world = World::new();
    world.file("good.txt", &consistent());
    let missing = world.run(&["audit", "good.txt", "missing.txt"]);
    assert_eq!((missing.code, missing.out.as_str()), (Some(1), ""));
    assert!(missing.err.contains("cannot read the report missing.txt"), "{}", missing.err);
    std::fs::write(world.path("binary"), b"\x7fELF\0\0").unwrap();
    let binary = world.run(&["audit", "binary"]);
    assert_eq!(binary.code, Some(1));
    assert!(binary.err.contains("it is no text") && binary.err.contains("help:"), "{}", binary.err);
    assert!(!world.path("data/pgdyno/store.sqlite3").exists());
    assert_eq!(world.run(&["audit"]).code, Some(1));
    // A folder in the store's place: what was found is shown, and that it could not be kept.
    let unkept = world.run(&["audit", "good.txt", "--store", "."]);
    assert_eq!(unkept.code, Some(1));
    assert!(
        unkept.out.contains("no finding") && unkept.err.contains("error:"),
        "{}{}",
        unkept.out,
        unkept.err
    );
}

#[test]
fn a_report_without_figures_is_neither_right_nor_wrong() {
    let world = World::new();
    world.file("prose.txt", "PostgreSQL was fast.\n");
    let ended = world.run(&["audit", "prose.txt"]);
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.out.contains("nothing was recognised") && !ended.out.contains("imported as"),
        "{}",
        ended.out
    );
}
