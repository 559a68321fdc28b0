//! What packages ship beside the program: completions and man pages.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

#[cfg(not(feature = "full"))]
compile_error!("packages have all features: test with `cargo test --workspace --all-features`");

mod support;

use std::fs;
use std::process::Command;

use support::World;

/// What bash would complete `words` to, with the completions that `pgdyno` prints.
fn completed(script: &str, words: &[&str]) -> String {
    let program = format!(
        "{script}\nCOMP_WORDS=({}); COMP_CWORD={}; _pgdyno pgdyno {} {}; echo ${{COMPREPLY[@]}}",
        words.join(" "),
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2],
    );
    let output = Command::new("bash").args(["-c", &program]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn bash_completes_commands_and_their_options() {
    let world = World::new();
    let printed = world.run(&["completions", "bash"]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert_eq!(completed(&printed.out, &["pgdyno", "cra"]), "crash");
    assert_eq!(completed(&printed.out, &["pgdyno", "emul"]), "", "it is pgdyno's own business");
    assert_eq!(completed(&printed.out, &["pgdyno", "run", "--dry"]), "--dry-run");
    assert_eq!(completed(&printed.out, &["pgdyno", "pgbench", "--cli"]), "--client");
}

#[test]
fn every_shell_has_completions_of_every_command() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let printed = world.run(&["completions", shell]);
        assert_eq!(printed.code, Some(0), "{}", printed.err);
        for word in ["crash", "doctor", "fail-if", "init-steps"] {
            assert!(printed.out.contains(word), "{shell}: {word}");
        }
    }
    let other = world.run(&["completions", "tcsh"]);
    assert_eq!(other.code, Some(1));
    assert!(other.err.contains("bash"), "{}", other.err);
}

#[test]
fn there_is_a_man_page_for_every_command() {
    let world = World::new();
    let folder = world.disk();
    let ended = world.run(&["man-pages", folder.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let page = |name: &str| fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
    assert!(page("pgdyno").contains(r"pgdyno\-crash(1)"), "{}", page("pgdyno"));
    assert!(page("pgdyno-run").contains("dry"), "{}", page("pgdyno-run"));
    assert!(page("pgdyno-pgbench").contains("init"), "{}", page("pgdyno-pgbench"));
    let missing = world.run(&["man-pages", "/nonexistent/folder"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.err.contains("help: "), "{}", missing.err);
}

#[test]
fn pgdyno_alone_says_what_to_type_first_in_ten_lines() {
    let world = World::new();
    let said = world.run::<&str>(&[]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.lines().count() <= 10, "{}", said.out);
    assert!(said.out.contains("pgdyno run quickstart") && said.out.contains("pgdyno doctor"));
}
