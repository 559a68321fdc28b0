//! The question for a password, on a terminal that `script` (util-linux) makes.
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use crate::pgbench_support::Server;
use pgdyno_test_support::test_name;

const PASSWORD: &str = "correct horse";
const ARGUMENTS: [&str; 6] = ["-n", "-S", "-t", "5", "-U", "asked"];

/// Types `typed` at the question for a password. Returns the terminal's text and the exit status.
fn typed(server: &Server, who: &str, typed: &str) -> (String, i32) {
    let command = server.command(who);
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let mut line: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
    line.extend(ARGUMENTS);
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", &line.join(" "), "/dev/null"])
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("SHELL", "/bin/sh")
        .env("HOME", "/nonexistent")
        .current_dir(command.get_current_dir().unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut shown = Vec::new();
    let mut byte = [0];
    while !shown.ends_with(b"Password: ") {
        assert_eq!(screen.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&shown));
        shown.push(byte[0]);
    }
    keys.write_all(typed.as_bytes()).unwrap();
    screen.read_to_end(&mut shown).unwrap();
    let status = child.wait().unwrap();
    (String::from_utf8(shown).unwrap(), status.code().unwrap())
}

#[test]
fn a_password_is_asked_for_once_and_never_shown() {
    for server in Server::each(test_name!()) {
        for who in ["ref", "our"] {
            server.run(who, "-i -q").exits(0);
        }
        server.ask("our", &format!("CREATE ROLE asked SUPERUSER LOGIN PASSWORD '{PASSWORD}'"));
        server.ask_for_passwords("asked");
        for who in ["ref", "our"] {
            let (shown, status) = typed(&server, who, &format!("{PASSWORD}\n"));
            assert_eq!(status, 0, "{who}: {shown}");
            assert!(shown.contains("transactions actually processed: 5/5"), "{who}: {shown}");
            assert_eq!(shown.matches("Password: ").count(), 1, "{who}: {shown}");
            assert!(!shown.contains(PASSWORD), "{who}: {shown}");

            let (shown, status) = typed(&server, who, "wrong\n");
            assert_eq!(status, 1, "{who}: {shown}");
            assert!(
                shown.contains("password authentication failed for user \"asked\""),
                "{who}: {shown}"
            );
            assert_eq!(shown.matches("Password: ").count(), 1, "{who}: {shown}");
        }
        let (shown, status) = typed(&server, "our", "\x03");
        assert_eq!(status, 130, "{shown}");
        assert!(shown.contains("interrupted"), "{shown}");

        // A session of its own has no terminal.
        let command = server.command("our");
        let output = Command::new("setsid")
            .arg("--wait")
            .arg(command.get_program())
            .args(command.get_args())
            .args(ARGUMENTS)
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env_remove("PGPASSWORD")
            .env("HOME", "/nonexistent")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains("no password supplied") && err.contains("PGPASSWORD"), "{err}");
    }
}
