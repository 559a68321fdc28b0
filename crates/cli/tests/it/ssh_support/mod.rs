//! Hosts that `ssh` reaches: an sshd of the test's own for each, on 127.0.0.2 and so on.

// Helpers of tests fail as tests do.
// Each test file uses its own part.

mod network;

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use network::{Link, Network};
use pgdyno_test_support::{Scratch, skip, wait_for};

/// Hosts `gen1`, `gen2`, … They end with the value.
pub struct Hosts {
    // Before the folder: values are dropped in this order.
    servers: Vec<Child>,
    /// Networks of the hosts, where they do not share this machine's.
    pub links: Vec<Link>,
    config: PathBuf,
    account: Account,
    folder: Scratch,
}

/// The account that hosts are logged in to. sshd runs as it, and needs no privileges for that.
struct Account {
    name: String,
    /// User and group id of the account; none if it is this process's own.
    ids: Option<(u32, u32)>,
}

impl Hosts {
    /// Starts `count` hosts. Returns none, and says so, if this machine cannot run them.
    pub fn start(test: &str, count: usize) -> Option<Self> {
        Self::start_at(test, count, |_| None)
    }

    /// Starts `count` hosts, each in a network namespace and linked to this machine.
    pub fn start_apart(test: &str, count: usize) -> Option<Self> {
        if !network::can_link(test) {
            return None;
        }
        let network = Network::new();
        Self::start_at(test, count, |n| Some(network.link(n)))
    }

    fn start_at(test: &str, count: usize, link: impl Fn(usize) -> Option<Link>) -> Option<Self> {
        let Some(sshd) = sshd() else {
            skip(test, "no sshd (openssh-server); PGDYNO_TEST_SSHD names one");
            return None;
        };
        let Some(account) = account() else {
            skip(test, "as root it needs an account `postgres`, which sshd runs as");
            return None;
        };
        let folder = Scratch::new();
        let keys = folder.create_folder("keys");
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(keys.join(key))
                .status();
            assert!(made.unwrap().success());
        }
        let home = folder.create_folder("home");
        if let Some((uid, gid)) = account.ids {
            for path in [&home, &keys.join("host")] {
                chown(path, Some(uid), Some(gid)).unwrap();
            }
        }
        let config = folder.path().join("ssh_config");
        let mut hosts = Self { servers: Vec::new(), links: Vec::new(), config, account, folder };
        let mut text = String::new();
        for n in 1..=count {
            let (address, port) = hosts.serve(&sshd, n, link(n));
            text += &format!("Host gen{n}\n  HostName {address}\n  Port {port}\n");
        }
        text += &format!(
            "Host *\n  User {}\n  IdentityFile {}\n  IdentitiesOnly yes\n  IdentityAgent none\n  \
             StrictHostKeyChecking accept-new\n  UserKnownHostsFile {}\n",
            hosts.account.name,
            keys.join("user").display(),
            hosts.folder.path().join("known_hosts").display()
        );
        std::fs::write(&hosts.config, text).unwrap();
        Some(hosts)
    }

    /// Returns the value of `PGDYNO_SSH`: ssh with the configuration of these hosts.
    pub fn ssh(&self) -> String {
        format!("ssh -F {}", self.config.display())
    }

    /// Returns the logins to host `n`, which shares this machine's network (count).
    pub fn logins(&self, n: usize) -> usize {
        let log = self.folder.path().join(format!("sshd-127.0.0.{}.log", n + 1));
        std::fs::read_to_string(log).unwrap().matches("Accepted publickey").count()
    }

    /// Returns the folder where hosts keep workers' programs.
    pub fn cache(&self) -> PathBuf {
        self.folder.path().join("home/pgdyno/worker")
    }

    /// A folder of host `n`'s own, which its account may write to; made where it is missing.
    pub fn folder_of(&self, n: usize, name: &str) -> PathBuf {
        let path = self.folder.path().join(format!("home/gen{n}-{name}"));
        if !path.exists() {
            std::fs::create_dir(&path).unwrap();
            if let Some((uid, gid)) = self.account.ids {
                chown(&path, Some(uid), Some(gid)).unwrap();
            }
        }
        path
    }

    /// Has no host know the key any more that it showed.
    pub fn forge_known_hosts(&self) {
        let known = self.folder.path().join("known_hosts");
        let key = std::fs::read_to_string(self.folder.path().join("keys/user.pub")).unwrap();
        let key: Vec<&str> = key.split(' ').collect();
        let text = std::fs::read_to_string(&known).unwrap();
        let forged = text.lines().map(|line| {
            let host = line.split(' ').next().unwrap();
            format!("{host} {} {}\n", key[0], key[1])
        });
        let forged: String = forged.collect();
        std::fs::write(known, forged).unwrap();
    }

    /// Starts the sshd of host `n`; returns its address and port.
    fn serve(&mut self, sshd: &Path, n: usize, link: Option<Link>) -> (String, u16) {
        let (data, state) = (self.folder_of(n, "data"), self.folder_of(n, "state"));
        let (address, port) = match &link {
            // Nobody else listens there.
            Some(link) => (link.there.to_string(), 2222),
            None => {
                let address = format!("127.0.0.{}", n + 1);
                let free = TcpListener::bind((&*address, 0)).unwrap();
                (address, free.local_addr().unwrap().port())
            }
        };
        let folder = self.folder.path();
        let config = folder.join(format!("sshd_config-{address}"));
        let text = format!(
            "ListenAddress {address}\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\n\
             PidFile none\nStrictModes no\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nUsePAM no\n\
             SetEnv XDG_CACHE_HOME={} XDG_DATA_HOME={} XDG_STATE_HOME={}\n",
            folder.join("keys/host").display(),
            folder.join("keys/user.pub").display(),
            folder.join("home").display(),
            data.display(),
            state.display(),
        );
        std::fs::write(&config, text).unwrap();
        let log = std::fs::File::create(folder.join(format!("sshd-{address}.log"))).unwrap();
        let mut command = match &link {
            Some(_) => network::command(sshd, self.account.ids.unwrap()),
            None => Command::new(sshd),
        };
        command.args(["-D", "-e", "-f"]).arg(&config);
        command.stdout(Stdio::null()).stderr(log).current_dir("/");
        match link {
            None => {
                if let Some((uid, gid)) = self.account.ids {
                    command.uid(uid).gid(gid);
                }
                self.servers.push(command.stdin(Stdio::null()).spawn().unwrap());
            }
            Some(mut link) => {
                let mut server = command.stdin(Stdio::piped()).spawn().unwrap();
                link.connect(&mut server);
                self.servers.push(server);
                self.links.push(link);
            }
        }
        wait_for("sshd", || TcpStream::connect((&*address, port)).ok());
        (address, port)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// sshd must be started by its path.
fn sshd() -> Option<PathBuf> {
    let named = std::env::var_os("PGDYNO_TEST_SSHD").map(PathBuf::from);
    let usual = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"].map(PathBuf::from);
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    named.into_iter().chain(usual).find(is_program)
}

fn account() -> Option<Account> {
    use std::os::unix::fs::MetadataExt as _;
    let ours = std::fs::metadata("/proc/self").unwrap().uid();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, ..] = fields[..] else { return None };
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        let is_chosen = if ours == 0 { name == "postgres" } else { uid == ours };
        let ids = (ours == 0).then_some((uid, gid));
        is_chosen.then(|| Account { name: name.to_owned(), ids })
    })
}
