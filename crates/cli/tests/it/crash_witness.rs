//! A witness in another process, and a machine that seems to have been restarted: its boot id is
//! another one in a mount namespace of the test's own. No plug is pulled: the server's processes
//! are killed in its place.

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::support::{Ended, World, ended, signal};
use pgdyno_test_support::RELEASE_MOUNTS;
use pgdyno_test_support::skip;
use serde_json::Value;

/// Secret of the witness and the machine under test, as an environment variable.
const SECRET: (&str, &str) = ("PGDYNO_WITNESS_SECRET", "a secret of the test's own");

/// A witness of the test's own.
struct Witness {
    process: Child,
    address: String,
    directory: PathBuf,
}

impl Witness {
    fn start(world: &World) -> Self {
        let directory = world.path("witness");
        let args = [
            "crash",
            "witness",
            "--listen",
            "127.0.0.1:0",
            "--directory",
            directory.to_str().unwrap(),
        ];
        let mut command = world.command(&args);
        let mut process = command.env(SECRET.0, SECRET.1).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).unwrap();
        Self { address: address.trim_end_matches(',').to_owned(), process, directory }
    }

    /// The files of its sessions.
    fn sessions(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    fn acknowledged(&self) -> usize {
        let texts = self.sessions().into_iter().filter_map(|path| fs::read_to_string(path).ok());
        texts.map(|text| text.matches("\"acknowledged\"").count()).sum()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn plug(world: &World, witness: &Witness) -> Command {
    plug_at(world, &witness.address)
}

fn plug_at(world: &World, address: &str) -> Command {
    let disk = world.disk();
    let disk = disk.to_str().unwrap();
    let args = [
        "crash",
        "--fault",
        "plug",
        "--witness",
        address,
        "--clients",
        "2",
        "--json",
        "--storage",
        disk,
    ];
    let mut command = world.command(&args);
    command.env(SECRET.0, SECRET.1);
    command
}

/// Lets load run for a while, then ends pgdyno and server as the power would, without a word.
fn lights_out(world: &World, witness: &Witness) {
    let mut child =
        plug(world, witness).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let before = witness.acknowledged();
    world.until("some acknowledgements", || witness.acknowledged() >= before + 20);
    let server = world.servers();
    child.kill().unwrap();
    for pid in server {
        signal(pid, "KILL");
    }
    child.wait().unwrap();
    world.until("the server to be gone", || world.servers().is_empty());
}

/// Runs the command of [`plug`] again with another boot id, as after a restart.
fn after_a_restart(world: &World, witness: &Witness) -> (Ended, Value) {
    after_a_restart_at(world, &witness.address)
}

fn after_a_restart_at(world: &World, address: &str) -> (Ended, Value) {
    let boot_id = world.file("boot_id", "00000000-aaaa-bbbb-cccc-000000000000\n");
    let plug = plug_at(world, address);
    let mut command = Command::new("unshare");
    let restarted = "mount --bind \"$0\" /proc/sys/kernel/random/boot_id && exec \"$@\"";
    command.args(["--mount", "sh", "-c", &format!("{RELEASE_MOUNTS}{restarted}")]);
    command.arg(&boot_id).arg(plug.get_program()).args(plug.get_args());
    for (name, value) in plug.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let ended = ended(command.current_dir(plug.get_current_dir().unwrap()).output().unwrap());
    let shown = serde_json::from_str(&ended.out).unwrap_or(Value::Null);
    (ended, shown)
}

fn can_unshare(test: &str) -> bool {
    let able = rustix::process::geteuid().is_root()
        && Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|s| s.success());
    if !able {
        skip(test, "needs a mount namespace of its own");
    }
    able
}

#[test]
fn a_machine_that_comes_back_is_judged_by_what_the_witness_heard() {
    if !can_unshare("a_machine_that_comes_back_is_judged_by_what_the_witness_heard") {
        return;
    }
    let world = World::new();
    let witness = Witness::start(&world);
    lights_out(&world, &witness);
    let (ended, shown) = after_a_restart(&world, &witness);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(shown["verdict"], "pass", "{}", shown["reason"]);
    assert!(shown["acknowledged"].as_u64().unwrap() >= 20);
    world.assert_nothing_left();

    // The same with one more that the witness heard to be acknowledged and that is not there.
    lights_out(&world, &witness);
    let session = witness
        .sessions()
        .into_iter()
        .find(|s| !fs::read_to_string(s).unwrap().contains("closed:"));
    let planted = "{\"token\":{\"client\":0,\"sequence\":999999},\"deed\":{\"issued\":\
                   {\"account\":1,\"teller\":1,\"branch\":1,\"delta\":1}},\"at_ms\":1}\n\
                   {\"token\":{\"client\":0,\"sequence\":999999},\
                   \"deed\":\"acknowledged\",\"at_ms\":2}\n";
    let mut file = fs::File::options().append(true).open(session.unwrap()).unwrap();
    file.write_all(planted.as_bytes()).unwrap();
    let (ended, shown) = after_a_restart(&world, &witness);
    assert_eq!(ended.code, Some(4), "{}{}", ended.out, ended.err);
    assert_eq!((shown["verdict"].as_str(), shown["lost"].as_u64()), (Some("FAIL (lost)"), Some(1)));
    world.assert_nothing_left();
}

#[test]
fn without_a_restart_the_session_is_begun_anew_and_a_witness_that_drops_ends_it() {
    let world = World::new();
    let mut witness = Witness::start(&world);
    lights_out(&world, &witness);
    let child =
        plug(&world, &witness).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let before = witness.acknowledged();
    world.until("some acknowledgements", || witness.acknowledged() >= before + 10);
    witness.process.kill().unwrap();
    let dropped = ended(child.wait_with_output().unwrap());
    assert_eq!(dropped.code, Some(1), "{}", dropped.err);
    assert!(dropped.err.contains("begun anew"), "{}", dropped.err);
    assert!(dropped.err.contains("the witness did not take it"), "{}", dropped.err);
    world.assert_nothing_left();
    let refused = ended(plug(&world, &witness).output().unwrap());
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("cannot reach the witness"), "{}", refused.err);
}

/// A peer that is no witness of this version's: it says `hello`, reads a line, says `answer`, and
/// goes on like that.
struct Impostor {
    address: String,
    heard: Arc<Mutex<String>>,
}

impl Impostor {
    fn new(hello: Vec<u8>, answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard = Arc::new(Mutex::new(String::new()));
        let hearing = Arc::clone(&heard);
        // Ends with the test.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.write_all(&hello);
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let mut line = Vec::new();
                while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                    let text = String::from_utf8_lossy(&line).into_owned();
                    hearing.lock().unwrap().push_str(&text);
                    line.clear();
                    let history = "{\"history\":[]}\n";
                    let answer = if text.contains("history") { history } else { answer.as_str() };
                    let _ = stream.write_all(answer.as_bytes());
                }
            }
        });
        Self { address, heard }
    }
}

#[test]
fn a_peer_on_the_network_names_no_program_that_is_run() {
    if !can_unshare("a_peer_on_the_network_names_no_program_that_is_run") {
        return;
    }
    let world = World::new();
    let canary = world.path("ran");
    for program in ["postgres", "initdb", "pg_ctl", "pg_config", "pg_controldata"] {
        let script = world
            .file(&format!("evil/{program}"), &format!("#!/bin/sh\ntouch {}\n", canary.display()));
        fs::set_permissions(script, PermissionsExt::from_mode(0o755)).unwrap();
    }
    // As a witness of the version before told of a session, in the clear, of this machine before
    // its restart.
    let header = serde_json::json!({"session": {
        "id": "plug-1", "machine": fs::read_to_string("/etc/machine-id").unwrap_or_default().trim(),
        "boot_id": "11111111-aaaa-bbbb-cccc-000000000000", "pid": 1,
        "name": "evil", "storage": "disk",
        "directory": world.path("disk/evil"), "bindir": world.path("evil"), "settings": {},
        "options": {"faults": ["plug"], "rounds": 1, "seed": 1, "clients": 1, "load": "2s",
            "scale": 1, "recovery_limit": "2m", "controls": false},
        "checksums": true, "system_identifier": 1, "loses_at_most_ms": null}});
    let says = [
        (Vec::new(), format!("{header}\n")),
        (b"pgdyno-witness-2".to_vec(), format!("{header}\n")),
        ([&b"pgdyno-witness-2"[..], &[0; 32], &[1], &[0; 32]].concat(), format!("{header}\n")),
        (vec![b'x'; 1 << 20], String::new()),
    ];
    for (hello, answer) in says {
        let impostor = Impostor::new(hello, answer);
        let (ended, _) = after_a_restart_at(&world, &impostor.address);
        assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
        assert!(ended.err.contains("the witness at"), "{}", ended.err);
        assert!(!impostor.heard.lock().unwrap().contains(SECRET.1));
    }
    assert!(!canary.exists(), "a program that the network named was run");
    world.assert_nothing_left();
}

#[test]
fn the_secret_is_asked_for_compared_and_kept_from_others() {
    let world = World::new();
    let witness = Witness::start(&world);
    let mut none = plug(&world, &witness);
    let none = ended(none.env_remove(SECRET.0).output().unwrap());
    assert_eq!(none.code, Some(1));
    assert!(none.err.contains("--secret-file"), "{}", none.err);
    let mut other = plug(&world, &witness);
    let other = ended(other.env(SECRET.0, "the secret of another").output().unwrap());
    assert_eq!(other.code, Some(1));
    assert!(other.err.contains("the secret is not the one of the other side"), "{}", other.err);
    let mut short = plug(&world, &witness);
    let short = ended(short.env(SECRET.0, "short").output().unwrap());
    assert!(short.err.contains("it has 5 bytes"), "{}", short.err);
    // A file is taken if its owner alone may read it, and its contents are shown nowhere.
    let file = world.file("secret", "another secret, in a file\n");
    let with_file =
        || ended(plug(&world, &witness).arg("--secret-file").arg(&file).output().unwrap());
    fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let open = with_file();
    assert!(open.err.contains("others than its owner may read"), "{}", open.err);
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let differs = with_file();
    assert!(differs.err.contains("the secret is not the one of the other side"), "{}", differs.err);
    for told in [none, other, short, open, differs] {
        assert!(
            !told.err.contains("another secret, in a file")
                && !told.err.contains("the secret of another")
        );
    }
    world.assert_nothing_left();
}

#[test]
fn a_machine_that_lost_what_it_kept_of_a_session_is_told_so() {
    if !can_unshare("a_machine_that_lost_what_it_kept_of_a_session_is_told_so") {
        return;
    }
    let world = World::new();
    let witness = Witness::start(&world);
    lights_out(&world, &witness);
    let kept = world.path("state/pgdyno/plug/session.json");
    let aside = world.path("session.json");
    fs::rename(&kept, &aside).unwrap();
    let (lost, _) = after_a_restart(&world, &witness);
    assert_eq!(lost.code, Some(1), "{}{}", lost.out, lost.err);
    assert!(lost.err.contains("session.json, is missing"), "{}", lost.err);
    // One that others could have written is not believed either.
    fs::copy(&aside, &kept).unwrap();
    fs::set_permissions(&kept, PermissionsExt::from_mode(0o666)).unwrap();
    let (forged, _) = after_a_restart(&world, &witness);
    assert_eq!(forged.code, Some(1), "{}{}", forged.out, forged.err);
    assert!(forged.err.contains("may be written by others"), "{}", forged.err);
    // Nothing was given up meanwhile: with it back the machine is judged.
    fs::remove_file(&kept).unwrap();
    fs::rename(&aside, &kept).unwrap();
    let (judged, shown) = after_a_restart(&world, &witness);
    assert_eq!(judged.code, Some(0), "{}{}", judged.out, judged.err);
    assert_eq!(shown["verdict"], "pass", "{}", shown["reason"]);
    assert!(!kept.exists());
    world.assert_nothing_left();
}
