//! A witness in another process, and a machine that seems to have been restarted: its boot id is
//! another one in a mount namespace of the test's own. No plug is pulled: the server's processes
//! are killed in its place.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::ssh_support::Hosts;
use crate::support::{Ended, World, ended, finish, signal};
use pgdyno_test_support::{RELEASE_MOUNTS, needs, skip, test_name};
use serde_json::Value;

/// Stands in for `ssh`. The witness is no child that ends with it: it hears by its pipes alone, as
/// over a network, that the other side is gone.
const RELAY: &str = r#"#!/bin/sh
for script; do :; done
case $script in *" crash witness; "*) ;; *) exit 99 ;; esac
link=$(mktemp -d "$(dirname "$0")/link.XXXXXX")
mkfifo "$link/in" "$link/out"
# Both ends at once, so that nobody waits for the other.
exec 3<&0 4<>"$link/in" 5<>"$link/out"
exec 6<"$link/in" 7>"$link/in" 8<"$link/out" 9>"$link/out" 4<&- 5<&-
XDG_DATA_HOME=LEDGERS setsid PROGRAM crash witness <&6 >&9 3<&- 6<&- 7<&- 8<&- 9<&- &
echo "$!" >"$(dirname "$0")/witness.pid"
echo "$$" >"$(dirname "$0")/ssh.pid"
echo pgdyno is here
cat <&3 >&7 6<&- 7<&- 8<&- 9<&- &
exec cat <&8 3<&- 6<&- 7<&- 8<&- 9<&-
"#;

/// A host that the tested machine reaches, and where its witness keeps ledgers.
struct Witness {
    host: &'static str,
    ssh: String,
    ledgers: PathBuf,
}

impl Witness {
    fn new(world: &World) -> Self {
        let data = world.path("witness");
        let relay = RELAY.replace("LEDGERS", data.to_str().unwrap());
        let relay = relay.replace("PROGRAM", env!("CARGO_BIN_EXE_pgdyno"));
        let ssh = program(world, "ssh", &relay).display().to_string();
        Self { host: "elsewhere", ssh, ledgers: data.join("pgdyno/witness") }
    }

    /// The first of these hosts.
    fn on(hosts: &Hosts) -> Self {
        let ledgers = hosts.folder_of(1, "data").join("pgdyno/witness");
        Self { host: "gen1", ssh: hosts.ssh(), ledgers }
    }

    /// The files of its sessions.
    fn sessions(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.ledgers).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    fn acknowledged(&self) -> usize {
        let texts = self.sessions().into_iter().filter_map(|path| fs::read_to_string(path).ok());
        texts.map(|text| text.matches("\"acknowledged\"").count()).sum()
    }

    /// The command whose ledger this witness keeps.
    fn plug(&self, world: &World) -> Command {
        let disk = world.disk();
        let mut command = world.command(&["crash", "--fault", "plug", "--witness", self.host]);
        command.args(["--clients", "2", "--json", "--storage"]).arg(disk);
        command.env("PGDYNO_SSH", &self.ssh);
        command
    }
}

/// Party that dies before all else. Nothing that was acknowledged may be lost or forged by it.
#[derive(Clone, Copy, PartialEq)]
enum First {
    Tested,
    Witness,
    Ssh,
}

impl First {
    /// Kills it; what stands in for `ssh` with all that is not the witness.
    fn kill(self, world: &World) {
        let pid = |name| pid_in(world, name);
        match self {
            Self::Tested => {}
            Self::Witness => signal(pid("witness.pid"), "KILL"),
            Self::Ssh => {
                signal(-pid("ssh.pid"), "KILL");
                // By itself, when it hears that nobody is there any more.
                world.until_gone(pid("witness.pid"));
            }
        }
    }
}

fn program(world: &World, name: &str, text: &str) -> PathBuf {
    let path = world.file(name, text);
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

fn pid_in(world: &World, name: &str) -> i32 {
    fs::read_to_string(world.path(name)).unwrap().trim().parse().unwrap()
}

/// Lets load run for a while, then ends pgdyno and server as the power would, without a word;
/// `first` while pgdyno cannot hear of it.
fn lights_out(world: &World, witness: &Witness, first: First) {
    let before = witness.acknowledged();
    let mut plug = witness.plug(world);
    let mut child = plug.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    world.until("some acknowledgements", || witness.acknowledged() >= before + 20);
    let server = world.servers();
    signal(child.id().cast_signed(), "STOP");
    first.kill(world);
    child.kill().unwrap();
    for pid in server {
        signal(pid, "KILL");
    }
    child.wait().unwrap();
    world.until("the server to be gone", || world.servers().is_empty());
}

/// Runs the command of [`plug`] again with another boot id, as after a restart.
fn after_a_restart(world: &World, witness: &Witness) -> (Ended, Value) {
    let boot_id = world.file("boot_id", "00000000-aaaa-bbbb-cccc-000000000000\n");
    let plug = witness.plug(world);
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

fn assert_passes_after_a_restart(world: &World, witness: &Witness) {
    let (ended, shown) = after_a_restart(world, witness);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(shown["verdict"], "pass", "{}", shown["reason"]);
    assert!(shown["acknowledged"].as_u64().unwrap() >= 20);
    world.assert_nothing_left();
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
    needs!(can_unshare);
    let world = World::new();
    let witness = Witness::new(&world);
    lights_out(&world, &witness, First::Tested);
    assert_passes_after_a_restart(&world, &witness);

    // The same with one more that the witness heard to be acknowledged and that is not there.
    lights_out(&world, &witness, First::Ssh);
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
#[ignore = "long: by ssh itself, whose way `hosts` holds in the first tier"]
fn a_witness_by_ssh_itself_needs_nothing_installed() {
    let test = test_name!();
    let Some(hosts) = Hosts::start(test, 1) else { return };
    if !can_unshare(test) {
        return;
    }
    let world = World::new();
    let witness = Witness::on(&hosts);
    lights_out(&world, &witness, First::Tested);
    assert_passes_after_a_restart(&world, &witness);
}

#[test]
fn without_a_restart_the_session_is_begun_anew_and_a_witness_that_drops_ends_it() {
    let world = World::new();
    let witness = Witness::new(&world);
    for first in [First::Witness, First::Ssh] {
        let mut plug = witness.plug(&world);
        let child = plug.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let before = witness.acknowledged();
        world.until("some acknowledgements", || witness.acknowledged() >= before + 10);
        first.kill(&world);
        let dropped = finish(child).exits(1);
        // The second finds the session of the first, which nobody could close.
        assert_eq!(dropped.err.contains("begun anew"), first == First::Ssh, "{}", dropped.err);
        dropped.says("the witness did not take it");
        world.assert_nothing_left();
    }
    let closed =
        "#!/bin/sh\necho 'ssh: connect to host elsewhere port 22: refused' >&2\nexit 255\n";
    program(&world, "ssh", closed);
    let refused = ended(witness.plug(&world).output().unwrap()).exits(1);
    refused.says("cannot reach the witness on elsewhere").says("port 22: refused");
}

#[test]
fn a_witness_names_no_program_that_is_run() {
    needs!(can_unshare);
    let world = World::new();
    let canary = world.path("ran");
    for name in ["postgres", "initdb", "pg_ctl", "pg_config", "pg_controldata"] {
        program(
            &world,
            &format!("evil/{name}"),
            &format!("#!/bin/sh\ntouch {}\n", canary.display()),
        );
    }
    // As a witness of an earlier version told of a session of this machine before its restart.
    let header = serde_json::json!({"session": {
        "id": "plug-1", "machine": fs::read_to_string("/etc/machine-id").unwrap_or_default().trim(),
        "boot_id": "11111111-aaaa-bbbb-cccc-000000000000", "pid": 1,
        "name": "evil", "storage": "disk",
        "directory": world.path("disk/evil"), "bindir": world.path("evil"), "settings": {},
        "options": {"faults": ["plug"], "rounds": 1, "seed": 1, "clients": 1, "load": "2s",
            "scale": 1, "recovery_limit": "2m", "controls": false},
        "checksums": true, "system_identifier": 1, "loses_at_most_ms": null}});
    let header = header.to_string();
    let framed = |text: &str| {
        let length = u32::try_from(text.len()).unwrap().to_be_bytes();
        [b"pgdyno is here\n", &length[..], text.as_bytes()].concat()
    };
    let says = [
        header.clone().into_bytes(),
        [b"pgdyno is here\n", header.as_bytes()].concat(),
        framed(&header),
        framed(r#"{"open":"plug-1"}"#),
        vec![b'x'; 1 << 16],
    ];
    let witness = Witness::new(&world);
    for answer in says {
        fs::write(world.path("answer"), answer).unwrap();
        program(&world, "ssh", "#!/bin/sh\ncat \"$(dirname \"$0\")/answer\"\n");
        let (ended, _) = after_a_restart(&world, &witness);
        assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
        ended.says("the witness on elsewhere");
    }
    assert!(!canary.exists(), "a program that the witness named was run");
    world.assert_nothing_left();
}

#[test]
fn a_signal_ends_a_start_whose_ssh_hangs() {
    let world = World::new();
    let witness = Witness::new(&world);
    program(&world, "ssh", "#!/bin/sh\necho $$ >\"$(dirname \"$0\")/ssh.pid\"\nexec sleep 60\n");
    let child = witness.plug(&world).stderr(Stdio::piped()).spawn().unwrap();
    world.until("ssh", || world.path("ssh.pid").metadata().is_ok_and(|pid| pid.len() > 1));
    signal(child.id().cast_signed(), "TERM");
    let began = Instant::now();
    let stopped = finish(child);
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(stopped.code, Some(130), "{}", stopped.err);
    signal(pid_in(&world, "ssh.pid"), "KILL");
}

#[test]
fn options_of_the_time_before_ssh_name_what_replaces_them() {
    let world = World::new();
    let plug = ["crash", "--fault", "plug", "--witness"];
    let given: [&[&str]; 6] = [
        &["crash", "witness", "--listen", "127.0.0.1:7433"],
        &["crash", "witness", "--directory", "/srv/witness"],
        &["crash", "witness", "--secret-file", "secret"],
        &[&plug[..], &["192.168.7.2:7433"]].concat(),
        &[&plug[..], &["elsewhere", "--secret-file", "secret"]].concat(),
        &["crash", "--fault", "plug", "--witness=-oProxyCommand=x"],
    ];
    for args in given {
        world.run(args).with_case(format!("{args:?}")).exits(1).says("--witness HOST");
    }
    let help = world.run(&["crash", "witness", "--help"]).out;
    assert!(!help.contains("--listen") && help.contains("30 s"), "{help}");
}

#[test]
fn a_machine_that_lost_what_it_kept_of_a_session_is_told_so() {
    needs!(can_unshare);
    let world = World::new();
    let witness = Witness::new(&world);
    lights_out(&world, &witness, First::Witness);
    let kept = world.path("state/pgdyno/plug/session.json");
    let aside = world.path("session.json");
    fs::rename(&kept, &aside).unwrap();
    let (lost, _) = after_a_restart(&world, &witness);
    assert_eq!(lost.code, Some(1), "{}{}", lost.out, lost.err);
    lost.says("session.json, is missing");
    // One that others could have written is not believed either.
    fs::copy(&aside, &kept).unwrap();
    fs::set_permissions(&kept, PermissionsExt::from_mode(0o666)).unwrap();
    let (forged, _) = after_a_restart(&world, &witness);
    assert_eq!(forged.code, Some(1), "{}{}", forged.out, forged.err);
    forged.says("may be written by others");
    // Nothing was given up meanwhile: with it back the machine is judged.
    fs::remove_file(&kept).unwrap();
    fs::rename(&aside, &kept).unwrap();
    assert_passes_after_a_restart(&world, &witness);
    assert!(!kept.exists());
}
