//! Files as root below directories that another account may write to, which swaps them for links at
//! every step.
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::common;
use crate::common::attacks::{Attack, Attacker, attack_each_step};
use crate::common::tracer::{Ended, Moment, trace, victim};
use pgdyno_exec::account::{Account, server_account};
use pgdyno_exec::beneath::{CopyError, CopySummary, Directory, TreeCopy};
use pgdyno_exec::journal::Journal;
use pgdyno_exec::step::Contents;
use pgdyno_exec::{ExecContext, Executor as _, Step};
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_postgres::{Cluster, ClusterSpec, StopMode, Template};
use pgdyno_storage::fault::{FileBaseline, keep};

/// `nobody`, which owns nothing.
const NOBODY: u32 = 65534;

/// Whether this machine can run `test`: root alone can attack as another account.
fn can(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        let _ =
            writeln!(std::io::stderr(), "\nskipped: {test}: needs root to become another account");
    }
    is_root
}

/// A directory of `nobody`'s with a file in a directory, and a directory that only root can enter,
/// with a secret.
struct Ground {
    root: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self { root }
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

    /// Attacks `victim` at each step, with each of the names swapped that a victim passes.
    fn attack(&self, victim_name: &str, check: &mut dyn FnMut(&Ended, &str)) {
        let mut attacker = Attacker::new(NOBODY, NOBODY);
        let inner = self.theirs().join("inner");
        for (swapped, target) in
            [(inner.clone(), self.secret()), (inner.join("file"), self.secret().join("file"))]
        {
            let mut attack = Attack {
                place: self.root.path(),
                prepare: &mut || {
                    self.make_anew();
                    victim(victim_name, &[("THEIRS", &self.theirs()), ("COPY", &self.copy())])
                },
                // It may not be able to, where root holds the directory meanwhile.
                swap: &mut |away| {
                    let _ = if away {
                        attacker.swap(&swapped, &target)
                    } else {
                        attacker.swap_back(&swapped)
                    };
                },
                check: &mut |ended, how| {
                    self.assert_unharmed(how);
                    check(ended, how);
                },
            };
            attack_each_step(&mut attack, 6).unwrap();
        }
    }
}

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

/// The two directories that a victim works on; none where it was not started by its test.
fn given() -> Option<(PathBuf, PathBuf)> {
    Some((std::env::var_os("THEIRS")?.into(), std::env::var_os("COPY")?.into()))
}

fn nobody() -> Account {
    Account { name: "nobody".into(), uid: NOBODY, gid: NOBODY }
}

static RUN: AtomicBool = AtomicBool::new(false);

fn tree_copy(source_owner: u32, owner: Option<&Account>) -> TreeCopy<'_> {
    TreeCopy { source_owner, owner, keeps_links: false, stop: &RUN, copied: CopySummary::default() }
}

#[test]
#[ignore = "started by the test below"]
fn victim_copies_from_them() {
    let Some((theirs, copy)) = given() else { return };
    let (from, to) = (Directory::open(&theirs).unwrap(), Directory::open(&copy).unwrap());
    tree_copy(NOBODY, None).contents(&from, &to, &[]).unwrap();
}

#[test]
fn a_copy_of_their_directory_holds_nothing_of_roots() {
    if !can("a_copy_of_their_directory_holds_nothing_of_roots") {
        return;
    }
    let ground = Ground::new();
    ground.attack("attacks_files::victim_copies_from_them", &mut |_, how| {
        if how == "undisturbed" {
            let copied = ground.copy().join("inner/file");
            assert_eq!(fs::read_to_string(&copied).unwrap(), "theirs");
            assert_eq!(fs::metadata(&copied).unwrap().uid(), 0);
        }
    });
}

/// As a template is copied: over what was in the directory, from one of root's.
#[test]
#[ignore = "started by the test below"]
fn victim_copies_to_them() {
    let Some((theirs, copy)) = given() else { return };
    fs::create_dir(copy.join("inner")).unwrap();
    fs::write(copy.join("inner/file"), "copied").unwrap();
    let (from, to) = (Directory::open(&copy).unwrap(), Directory::open(&theirs).unwrap());
    let mode = to.take_over().unwrap();
    to.empty(&[]).unwrap();
    let nobody = nobody();
    tree_copy(0, Some(&nobody)).contents(&from, &to, &[]).unwrap();
    to.hand_over(Some(&nobody), mode).unwrap();
}

#[test]
fn a_copy_into_their_directory_changes_nothing_of_roots() {
    if !can("a_copy_into_their_directory_changes_nothing_of_roots") {
        return;
    }
    let ground = Ground::new();
    ground.attack("attacks_files::victim_copies_to_them", &mut |_, how| {
        if how == "undisturbed" {
            let copied = ground.theirs().join("inner/file");
            assert_eq!(fs::read_to_string(&copied).unwrap(), "copied");
            for path in [&ground.theirs(), copied.parent().unwrap(), &copied] {
                assert_eq!(fs::metadata(path).unwrap().uid(), NOBODY);
            }
        }
    });
}

/// Every step that works on files, in a directory of the server's account.
#[test]
#[ignore = "started by the test below"]
fn victim_performs_steps() {
    let Some((theirs, copy)) = given() else { return };
    let journal = Journal::open(&copy.join("state")).unwrap();
    let mut performing = ExecContext { journal: &journal, stop: &RUN, made: Vec::new() };
    let inner = theirs.join("inner");
    let text = |text: &str| Contents::Text(text.to_owned());
    let steps = [
        Step::AppendToFile { path: inner.join("file"), text: " and more".into() },
        Step::WriteFile {
            path: inner.join("new"),
            contents: text("written"),
            mode: 0o600,
            owner: Some(nobody()),
        },
        Step::MakeDirectory { path: inner.join("made"), mode: 0o700, owner: Some(nobody()) },
        Step::RemoveFile { path: inner.join("new") },
    ];
    for step in steps {
        performing.execute(&step).unwrap();
    }
}

#[test]
fn steps_in_their_directory_touch_nothing_of_roots() {
    if !can("steps_in_their_directory_touch_nothing_of_roots") {
        return;
    }
    let ground = Ground::new();
    ground.attack("attacks_files::victim_performs_steps", &mut |_, how| {
        if how == "undisturbed" {
            let (file, made) =
                (ground.theirs().join("inner/file"), ground.theirs().join("inner/made"));
            assert_eq!(fs::read_to_string(&file).unwrap(), "theirs and more");
            for path in [&file, &made] {
                assert_eq!(fs::metadata(path).unwrap().uid(), NOBODY);
            }
        }
    });
}

/// Keeps and puts back files of PGDATA, as crash tests do.
#[test]
#[ignore = "started by the test below"]
fn victim_keeps_and_puts_back() {
    let Some((theirs, copy)) = given() else { return };
    fs::create_dir(copy.join("baseline")).unwrap();
    let baseline = FileBaseline::copy(&theirs, "inner", &copy.join("baseline")).unwrap();
    assert_eq!(baseline.put_back().unwrap(), 1);
    keep(&[(theirs, "data".into())], &copy.join("kept")).unwrap();
}

#[test]
fn a_crash_tests_copies_hold_nothing_of_roots() {
    if !can("a_crash_tests_copies_hold_nothing_of_roots") {
        return;
    }
    let ground = Ground::new();
    ground.attack("attacks_files::victim_keeps_and_puts_back", &mut |_, how| {
        if how == "undisturbed" {
            let kept = ground.copy().join("kept/data/inner/file");
            assert_eq!(fs::read_to_string(&kept).unwrap(), "theirs");
            assert_eq!(fs::metadata(&kept).unwrap().uid(), NOBODY);
        }
    });
}

#[test]
fn a_hard_link_to_a_file_of_roots_is_neither_copied_nor_written() {
    if !can("a_hard_link_to_a_file_of_roots_is_neither_copied_nor_written") {
        return;
    }
    let ground = Ground::new();
    ground.make_anew();
    let inner = ground.theirs().join("inner");
    // Kernels forbid it (fs.protected_hardlinks); not all of them.
    fs::hard_link(ground.secret().join("file"), inner.join("link")).unwrap();
    let (from, to) =
        (Directory::open(&ground.theirs()).unwrap(), Directory::open(&ground.copy()).unwrap());
    let refused = tree_copy(NOBODY, None).contents(&from, &to, &[]).unwrap_err();
    assert!(matches!(refused, CopyError::Io { .. }), "{refused}");
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

/// The naive way, to show that the attacks find it.
#[test]
#[ignore = "started by the test below"]
fn victim_copies_by_path() {
    let (Some(from), Some(to)) = (std::env::var_os("FROM"), std::env::var_os("TO")) else { return };
    let file = Path::new(&from).join("inner/file");
    if fs::symlink_metadata(file.parent().unwrap()).unwrap().is_dir() {
        fs::copy(&file, Path::new(&to).join("file")).unwrap();
    }
}

#[test]
fn a_copy_by_path_is_caught_at_the_very_step() {
    if !can("a_copy_by_path_is_caught_at_the_very_step") {
        return;
    }
    let ground = Ground::new();
    let mut attacker = Attacker::new(NOBODY, NOBODY);
    let inner = ground.theirs().join("inner");
    let mut caught = 0;
    let mut attack = Attack {
        place: &ground.theirs(),
        prepare: &mut || {
            ground.make_anew();
            victim(
                "attacks_files::victim_copies_by_path",
                &[("FROM", &ground.theirs()), ("TO", &ground.copy())],
            )
        },
        swap: &mut |away| {
            let swapped = if away {
                attacker.swap(&inner, &ground.secret())
            } else {
                attacker.swap_back(&inner)
            };
            assert!(swapped);
        },
        check: &mut |_, _| {
            let copied = fs::read_to_string(ground.copy().join("file")).unwrap_or_default();
            caught += usize::from(copied == "root's");
        },
    };
    attack_each_step(&mut attack, 100).unwrap();
    assert!(
        caught >= 1,
        "the secret was read when the directory was swapped right before the open"
    );
    assert!(
        !attacker.run(&format!("cat '{}/file'", ground.secret().display())),
        "it has no right to read it"
    );
}

/// Two clusters from their making to their removal, the second with its WAL elsewhere and a copy of
/// the first's data.
#[test]
#[ignore = "started by the test below"]
fn victim_runs_a_session() {
    let Some(root) = std::env::var_os("ROOT").map(PathBuf::from) else { return };
    let journal = Journal::open(&root.join("state")).unwrap();
    let spec = || ClusterSpec::new(common::install(), cluster_directory(&root).unwrap()).unwrap();
    let mut first = Cluster::create(spec(), &journal, &RUN).unwrap();
    first.start(&RUN).unwrap();
    let mut client = first.control("postgres").unwrap();
    client.batch_execute("CREATE TABLE kept AS SELECT g FROM generate_series(1, 1000) g").unwrap();
    drop(client);
    let (template, _) = Template::copy(&mut first, &root, &RUN).unwrap();
    let mut with_wal = spec();
    with_wal.wal = Some(cluster_directory(&root).unwrap());
    for spec in [spec(), with_wal] {
        let mut second = Cluster::create(spec, &journal, &RUN).unwrap();
        template.copy_into(&mut second, &RUN).unwrap();
        let kept =
            second.control("postgres").unwrap().query_one("SELECT sum(g) FROM kept", &[]).unwrap();
        assert_eq!(kept.get::<_, i64>(0), 500_500);
        second.stop(StopMode::Fast);
        second.remove().unwrap();
    }
    first.remove().unwrap();
}

#[test]
fn root_makes_no_call_by_path_below_a_directory_of_the_servers_account() {
    let test = "root_makes_no_call_by_path_below_a_directory_of_the_servers_account";
    if !can(test) {
        return;
    }
    let ground = Ground::new();
    let root = ground.root.path().to_owned();
    let account = server_account().unwrap();
    let is_theirs = |directory: &Path| {
        fs::symlink_metadata(directory).is_ok_and(|m| m.is_dir() && m.uid() == account.uid)
    };
    let (mut writes, mut by_path) = (0, Vec::new());
    let ended = trace(
        &victim("attacks_files::victim_runs_a_session", &[("ROOT", &root)]),
        &root,
        &mut |call, moment| {
            if moment == Moment::After || !call.is_write || call.uid != 0 {
                return;
            }
            writes += 1;
            for named in call.places.iter().filter(|named| named.is_by_path) {
                if named.path.ancestors().skip(1).any(is_theirs) {
                    by_path.push(format!("{} {}", call.name, named.path.display()));
                }
            }
        },
    );
    let ended = ended.unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    // A copied cluster has a thousand files.
    assert!(writes > 3000, "{writes} calls were seen");
    assert_eq!(by_path, [""; 0]);
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
    let test = "roots_environment_groups_and_descriptors_do_not_reach_the_server";
    if !can(test) {
        return;
    }
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
