//! `pgdyno serve`: what it answers, and what it writes.

use std::path::{Path, PathBuf};

use crate::serve_support::Served;
use crate::support::{World, elements, is_root, signal};
use pgdyno_model::record::RunState;
use pgdyno_store::Store;
use pgdyno_test_support::records::Random;
use pgdyno_test_support::{needs, synthetic};
use serde_json::{Value, json};

/// A store with two completed runs of one recipe, the second faster.
fn store(world: &World) -> PathBuf {
    let path = world.path("store.sqlite3");
    let mut store = Store::open(&path).unwrap();
    let mut random = Random(7);
    let plan = synthetic::plan(&["a", "b"], 5, &mut random);
    for (number, (id, factor)) in (0..).zip([("first-run", 1.0), ("second-run", 2.0)]) {
        synthetic::add(&mut store, (id, number), &plan, |planned| {
            factor * (1000.0 + 500.0 * planned.treatment as f64 + 3.0 * f64::from(planned.block))
        });
    }
    path
}

/// The list, once every run in it has its headline.
fn complete_list(world: &World, served: &Served) -> Value {
    let mut list = Value::Null;
    world.until("every run has its headline", || {
        list = served.document("/api/runs");
        list["pending"] == 0
    });
    list
}

#[test]
fn a_merged_store_names_the_machine_of_each_run_and_follows_the_next_merge() {
    let world = World::new();
    let plan = synthetic::plan(&["a", "b"], 3, &mut Random(7));
    for (number, host) in (0..).zip(["db1", "db2", "db3"]) {
        let mut store = Store::open(world.path(host)).unwrap();
        let run = (format!("run-{host}"), number);
        synthetic::add_on(&mut store, Some(host), (&run.0, run.1), &plan, |planned| {
            1000.0 + f64::from(planned.ordinal)
        });
    }
    let merge = |source: &str| {
        world.run(&["store", "merge", source, "-o", "all"]).exits(0);
    };
    merge("db1");
    merge("db2");
    let served = Served::start(&world, &world.path("all"), &[]);
    let hosts = |list: &Value| -> Vec<String> {
        let host =
            |row: &Value| row["host"].as_str().unwrap().split(':').next().unwrap().to_owned();
        elements(&list["runs"]).map(host).collect()
    };
    assert_eq!(hosts(&complete_list(&world, &served)), ["db2", "db1"]);
    // Into the store that is served.
    merge("db3");
    assert_eq!(hosts(&complete_list(&world, &served)), ["db3", "db2", "db1"]);
    let history = served.document("/api/history?recipe=synthetic");
    let points = history["treatments"][0]["points"].as_array().unwrap();
    let machine =
        |point: &Value| point["host"].as_str().unwrap().split(':').next().unwrap().to_owned();
    assert_eq!(points.iter().map(machine).collect::<Vec<_>>(), ["db1", "db2", "db3"]);
    let compared = served.document("/api/compare?a=run-db1&b=run-db3");
    assert_eq!(compared["view"]["a"]["hosts"][0], "db1");
    assert_eq!(compared["view"]["b"]["hosts"][0], "db3");
}

#[test]
fn runs_are_listed_with_their_answers_and_pages() {
    let world = World::new();
    let path = store(&world);
    let served = Served::start(&world, &path, &[]);
    let list = complete_list(&world, &served);
    assert_eq!(list["schema"], "pgdyno.serve-runs/1");
    let ids: Vec<&str> = elements(&list["runs"]).map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["second-run", "first-run"]);
    let row = &list["runs"][1];
    let name = path.to_str().unwrap();
    let shown_json = world.run(&["show", "first-run", "--json", "--store", name]).json();
    assert_eq!(row["headline"], shown_json["headline"]["answer"]);
    assert_eq!(row["badge"], shown_json["headline"]["badge"]);
    assert_eq!(row["state"], RunState::Completed.name());
    assert_eq!((&row["trials_done"], &row["trials_planned"]), (&json!(10), &json!(10)));
    assert_eq!(row["spark"].as_array().unwrap().len(), 10);
    assert_eq!(row["is_live"], false);
    assert_eq!(served.document("/api/show/first-run"), shown_json);
    let embedded = world.run(&["report", "first-run", "-o", "-", "--store", name]).page();
    assert_eq!(served.document("/api/page/first-run"), embedded);
    assert_eq!(served.document("/api/page/first"), embedded, "the beginning of an id is enough");
}

#[test]
fn a_comparison_is_the_page_that_report_makes() {
    let world = World::new();
    let path = store(&world);
    let served = Served::start(&world, &path, &[]);
    let args = ["report", "first-run", "second-run", "-o", "-", "--store", path.to_str().unwrap()];
    let embedded = world.run(&args).page();
    assert_eq!(served.document("/api/compare?a=first-run&b=second-run"), embedded);
    let answer = served.get("/api/compare?a=first-run&b=first-run");
    assert_eq!(answer.status, 422, "{}", answer.body);
    assert!(answer.error().1.is_some());
    assert_eq!(served.get("/api/compare?a=first-run").status, 400);
}

#[test]
fn a_recipe_has_a_history_of_each_treatment() {
    let world = World::new();
    let path = store(&world);
    let served = Served::start(&world, &path, &[]);
    let history = served.document("/api/history?recipe=synthetic");
    assert_eq!(history["schema"], "pgdyno.serve-history/1");
    assert_eq!(history["pending"], 0);
    let treatments = history["treatments"].as_array().unwrap();
    assert_eq!(treatments.len(), 2);
    let points = treatments[0]["points"].as_array().unwrap();
    let runs: Vec<&Value> = points.iter().map(|point| &point["run"]).collect();
    assert_eq!(runs, ["first-run", "second-run"], "oldest first");
    let ratio = points[1]["tps"].as_f64().unwrap() / points[0]["tps"].as_f64().unwrap();
    assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
    assert_eq!(points[0]["postgres_version"], "15.14");
    assert!(points[0]["ci95"][0].as_f64() < points[0]["tps"].as_f64());
    assert_eq!(served.get("/api/history?recipe=none").status, 404);
}

#[test]
fn notes_are_kept_beside_the_store_and_every_version_stays() {
    let world = World::new();
    let path = store(&world);
    let before = std::fs::read(&path).unwrap();
    let (one, other) = (Served::start(&world, &path, &[]), Served::start(&world, &path, &[]));
    let note = |text: &str| json!({ "text": text, "tags": ["nvme", " nvme ", ""] });
    assert_eq!(one.write_note("first-run", &note("slow"), "").status, 200);
    let answer = other.write_note("first-run", &note("slow <b>disk</b>"), "");
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(!answer.body.contains('<'), "{}", answer.body);
    for served in [&one, &other] {
        let row = &served.document("/api/runs")["runs"][1];
        assert_eq!(row["note"], "slow <b>disk</b>");
        assert_eq!(row["tags"], json!(["nvme"]));
        let history = served.document("/api/notes/first-run");
        let texts: Vec<&Value> = elements(&history["versions"]).map(|v| &v["text"]).collect();
        assert_eq!(texts, ["slow <b>disk</b>", "slow"]);
    }
    assert_eq!(one.write_note("no-run", &note("x"), "").status, 404);
    assert_eq!(one.write_note("first", &note("x"), "").status, 404);
    let long = one.write_note("first-run", &note(&"x".repeat(10_001)), "");
    assert_eq!(long.status, 422, "{}", long.body);
    assert_eq!(one.write_note("first-run", &note(&"x".repeat(70_000)), "").status, 413);
    assert_eq!(one.write_note("first-run", &json!([1]), "").status, 422);
    assert_eq!((one.end(), other.end()), (Some(0), Some(0)));
    assert_eq!(std::fs::read(&path).unwrap(), before, "the store was written");
}

#[test]
fn a_restarted_server_knows_the_headlines_of_the_last() {
    let world = World::new();
    let path = store(&world);
    let served = Served::start(&world, &path, &[]);
    let list = complete_list(&world, &served);
    served.end();
    let again = Served::start(&world, &path, &[]);
    assert_eq!(again.document("/api/runs"), list, "without a wait");
    // What is added to a run makes its digest be made anew; so is that of a broken cache.
    again.end();
    let cache = world.path("store.sqlite3.cache");
    std::fs::write(&cache, "no database at all, but as long as one has to be ".repeat(40)).unwrap();
    let third = Served::start(&world, &path, &[]);
    assert_eq!(complete_list(&world, &third), list);
}

#[test]
fn a_run_whose_process_is_gone_counts_as_interrupted() {
    let world = World::new();
    let path = world.path("store.sqlite3");
    let plan = synthetic::plan(&["a"], 2, &mut Random(1));
    let mut store = Store::open(&path).unwrap();
    synthetic::begin(&mut store, "dead-run", "synthetic", 1, &plan);
    // Its lock goes with whoever holds it.
    drop(store);
    let served = Served::start(&world, &path, &[]);
    assert_eq!(served.document("/api/runs")["runs"][0]["state"], "interrupted");
    assert_eq!(served.document("/api/page/dead-run")["view"]["run"]["state"], "interrupted");
}

#[test]
fn a_run_that_is_added_shows_without_a_restart() {
    let world = World::new();
    let path = store(&world);
    let served = Served::start(&world, &path, &[]);
    assert_eq!(complete_list(&world, &served)["runs"].as_array().unwrap().len(), 2);
    let plan = synthetic::plan(&["a"], 2, &mut Random(1));
    let mut added = Store::open(&path).unwrap();
    synthetic::add(&mut added, ("third-run", 3), &plan, |_| 100.0);
    assert_eq!(served.document("/api/runs")["runs"][0]["id"], "third-run");
    // The file is put in the place of another.
    let copy = world.path("copy.sqlite3");
    std::fs::copy(&path, &copy).unwrap();
    let mut copied = Store::open(&copy).unwrap();
    synthetic::add(&mut copied, ("fourth-run", 4), &plan, |_| 100.0);
    drop(copied);
    std::fs::rename(&copy, &path).unwrap();
    assert_eq!(served.document("/api/runs")["runs"][0]["id"], "fourth-run");
    assert_eq!(served.get("/api/page/fourth-run").status, 200);
}

#[test]
fn every_path_outside_the_api_is_the_front_end_without_data() {
    let world = World::new();
    let path = store(&world);
    let served = Served::start(&world, &path, &[]);
    for page in ["/", "/runs/first-run", "/compare?a=x&b=y", "/live/any", "/a/b/../../etc/passwd"] {
        let answer = served.get(page);
        assert_eq!(answer.status, 200, "{page}");
        assert!(answer.body.starts_with("<!doctype html>"), "{page}");
        assert!(answer.body.contains("id=\"pgdyno-server\""), "{page}");
        assert!(!answer.body.contains("id=\"pgdyno-data\""), "{page}");
        for header in [
            "content-security-policy: default-src 'none'; script-src 'sha256-",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
        ] {
            assert!(answer.head.contains(header), "{page} lacks {header}: {}", answer.head);
        }
        assert!(!answer.head.contains("access-control-"), "{page}");
    }
}

#[test]
fn a_store_on_a_read_only_filesystem_is_served_without_notes() {
    needs!(is_root);
    let world = World::new();
    let path = store(&world);
    let folder = world.path("read-only");
    std::fs::create_dir(&folder).unwrap();
    let _mounted = ReadOnly::mount(path.parent().unwrap(), &folder);
    let served = Served::start(&world, &folder.join("store.sqlite3"), &[]);
    let list = complete_list(&world, &served);
    assert_eq!(list["runs"].as_array().unwrap().len(), 2);
    let info = served.document("/api/info");
    assert_eq!(info["can_write_notes"], false);
    assert!(info["notes_reason"].as_str().unwrap().contains("Read-only file system"), "{info}");
    let answer = served.write_note("first-run", &json!({ "text": "x", "tags": [] }), "");
    assert_eq!(answer.status, 503);
    assert!(answer.error().1.is_some());
    served.end();
}

/// A folder that is mounted read-only elsewhere.
struct ReadOnly(PathBuf);

impl ReadOnly {
    fn mount(what: &Path, at: &Path) -> Self {
        let mount = |options: &str, with: &[&Path]| {
            let mut command = std::process::Command::new("mount");
            assert!(command.args(["-o", options]).args(with).status().unwrap().success());
        };
        mount("bind", &[what, at]);
        let mounted = Self(at.to_owned());
        mount("remount,bind,ro", &[at]);
        mounted
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_closed_terminal_ends_a_server_unless_nohup_started_it() {
    let world = World::new();
    let path = store(&world);
    let reset = ["env", "--default-signal=HUP"];
    let served = Served::start_by(&world, &reset, &path, &[]);
    signal(served.pid(), "HUP");
    assert_eq!(served.wait(), Some(0));
    let served = Served::start_by(&world, &["nohup"], &path, &[]);
    signal(served.pid(), "HUP");
    assert_eq!(served.get("/api/info").status, 200);
    assert_eq!(served.end(), Some(0));
}
