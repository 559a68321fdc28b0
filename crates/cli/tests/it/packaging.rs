//! Files that packages ship beside the program: completions and man pages.

#[cfg(not(feature = "full"))]
compile_error!("packages have all features: test with `cargo test --workspace --all-features`");

use std::fs;
use std::process::Command;

use crate::support::World;
use pgdyno_test_support::test_name;

/// Returns bash's completions of `words`, with the `script` that `pgdyno completions` prints.
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
    let printed = world.run(&["completions", "bash"]).exits(0);
    assert_eq!(completed(&printed.out, &["pgdyno", "cra"]), "crash");
    assert_eq!(completed(&printed.out, &["pgdyno", "emul"]), "", "it is pgdyno's own business");
    assert_eq!(completed(&printed.out, &["pgdyno", "run", "--dry"]), "--dry-run");
    assert_eq!(completed(&printed.out, &["pgdyno", "pgbench", "--cli"]), "--client");
}

#[test]
fn bash_completes_values_that_pgdyno_knows() {
    let world = World::new();
    let script = world.run(&["completions", "bash"]).out;
    let cases = [
        (vec!["pgdyno", "run", "quick"], "quickstart"),
        (vec!["pgdyno", "run", "--dry-run", "zfs"], "zfs-xfs"),
        (vec!["pgdyno", "run", "--size", "q"], "quick"),
        (vec!["pgdyno", "recipes", "show", "noise"], "noise-floor"),
        (vec!["pgdyno", "show", "la"], "latest"),
        (vec!["pgdyno", "crash", "--fault", "torn"], "torn-write"),
        (vec!["pgdyno", "crash", "--filesystem", "btr"], "btrfs"),
        (vec!["pgdyno", "pgbench", "--protocol", "pre"], "prepared"),
    ];
    for (words, value) in cases {
        assert_eq!(completed(&script, &words), value, "{words:?}");
    }
}

/// Runs `program` with `args`; none where it is not installed, and `test` says that it is skipped.
fn checker(test: &str, program: &str, args: &[&str]) -> Option<(bool, String)> {
    let output = match Command::new(program).args(args).output() {
        Ok(output) => output,
        Err(error) => {
            pgdyno_test_support::skip(test, &format!("{program}: {error}"));
            return None;
        }
    };
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

#[test]
fn the_shells_find_no_fault_in_their_completions() {
    const TEST: &str = "the_shells_find_no_fault_in_their_completions";
    let world = World::new();
    let written = |shell: &str| {
        let file = world.file(&format!("completions.{shell}"), "");
        std::fs::write(&file, world.run(&["completions", shell]).out).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (bash, zsh, fish) = (written("bash"), written("zsh"), written("fish"));
    for (program, args) in [
        ("shellcheck", vec!["--shell=bash", &bash]),
        ("zsh", vec!["-n", &zsh]),
        ("fish", vec!["--no-execute", &fish]),
    ] {
        if let Some((is_clean, said)) = checker(TEST, program, &args) {
            assert!(is_clean, "{program}: {said}");
        }
    }
    let ask =
        format!("source {fish}; complete -C 'pgdyno run quick'; complete -C 'pgdyno show la'");
    if let Some((_, said)) = checker(TEST, "fish", &["--no-config", "-c", &ask]) {
        let words: Vec<&str> = said.split_whitespace().collect();
        assert_eq!(words, ["quickstart", "latest"]);
    }
    let zsh = fs::read_to_string(zsh).unwrap();
    assert!(zsh.contains("experiment file:_pgdyno_experiments"), "zsh completes files, too");
}

#[test]
fn every_shell_has_completions_of_every_command() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let printed = world.run(&["completions", shell]).exits(0);
        for word in ["crash", "doctor", "fail-if", "init-steps"] {
            assert!(printed.out.contains(word), "{shell}: {word}");
        }
    }
    world.run(&["completions", "tcsh"]).exits(1).says("bash");
}

#[test]
fn there_is_a_man_page_for_every_command() {
    let world = World::new();
    let folder = world.disk();
    world.run(&["man-pages", folder.to_str().unwrap()]).exits(0);
    let page = |name: &str| fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
    assert!(page("pgdyno").contains(r"pgdyno\-crash(1)"), "{}", page("pgdyno"));
    assert!(page("pgdyno-run").contains("dry"), "{}", page("pgdyno-run"));
    assert!(page("pgdyno-pgbench").contains("init"), "{}", page("pgdyno-pgbench"));
    for section in ["EXIT STATUS", "FILES", "EXAMPLES", "SEE ALSO"] {
        assert!(page("pgdyno-run").contains(section), "{section}");
    }
    assert!(page("pgdyno-pgbench").contains("INITIALIZATION OPTIONS"), "grouped as in the help");
    let first = page("pgdyno-run").lines().find(|line| line.starts_with(".TH")).map(str::to_owned);
    let version = env!("CARGO_PKG_VERSION");
    assert!(first.unwrap().ends_with(&format!("\"pgdyno {version}\" \"pgdyno Manual\"")));
    world.run(&["man-pages", "/nonexistent/folder"]).exits(1).says("help: ");
}

#[test]
fn mandoc_finds_no_fault_in_any_man_page() {
    let world = World::new();
    let folder = world.disk();
    world.run(&["man-pages", folder.to_str().unwrap()]).exits(0);
    for page in fs::read_dir(&folder).unwrap() {
        let page = page.unwrap().path();
        let args = ["-T", "lint", "-W", "warning", page.to_str().unwrap()];
        let Some((_, said)) = checker(test_name!(), "mandoc", &args) else { return };
        // What it says of the system's own pages is none of ours.
        let said: Vec<&str> = said.lines().filter(|line| line.contains(".1:")).collect();
        assert!(said.is_empty(), "{}", said.join("\n"));
    }
}

#[test]
fn pgdyno_alone_says_what_to_type_first_in_ten_lines() {
    let world = World::new();
    let said = world.run::<&str>(&[]).exits(0);
    assert!(said.out.lines().count() <= 10, "{}", said.out);
    said.prints("pgdyno run quickstart").prints("pgdyno doctor");
}
