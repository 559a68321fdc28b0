//! Network namespaces of the tests' own, each linked to this machine by a pair of interfaces.
//!
//! A namespace has no name: it ends with its last process, and its link with it.

use std::ffi::OsStr;
use std::fs::DirEntry;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU8, Ordering};

use pgdyno_test_support::{skip, wait_for};

/// Networks that this process made (count).
static NETWORKS: AtomicU8 = AtomicU8::new(0);

/// Whether links can be made; says so where they cannot.
pub fn can_link(test: &str) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let has_ip = Command::new("ip").arg("-V").output().is_ok_and(|run| run.status.success());
    if !is_root || !has_ip {
        skip(test, "network namespaces need root and `ip` (iproute2)");
    }
    is_root && has_ip
}

/// A network of some hosts: `10.x.y.0/24`.
pub struct Network {
    first: Ipv4Addr,
    name: String,
}

impl Network {
    pub fn new() -> Self {
        let (number, pid) = (NETWORKS.fetch_add(1, Ordering::Relaxed), std::process::id());
        let part = u8::try_from(pid % 250).unwrap();
        Self { first: [10, 201 + number, part, 0].into(), name: format!("pgd{pid}n{number}") }
    }

    /// Returns the link of host `n`, from 1: a network of four addresses.
    pub fn link(&self, n: usize) -> Link {
        let [a, b, c, _] = self.first.octets();
        let base = u8::try_from(4 * (n - 1)).unwrap();
        Link {
            interface: format!("{}h{n}", self.name),
            here: [a, b, c, base + 1].into(),
            there: [a, b, c, base + 2].into(),
            pid: 0,
            namespace: PathBuf::new(),
        }
    }
}

/// A host's link to this machine.
pub struct Link {
    interface: String,
    /// This machine's address.
    pub here: Ipv4Addr,
    /// The host's address.
    pub there: Ipv4Addr,
    /// A process of the host's.
    pid: u32,
    /// Network namespace of the host: `net:[4026531840]`.
    namespace: PathBuf,
}

impl Link {
    /// Links the namespace of `host`, a [`command`], and has it go on.
    pub fn connect(&mut self, host: &mut Child) {
        let (own, pid) = (std::fs::read_link("/proc/self/ns/net").unwrap(), host.id());
        self.pid = pid;
        self.namespace = wait_for("a network namespace", || {
            let theirs = std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
            (theirs != own).then_some(theirs)
        });
        let (interface, pid) = (&self.interface, pid.to_string());
        let peer = ["type", "veth", "peer", "name", "eth0", "netns", &pid];
        ip(Command::new("ip").args(["link", "add", interface]).args(peer));
        let here = format!("{}/30", self.here);
        ip(Command::new("ip").args(["address", "add", &here, "dev", interface]));
        ip(Command::new("ip").args(["link", "set", interface, "up"]));
        for words in [
            format!("address add {}/30 dev eth0", self.there),
            "link set eth0 up".to_owned(),
            "link set lo up".to_owned(),
            format!("route add default via {}", self.here),
        ] {
            ip(self.command("ip").args(words.split(' ')));
        }
        host.stdin.take().unwrap().write_all(b"\n").unwrap();
    }

    /// Returns a command of this host's.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--net").args(["--target", &self.pid.to_string(), "--"]).arg(program);
        command
    }

    /// Returns the host's processes and their command lines.
    pub fn processes(&self) -> Vec<(i32, String)> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let process = |entry: DirEntry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let namespace = std::fs::read_link(entry.path().join("ns/net")).ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            (namespace == self.namespace).then_some((pid, line))
        };
        entries.filter_map(process).collect()
    }

    /// Cuts the host off.
    pub fn cut(&self) {
        ip(Command::new("ip").args(["link", "set", &self.interface, "down"]));
    }
}

impl Drop for Link {
    /// Ends the host: what is cut off does not learn that anybody is gone.
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
        // Connections that are not told of their end would keep the namespace for minutes.
        let _ = Command::new("ip").args(["link", "delete", &self.interface]).output();
    }
}

/// Returns a command that runs `program` in a network namespace of its own, as another account,
/// once a line comes on standard input.
pub fn command(program: &Path, (uid, gid): (u32, u32)) -> Command {
    let words = "read -r line; uid=$1 gid=$2; shift 2
        exec setpriv --reuid \"$uid\" --regid \"$gid\" --clear-groups \"$@\" </dev/null";
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", words, "sh", &uid.to_string(), &gid.to_string()]);
    command.arg(program);
    command
}

#[track_caller]
fn ip(command: &mut Command) {
    let run = command.output().unwrap();
    assert!(run.status.success(), "{command:?}: {}", String::from_utf8_lossy(&run.stderr));
}
