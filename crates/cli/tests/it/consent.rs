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
        run(&world, &file, &[]).with_case(why).exits(1).says("between.command").says("--trust");
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
    run(&world, &link, &[]).with_case("through a link of root's").exits(1);
    // What it would do can be looked at.
    assert_eq!(run(&world, &file, &["--dry-run"]).code, Some(0));
    assert!(!proof.exists());

    run(&world, &file, &["--trust", folder.to_str().unwrap()]).exits(0);
    assert!(proof.exists(), "it was trusted by name");
}

#[test]
fn files_of_roots_own_and_those_without_commands_are_asked_nothing() {
    needs!(is_root);
    let world = World::new();
    let proof = world.path("proof");
    let own = world.file("own.toml", &experiment(&proof));
    run(&world, &own, &[]).exits(0);
    assert!(proof.exists());
    let harmless =
        world.file("theirs/harmless.toml", "[experiment]\nrepeats = 1\n[factors]\nclients = [1]\n");
    give_away(&harmless);
    run(&world, &harmless, &[]).exits(0);
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
        run(&world, &file, more)
            .with_case(format!("{more:?}"))
            .exits(1)
            .says("postgres.bindir")
            .says("--trust");
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
    run(&world, &own, &["--set", &name]).exits(1).says("\\shell").says("s.sql");
    assert!(!proof.exists());
    run(&world, &own, &["--set", &name, "--trust", script.to_str().unwrap()]).exits(0);
    assert!(proof.exists());
}

#[test]
fn pgbenchs_shell_of_anothers_script_runs_as_root_only_where_it_is_named() {
    needs!(is_root);
    let Some(server) = Server::newest(test_name!()) else { return };
    let proof = server.directory("our").join("proof");
    server.script("s.sql", &format!("\\setshell x echo 1\n\\shell touch {}\n", proof.display()));
    server.script("harmless.sql", "SELECT 1;\n");
    let script = server.directory("our").join("s.sql");
    give_away(&script);
    give_away(&server.directory("our").join("harmless.sql"));
    let refused = server.run("our", "-n -t 1 -f s.sql").exits(1);
    refused.says("pgbench: error: will not run its \\shell");
    assert!(refused.err.contains("--trust") && !proof.exists(), "{}", refused.err);
    server.run("our", "-n -t 1 -f harmless.sql").exits(0);
    server.run("our", "-n -t 1 -f s.sql --trust=s.sql").exits(0);
    assert!(proof.exists());
    // root's own is asked nothing, and neither is the account that owns it.
    std::fs::remove_file(&proof).unwrap();
    chown(&script, Some(0), None).unwrap();
    server.run("our", "-n -t 1 -f s.sql").exits(0);
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
    world.run(&more).exits(1).says("store.sqlite3").says("--trust");
    run(&world, &file, &with_store).with_case("a new run is not written into it either").exits(1);
    std::fs::write(world.path("r.txt"), "tps = 545.5 (excluding connections establishing)\n")
        .unwrap();
    world.run(&["audit", "r.txt", "--store", &store_text]).exits(1);
    assert!(!std::fs::exists(&proof).unwrap());
    // Reading is free, and leaves it as it is.
    for args in
        [&["list"] as &[&str], &["show", "latest"], &["verify"], &["compare", "latest", "latest"]]
    {
        let ended = world.run(&[args, &with_store].concat());
        assert!(!ended.err.contains("will not"), "{args:?}: {}", ended.err);
    }
    assert_eq!(std::fs::read(&store).unwrap(), bytes);

    world.run(&[&more as &[&str], &["--trust", &store_text]].concat()).exits(0);
    assert!(proof.exists());
}

#[test]
fn verify_tells_a_changed_figure_by_its_exit_status() {
    let world = World::new();
    let report = world
        .file("r.txt", "number of clients: 8\ntps = 545.5 (excluding connections establishing)\n");
    let kept = world.run(&["audit", report.to_str().unwrap()]);
    assert!(kept.code != Some(1), "{}", kept.err);
    let sound = world.run(&["verify"]).exits(0);
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
    let damaged = world.run(&["verify", "--json"]).exits(3);
    let found = damaged.json();
    assert_eq!((&found["schema"], &found["sound"]), (&"pgdyno.verify/1".into(), &false.into()));
    assert_eq!(found["records"][0]["state"], "damaged");
    world.run(&["verify"]).exits(3).prints("DAMAGED").prints("imported_run");
    let id = found["records"][0]["id"].as_str().unwrap();
    world
        .run(&["show", id])
        .with_case("damaged figures are not shown")
        .exits(1)
        .says("pgdyno verify");
    world.run(&["verify", "nobody"]).exits(1);
}
