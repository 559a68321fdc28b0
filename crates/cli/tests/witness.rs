//! A witness in another process, and a machine that seems to have been restarted: its boot id is another one in a mount
//! namespace of the test's own. No plug is pulled: the server's processes are killed in its place.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::{Ended, World, ended, signal};

/// A witness of the test's own.
struct Witness {
    process: Child,
    address: String,
    directory: PathBuf,
}

impl Witness {
    fn start(world: &World) -> Self {
        let directory = world.path("witness");
        let args =
            ["crash", "witness", "--listen", "127.0.0.1:0", "--directory", directory.to_str().unwrap()];
        let mut process = world.command(&args).stderr(Stdio::piped()).spawn().unwrap();
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
    let disk = world.disk();
    let (disk, address) = (disk.to_str().unwrap(), witness.address.as_str());
    let args =
        ["crash", "--fault", "plug", "--witness", address, "--clients", "2", "--json", "--storage", disk];
    world.command(&args)
}

/// Lets load run for a while, then ends pgdyno and server as the power would, without a word.
fn lights_out(world: &World, witness: &Witness) {
    let mut child = plug(world, witness).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
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

/// The same command on what takes itself for the next boot.
fn after_a_restart(world: &World, witness: &Witness) -> (Ended, Value) {
    let boot_id = world.file("boot_id", "00000000-aaaa-bbbb-cccc-000000000000\n");
    let plug = plug(world, witness);
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "sh",
        "-c",
        "mount --bind \"$0\" /proc/sys/kernel/random/boot_id && exec \"$@\"",
    ]);
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
        let _ = writeln!(std::io::stderr(), "\nskipped: {test}: needs a mount namespace of its own");
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
    let session =
        witness.sessions().into_iter().find(|s| !fs::read_to_string(s).unwrap().contains("closed:"));
    let planted = "{\"token\":{\"client\":0,\"sequence\":999999},\"deed\":{\"issued\":{\"account\":1,\"teller\":1,\
                   \"branch\":1,\"delta\":1}},\"at_ms\":1}\n{\"token\":{\"client\":0,\"sequence\":999999},\
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
    let child = plug(&world, &witness).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
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
