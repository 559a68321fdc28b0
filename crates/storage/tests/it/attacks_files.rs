//! Files as root below directories that another account may write to.
//!
//! Each operation of `exec/src/beneath` is attacked at every one of its steps, by an account that
//! swaps names for links. Those that call it are not attacked again: one test holds that they make
//! no call by path below such a directory, and so have nothing but these operations.
use std::fs;
use std::io::Write as _;
use std::mem::ManuallyDrop;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use crate::common::attacks::{Attacker, victim};
use crate::common::leftovers::{NOBODY, can};
use crate::common::tracer::{Call, Ended, trace};
use crate::common::{self, Place, RUN};
use pgdyno_exec::StepError;
use pgdyno_exec::account::{Account, server_account};
use pgdyno_exec::beneath::{CopySummary, Directory, TreeCopy};
use pgdyno_exec::journal::Journal;
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_postgres::{Cluster, ClusterSpec, StopMode, Template};
use pgdyno_storage::fault::{FileBaseline, keep};
use pgdyno_test_support::{Scratch, needs, test_name};
use rustix::fs::OFlags;

/// A directory of `nobody`'s with a file in a directory, and a directory that only root can enter,
/// with a secret.
struct Ground {
    root: Scratch,
}

impl Ground {
    fn new() -> Self {
        Self { root: Scratch::new() }
    }

    fn theirs(&self) -> PathBuf {
        self.root.path().join("theirs")
    }

    fn secret(&self) -> PathBuf {
        self.root.path().join("secret")
    }

    fn copy(&self) -> PathBuf {
        self.root.path().join("copy")
    }

    /// Asserts that root's own files are as they were, and that no copy of them is anywhere.
    fn assert_unharmed(&self, how: &str) {
        let secret = self.secret();
        let names: Vec<_> =
            fs::read_dir(&secret).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["file"], "{how}");
        assert_eq!(fs::read_to_string(secret.join("file")).unwrap(), "root's", "{how}");
        for path in [&secret, &secret.join("file")] {
            let metadata = fs::metadata(path).unwrap();
            assert_eq!(
                (metadata.uid(), metadata.mode() & 0o077),
                (0, 0),
                "{how}: {}",
                path.display()
            );
        }
        for place in [self.theirs(), self.copy()] {
            for file in files_below(&place) {
                assert_ne!(
                    fs::read_to_string(&file).unwrap(),
                    "root's",
                    "{how}: {}",
                    file.display()
                );
            }
        }
    }

    fn make_anew(&self) {
        for directory in [self.theirs(), self.secret(), self.copy()] {
            let _ = fs::remove_dir_all(&directory);
            fs::create_dir(&directory).unwrap();
        }
        let inner = self.theirs().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("file"), "theirs").unwrap();
        for path in [&self.theirs(), &inner, &inner.join("file")] {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        fs::set_permissions(self.secret(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(self.secret().join("file"), "root's").unwrap();
        fs::set_permissions(self.secret().join("file"), fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Runs the victim for `operation` in directories made anew.
    fn run(&self, operation: &str, on_call: &mut dyn FnMut(&Call)) -> Ended {
        self.make_anew();
        let given = [("OPERATION", Path::new(operation)), ("ROOT", self.root.path())];
        trace(&victim("attacks_files::victim_works", &given), &self.theirs(), on_call).unwrap()
    }

    /// Runs the victim undisturbed, and then for each of its steps and each name on its way: the
    /// name is swapped for a link to root's own before that step, until the next one or for good.
    /// Calls `check` after each run, with words that say where the swap was made.
    fn attack(&self, operation: &str, check: &mut dyn FnMut(&str)) {
        let honest = self.run(operation, &mut |_| {});
        assert_eq!(honest.code, Some(0), "an undisturbed run works: {}", honest.output);
        assert!(honest.steps > 0, "it touches nothing of theirs");
        check(UNDISTURBED);
        let attacker = Attacker::new(NOBODY, NOBODY);
        let (inner, file) = (self.theirs().join("inner"), self.theirs().join("inner/file"));
        let ways = [(&inner, self.secret()), (&file, self.secret().join("file"))];
        for at in 0..honest.steps {
            for ((name, target), stays) in ways.iter().flat_map(|way| [(way, false), (way, true)]) {
                let mut seen = String::new();
                // It may not be able to, where root holds the directory meanwhile.
                self.run(operation, &mut |call| {
                    if call.step == at {
                        seen = format!("{call:?}");
                        attacker.swap(name, target);
                    } else if call.step == at + 1 && !stays {
                        attacker.swap_back(name);
                    }
                });
                check(&format!("{} swapped before {seen}, stays: {stays}", name.display()));
            }
        }
    }
}

const UNDISTURBED: &str = "undisturbed";

/// Every regular file below `directory`, through no link.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            all.extend(files_below(&entry.path()));
        } else if kind.is_file() {
            all.push(entry.path());
        }
    }
    all
}

fn nobody() -> Account {
    Account { name: "nobody".into(), uid: NOBODY, gid: NOBODY }
}

fn tree_copy(source_owner: u32, owner: Option<&Account>) -> TreeCopy<'_> {
    TreeCopy { source_owner, owner, keeps_links: false, stop: &RUN, copied: CopySummary::default() }
}

/// Performs one operation below the directory of `nobody`'s.
#[test]
#[ignore = "started by the tests below"]
fn victim_works() {
    let (Some(root), Some(operation)) = (std::env::var_os("ROOT"), std::env::var_os("OPERATION"))
    else {
        return;
    };
    let (theirs, copy) = (Path::new(&root).join("theirs"), Path::new(&root).join("copy"));
    let open = |path: &Path| Directory::open(path).unwrap();
    match operation.to_str().unwrap() {
        "read" => {
            let directory = open(&theirs);
            let inner = directory.directory("inner").unwrap();
            for entry in inner.entries().unwrap() {
                fs::write(copy.join("file"), inner.read(&entry.name, 100).unwrap()).unwrap();
            }
            fs::write(copy.join("again"), directory.read("inner/file", 100).unwrap()).unwrap();
        }
        "copy from" => {
            let (from, to, nobody) = (open(&theirs), open(&copy), nobody());
            tree_copy(NOBODY, None).contents(&from, &to, &[]).unwrap();
            // As evidence of a crash is kept: with links and owners.
            let kept = to.create_directory("kept", 0o700).unwrap();
            let mut copy = TreeCopy { keeps_links: true, ..tree_copy(NOBODY, Some(&nobody)) };
            copy.contents(&from, &kept, &[]).unwrap();
        }
        // As a template is copied: over what was in the directory, from one of root's.
        "copy to" => {
            fs::create_dir(copy.join("inner")).unwrap();
            fs::write(copy.join("inner/file"), "copied").unwrap();
            let (to, nobody) = (open(&theirs), nobody());
            let mode = to.take_over().unwrap();
            to.empty(&[]).unwrap();
            tree_copy(0, Some(&nobody)).contents(&open(&copy), &to, &[]).unwrap();
            to.hand_over(Some(&nobody), mode).unwrap();
        }
        "write" => {
            let inner = open(&theirs.join("inner"));
            inner.append_to_file("file".as_ref(), b" and more").unwrap();
            inner.replace_file("new".as_ref(), b"written", Some(&nobody()), 0o600).unwrap();
            inner.rename("new", "renamed").unwrap();
            let made = inner.create_directory("made", 0o700).unwrap();
            made.hand_over(Some(&nobody()), 0o700).unwrap();
            inner.remove_file("renamed").unwrap();
            let flags = OFlags::WRONLY | OFlags::TRUNC;
            let mut file = open(&theirs).file_with("inner/file", flags).unwrap();
            file.write_all(b"put back").unwrap();
        }
        "remove" => open(&theirs).empty(&[]).unwrap(),
        // The naive way, to show that the attacks find it.
        "copy by path" => {
            let file = theirs.join("inner/file");
            if fs::symlink_metadata(file.parent().unwrap()).unwrap().is_dir() {
                fs::copy(&file, copy.join("file")).unwrap();
            }
        }
        other => panic!("{other}"),
    }
}

/// Attacks `operation`. Where nobody disturbs it, it leaves files: each with its owner and content.
fn attack(test: &str, operation: &str, files: &[(&str, u32, &str)]) {
    if !can(test) {
        return;
    }
    let ground = Ground::new();
    ground.attack(operation, &mut |how| {
        ground.assert_unharmed(how);
        if how == UNDISTURBED {
            for (path, uid, content) in files {
                let path = ground.root.path().join(path);
                assert_eq!(fs::read_to_string(&path).unwrap(), *content, "{}", path.display());
                assert_eq!(fs::metadata(&path).unwrap().uid(), *uid, "{}", path.display());
            }
            let inner = ground.theirs().join("inner");
            assert_eq!(inner.exists(), operation != "remove");
        }
    });
}

#[test]
fn reading_below_their_directory_finds_nothing_of_roots() {
    attack(
        "reading_below_their_directory_finds_nothing_of_roots",
        "read",
        &[("copy/file", 0, "theirs"), ("copy/again", 0, "theirs")],
    );
}

#[test]
fn a_copy_of_their_directory_holds_nothing_of_roots() {
    attack(
        "a_copy_of_their_directory_holds_nothing_of_roots",
        "copy from",
        &[("copy/inner/file", 0, "theirs"), ("copy/kept/inner/file", NOBODY, "theirs")],
    );
}

#[test]
fn a_copy_into_their_directory_changes_nothing_of_roots() {
    attack(
        "a_copy_into_their_directory_changes_nothing_of_roots",
        "copy to",
        &[("theirs/inner/file", NOBODY, "copied")],
    );
}

#[test]
fn writing_below_their_directory_changes_nothing_of_roots() {
    attack(
        "writing_below_their_directory_changes_nothing_of_roots",
        "write",
        &[("theirs/inner/file", NOBODY, "put back")],
    );
}

#[test]
fn removing_below_their_directory_removes_nothing_of_roots() {
    attack(test_name!(), "remove", &[]);
}

#[test]
fn a_hard_link_to_a_file_of_roots_is_neither_copied_nor_written() {
    needs!(can);
    let ground = Ground::new();
    ground.make_anew();
    let inner = ground.theirs().join("inner");
    // Kernels forbid it (fs.protected_hardlinks); not all of them.
    fs::hard_link(ground.secret().join("file"), inner.join("link")).unwrap();
    let (from, to) =
        (Directory::open(&ground.theirs()).unwrap(), Directory::open(&ground.copy()).unwrap());
    let refused = tree_copy(NOBODY, None).contents(&from, &to, &[]).unwrap_err();
    assert!(matches!(refused, StepError::Io { .. }), "{refused}");
    let kept = to.create_directory("kept", 0o700).unwrap();
    let mut with_links = TreeCopy { keeps_links: true, ..tree_copy(NOBODY, None) };
    assert!(with_links.contents(&from, &kept, &[]).is_err());
    let inner = from.directory("inner").unwrap();
    assert!(inner.append_to_file("link".as_ref(), b"more").is_err());
    fs::remove_file(ground.theirs().join("inner/link")).unwrap();
    ground.assert_unharmed("a hard link");
    // A second name of a file of theirs is refused too.
    let file = ground.theirs().join("inner/file");
    fs::hard_link(&file, ground.theirs().join("inner/again")).unwrap();
    fs::remove_dir_all(ground.copy()).unwrap();
    fs::create_dir(ground.copy()).unwrap();
    let to = Directory::open(&ground.copy()).unwrap();
    assert!(tree_copy(NOBODY, None).contents(&from, &to, &[]).is_err());
}

/// Returns the places that a call looks up by path below a directory of `account`.
fn by_path_below(account: u32, call: &Call) -> Vec<String> {
    let is_theirs = |directory: &Path| {
        fs::symlink_metadata(directory).is_ok_and(|m| m.is_dir() && m.uid() == account)
    };
    let named = call.places.iter().filter(|named| named.is_by_path);
    let found = named.filter(|named| named.path.ancestors().skip(1).any(is_theirs));
    found.map(|named| format!("{} {}", call.name, named.path.display())).collect()
}

#[test]
fn a_copy_by_path_is_caught_at_the_very_step() {
    needs!(can);
    let ground = Ground::new();
    let mut caught = 0;
    ground.attack("copy by path", &mut |_| {
        let copied = fs::read_to_string(ground.copy().join("file")).unwrap_or_default();
        caught += usize::from(copied == "root's");
    });
    assert!(
        caught >= 1,
        "the secret was read when the directory was swapped right before the open"
    );
    let secret = ground.secret().join("file");
    let read = Attacker::new(NOBODY, NOBODY).run(move || fs::read(secret).is_ok());
    assert!(!read, "it has no right to read it");
    let mut by_path = Vec::new();
    ground.run("copy by path", &mut |call| by_path.extend(by_path_below(NOBODY, call)));
    let opened = format!("openat {}", ground.theirs().join("inner/file").display());
    assert!(by_path.contains(&opened), "{by_path:?}");
}

/// Two clusters with copies of the first's data, the second with its WAL elsewhere. A crash test
/// keeps and puts back files of the second, which is removed then. The first is left running.
#[test]
#[ignore = "started by the test below"]
fn victim_runs_a_session() {
    let Some(root) = std::env::var_os("ROOT").map(PathBuf::from) else { return };
    let journal = Journal::open(&root.join("state")).unwrap();
    let spec = || ClusterSpec::new(common::install(), cluster_directory(&root).unwrap()).unwrap();
    let mut first = ManuallyDrop::new(Cluster::create(spec(), &journal, &RUN).unwrap());
    first.start(&RUN).unwrap();
    let mut client = first.control("postgres").unwrap();
    // Files of one database are enough: each copy of one takes a dozen stops.
    for sql in [
        "UPDATE pg_database SET datistemplate = false",
        "DROP DATABASE template0",
        "DROP DATABASE template1",
        "CREATE TABLE kept AS SELECT g FROM generate_series(1, 1000) g",
    ] {
        client.batch_execute(sql).unwrap();
    }
    drop(client);
    let (template, _) = Template::copy(&mut first, &root, &RUN).unwrap();
    let mut with_wal = spec();
    with_wal.wal = Some(cluster_directory(&root).unwrap());
    let mut second = Cluster::create(with_wal, &journal, &RUN).unwrap();
    for cluster in [&mut first, &mut second] {
        template.copy_into(cluster, &RUN).unwrap();
        let mut client = cluster.control("postgres").unwrap();
        let kept = client.query_one("SELECT sum(g) FROM kept", &[]).unwrap();
        assert_eq!(kept.get::<_, i64>(0), 500_500);
    }
    second.stop(StopMode::Immediate);
    second.forget_postmaster().unwrap();
    let copies = Scratch::new();
    let baseline = FileBaseline::copy(&second.data(), "base", copies.path()).unwrap();
    assert!(baseline.put_back().unwrap() > 100);
    keep(&[(second.data(), "data".into())], &copies.path().join("kept")).unwrap();
    second.remove().unwrap();
}

/// As root makes data directories, fills, keeps, puts back, removes and sweeps them.
#[test]
fn root_makes_no_call_by_path_below_a_directory_of_the_servers_account() {
    needs!(can);
    let place = Place::new();
    let account = server_account().unwrap();
    let (session, state) = ("attacks_files::victim_runs_a_session", place.path().join("state"));
    for (victim, least) in [
        (victim(session, &[("ROOT", place.path())]), 10_000),
        (victim("attacks_journal::victim_sweeps", &[("STATE", &state)]), 300),
    ] {
        let mut by_path = Vec::new();
        let ended = trace(&victim, place.path(), &mut |call| {
            by_path.extend(by_path_below(account.uid, call));
        });
        let ended = ended.unwrap();
        assert_eq!(ended.code, Some(0), "{}", ended.output);
        // A cluster has hundreds of files.
        assert!(ended.steps > least, "{} calls were seen", ended.steps);
        assert_eq!(by_path, [""; 0]);
    }
    assert!(place.is_clean());
}

/// Looks at a server from within its account.
#[test]
#[ignore = "started by the test below"]
fn victim_looks_at_its_server() {
    let Some(root) = std::env::var_os("ROOT").map(PathBuf::from) else { return };
    assert!(std::env::var_os("PGDYNO_SECRET").is_some());
    let journal = Journal::open(&root.join("state")).unwrap();
    let spec = ClusterSpec::new(common::install(), cluster_directory(&root).unwrap()).unwrap();
    let mut cluster = Cluster::create(spec, &journal, &RUN).unwrap();
    cluster.start(&RUN).unwrap();
    let mut client = cluster.control("postgres").unwrap();
    let backend: i32 = client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    for pid in [cluster.pid().unwrap().cast_signed(), backend] {
        let environment =
            String::from_utf8(fs::read(format!("/proc/{pid}/environ")).unwrap()).unwrap();
        let names: Vec<&str> =
            environment.split('\0').filter_map(|v| v.split('=').next()).collect();
        let allowed = [
            "",
            "LC_ALL",
            "PATH",
            "TZ",
            "LD_LIBRARY_PATH",
            "PGDATA",
            "PGLOCALEDIR",
            "PGSYSCONFDIR",
        ];
        assert!(
            names.iter().all(|name| allowed.contains(name) || name.starts_with("LC_")),
            "{names:?}"
        );
        assert!(!environment.contains("canary"), "{environment}");
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let groups = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap();
        assert_eq!(groups.trim(), "", "it has root's groups");
        for descriptor in fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
            let target = fs::read_link(descriptor.unwrap().path()).unwrap();
            assert!(!target.starts_with(root.join("state")), "{} is open in it", target.display());
        }
    }
    drop(client);
    cluster.remove().unwrap();
}

#[test]
fn roots_environment_groups_and_descriptors_do_not_reach_the_server() {
    needs!(can);
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let looking = victim("attacks_files::victim_looks_at_its_server", &[("ROOT", place.path())]);
    // With a group more than root's own.
    let mut command = std::process::Command::new("setpriv");
    command.arg("--groups=0,4").arg(looking.get_program()).args(looking.get_args());
    command.env("ROOT", place.path()).env("PGDYNO_SECRET", "canary").env("PGPASSWORD", "canary");
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}
