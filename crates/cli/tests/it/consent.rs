//! As root, commands of files that another account may change are run only where the file was
//! named.

use pgdyno_test_support::{needs, test_name};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use crate::pgbench_support::Server;
use crate::support::{Ended, World, quick};

/// An account that owns nothing.
const NOBODY: u32 = 65534;

/// Returns whether the process is root; otherwise says that `test` is skipped.
fn is_root(test: &str) -> bool {
    pgdyno_test_support::is_root(test, "only root has anything to lose here")
}

fn give_away(path: &Path) {
    chown(path, Some(NOBODY), None).unwrap();
}

/// Runs the experiment at `file` with what makes it short, and `more`.
fn run(world: &World, file: &Path, more: &[&str]) -> Ended {
    let mut args =
        quick(world, file.to_str().unwrap(), &["experiment.repeats=1", "factors.clients=[1]"]);
    args.extend(more.iter().map(|word| (*word).to_owned()));
    world.run(&args)
}

/// A quickstart of the user's own that makes `proof` before each trial.
fn experiment(proof: &Path) -> String {
    format!(
        "[experiment]\nrepeats = 1\n[factors]\nclients = [1]\n[between]\n\
         command = [\"touch\", {:?}]\n",
        proof.to_str().unwrap()
    )
}

#[test]
fn an_experiment_of_anothers_runs_no_command_as_root_unless_it_is_named() {
    needs!(is_root);
    let world = World::new();
    let proof = world.path("proof");
    let file = world.file("theirs/experiment.toml", &experiment(&proof));
    let folder = file.parent().unwrap();
    let refused = |why: &str| {
        let ended = run(&world, &file, &[]);
        assert_eq!(ended.code, Some(1), "{why}: {}", ended.err);
        assert!(
            ended.err.contains("between.command") && ended.err.contains("--trust"),
            "{why}: {}",
            ended.err
        );
        assert!(!proof.exists(), "{why}");
        assert_eq!(world.trials_stored(), 0);
        world.assert_nothing_left();
    };
    give_away(&file);
    refused("the file is another's");
    chown(&file, Some(0), None).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    refused("others may write it");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    give_away(folder);
    refused("its folder is another's");
    let link = world.path("link.toml");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let through = run(&world, &link, &[]);
    assert_eq!(through.code, Some(1), "through a link of root's: {}", through.err);
    // What it would do can be looked at.
    assert_eq!(run(&world, &file, &["--dry-run"]).code, Some(0));
    assert!(!proof.exists());

    let named = run(&world, &file, &["--trust", folder.to_str().unwrap()]);
    assert_eq!(named.code, Some(0), "{}", named.err);
    assert!(proof.exists(), "it was trusted by name");
}

#[test]
fn files_of_roots_own_and_those_without_commands_are_asked_nothing() {
    needs!(is_root);
    let world = World::new();
    let proof = world.path("proof");
    let own = world.file("own.toml", &experiment(&proof));
    let ended = run(&world, &own, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(proof.exists());
    let harmless =
        world.file("theirs/harmless.toml", "[experiment]\nrepeats = 1\n[factors]\nclients = [1]\n");
    give_away(&harmless);
    let ended = run(&world, &harmless, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

#[test]
fn programs_that_anothers_experiment_names_are_not_run_as_root_not_even_by_a_dry_run() {
    needs!(is_root);
    let world = World::new();
    let proof = world.path("proof");
    for program in ["postgres", "initdb", "pg_ctl", "pg_config", "pg_controldata"] {
        let script =
            format!("#!/bin/sh\ntouch {}\necho \"postgres (PostgreSQL) 15.1\"\n", proof.display());
        let program = world.file(&format!("theirs/bin/{program}"), &script);
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let bindir = world.path("theirs/bin");
    let text = format!(
        "[experiment]\nrepeats = 1\n[factors]\nclients = [1]\n[postgres]\nbindir = {bindir:?}\n"
    );
    let file = world.file("theirs/experiment.toml", &text);
    give_away(&file);
    for more in [&["--dry-run"] as &[&str], &[]] {
        let refused = run(&world, &file, more);
        assert_eq!(refused.code, Some(1), "{more:?}: {}", refused.err);
        assert!(
            refused.err.contains("postgres.bindir") && refused.err.contains("--trust"),
            "{}",
            refused.err
        );
        assert!(!proof.exists(), "{more:?}");
    }
    run(&world, &file, &["--dry-run", "--trust", file.to_str().unwrap()]);
    assert!(proof.exists(), "it was trusted by name");
}

#[test]
fn a_workloads_script_of_anothers_runs_no_shell_as_root_unless_it_is_named() {
    needs!(is_root);
    let world = World::new();
    let proof = world.path("proof");
    let toml = "description = \"one\"\n[data]\nof = \"tpcb-like\"\n[[script]]\nfile = \"s.sql\"\n";
    let folder = world.file("theirs/workload.toml", toml).parent().unwrap().to_owned();
    let script =
        world.file("theirs/s.sql", &format!("\\shell touch {}\nSELECT 1;\n", proof.display()));
    let own = world.file("own.toml", "[experiment]\nrepeats = 1\n[factors]\nclients = [1]\n");
    let name = format!("workload.name={}", folder.display());
    give_away(&script);
    let refused = run(&world, &own, &["--set", &name]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.err.contains("\\shell") && refused.err.contains("s.sql"), "{}", refused.err);
    assert!(!proof.exists());
    let named = run(&world, &own, &["--set", &name, "--trust", script.to_str().unwrap()]);
    assert_eq!(named.code, Some(0), "{}", named.err);
    assert!(proof.exists());
}

#[test]
fn pgbenchs_shell_of_anothers_script_runs_as_root_only_where_it_is_named() {
    let test = test_name!();
    needs!(is_root);
    let Some(server) = Server::newest(test) else { return };
    let proof = server.directory("our").join("proof");
    server.script("s.sql", &format!("\\setshell x echo 1\n\\shell touch {}\n", proof.display()));
    server.script("harmless.sql", "SELECT 1;\n");
    let script = server.directory("our").join("s.sql");
    give_away(&script);
    give_away(&server.directory("our").join("harmless.sql"));
    let refused = server.run("our", "-n -t 1 -f s.sql");
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.err.contains("pgbench: error: will not run its \\shell"), "{}", refused.err);
    assert!(refused.err.contains("--trust") && !proof.exists(), "{}", refused.err);
    assert_eq!(server.run("our", "-n -t 1 -f harmless.sql").code, Some(0));
    let named = server.run("our", "-n -t 1 -f s.sql --trust=s.sql");
    assert_eq!(named.code, Some(0), "{}", named.err);
    assert!(proof.exists());
    // root's own is asked nothing, and neither is the account that owns it.
    std::fs::remove_file(&proof).unwrap();
    chown(&script, Some(0), None).unwrap();
    assert_eq!(server.run("our", "-n -t 1 -f s.sql").code, Some(0));
    assert!(proof.exists());
}

#[test]
fn root_neither_resumes_nor_writes_a_store_of_anothers_unless_it_is_named() {
    needs!(is_root);
    let world = World::new();
    let proof = world.path("proof");
    let file = world.file("own.toml", &experiment(&proof));
    let store = world.path("theirs/store.sqlite3");
    std::fs::create_dir(store.parent().unwrap()).unwrap();
    let store_text = store.to_str().unwrap().to_owned();
    let with_store = ["--store", &store_text];
    assert_eq!(run(&world, &file, &with_store).code, Some(0));
    std::fs::remove_file(&proof).unwrap();
    give_away(&store);
    let bytes = std::fs::read(&store).unwrap();

    let more =
        ["run", "--resume", "latest", "--set", "experiment.repeats=2", "--store", &store_text];
    let refused = world.run(&more);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(
        refused.err.contains("store.sqlite3") && refused.err.contains("--trust"),
        "{}",
        refused.err
    );
    let fresh = run(&world, &file, &with_store);
    assert_eq!(fresh.code, Some(1), "a new run is not written into it either: {}", fresh.err);
    std::fs::write(world.path("r.txt"), "tps = 545.5 (excluding connections establishing)\n")
        .unwrap();
    let imported = world.run(&["audit", "r.txt", "--store", &store_text]);
    assert_eq!(imported.code, Some(1), "{}", imported.err);
    assert!(!std::fs::exists(&proof).unwrap());
    // Reading is free, and leaves it as it is.
    for args in
        [&["list"] as &[&str], &["show", "latest"], &["verify"], &["compare", "latest", "latest"]]
    {
        let ended = world.run(&[args, &with_store].concat());
        assert!(!ended.err.contains("will not"), "{args:?}: {}", ended.err);
    }
    assert_eq!(std::fs::read(&store).unwrap(), bytes);

    let named = world.run(&[&more as &[&str], &["--trust", &store_text]].concat());
    assert_eq!(named.code, Some(0), "{}", named.err);
    assert!(proof.exists());
}

#[test]
fn verify_tells_a_changed_figure_by_its_exit_status() {
    let world = World::new();
    let report = world
        .file("r.txt", "number of clients: 8\ntps = 545.5 (excluding connections establishing)\n");
    let kept = world.run(&["audit", report.to_str().unwrap()]);
    assert!(kept.code != Some(1), "{}", kept.err);
    let sound = world.run(&["verify"]);
    assert_eq!(sound.code, Some(0), "{}", sound.err);
    assert!(
        sound.out.contains("1 rows as they were stored") || sound.out.contains("no damage"),
        "{}",
        sound.out
    );

    let store = world.path("data/pgdyno/store.sqlite3");
    let mut bytes = std::fs::read(&store).unwrap();
    let at = bytes.windows(5).position(|window| window == b"545.5").unwrap();
    bytes[at] = b'9';
    std::fs::write(&store, bytes).unwrap();
    let damaged = world.run(&["verify", "--json"]);
    assert_eq!(damaged.code, Some(3), "{}", damaged.err);
    let found: serde_json::Value = serde_json::from_str(&damaged.out).unwrap();
    assert_eq!((&found["schema"], &found["sound"]), (&"pgdyno.verify/1".into(), &false.into()));
    assert_eq!(found["records"][0]["state"], "damaged");
    let words = world.run(&["verify"]);
    assert_eq!(words.code, Some(3));
    assert!(words.out.contains("DAMAGED") && words.out.contains("imported_run"), "{}", words.out);
    let id = found["records"][0]["id"].as_str().unwrap();
    let shown = world.run(&["show", id]);
    assert_eq!(shown.code, Some(1), "damaged figures are not shown: {}", shown.out);
    assert!(shown.err.contains("pgdyno verify"), "{}", shown.err);
    assert_eq!(world.run(&["verify", "nobody"]).code, Some(1));
}
