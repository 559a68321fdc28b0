//! Storage stacks in experiments, as root on loop devices of the tests' own: made, measured, shown,
//! and gone afterwards.

use pgdyno_test_support::{assert_contains, needs};
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{World, elements, ended, finish, is_root, signal};
use serde_json::Value;

/// An experiment of short trials with `storages`, its loop files in the world's disk.
fn experiment(world: &World, factors: &str, storages: &str) -> String {
    let workload = world.small_workload();
    let text = format!(
        "[experiment]\nrepeats = 1\norder = \"interleaved\"\n[factors]\n{factors}\n\
         [workload]\nname = \"{workload}\"\nscale = 1\n[postgres.settings]\n\
         max_wal_size = \"64MB\"\n\
         [load]\nclients = 2\nrate = 200\nduration = \"1s\"\nwarm_up = \"200ms\"\n[telemetry]\n\
         fsync = \"20ms\"\n{storages}"
    );
    world.file("stacks.toml", &text).display().to_string()
}

/// `[storage.NAME]` on a loop file.
fn on_a_loop_file(world: &World, name: &str, filesystem: &str, more: &str) -> String {
    let disk = world.disk();
    format!(
        "[storage.{name}]\nbacking = {{ loop = {{ size = \"400MiB\", directory = \"{}\" }} }}\n\
         filesystem = \"{filesystem}\"\n{more}\n",
        disk.display()
    )
}

fn storage<'a>(shown: &'a Value, name: &str) -> &'a Value {
    let all = shown["sessions"][0]["storage"].as_array().unwrap();
    all.iter().find(|s| s["name"] == name).unwrap()
}

/// A loop device of the test's own, standing for a disk of the user's.
struct Disk {
    device: PathBuf,
}

impl Disk {
    fn new(world: &World) -> Self {
        let file = world.path("users-disk");
        fs::File::create(&file).unwrap().set_len(400 << 20).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&file).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self { device: String::from_utf8(made.stdout).unwrap().trim().into() }
    }

    fn path(&self) -> &str {
        self.device.to_str().unwrap()
    }

    /// Reads the first MiB, where every filesystem has its signature.
    fn head(&self) -> Vec<u8> {
        use std::io::Read;
        let mut head = Vec::new();
        fs::File::open(&self.device).unwrap().take(1 << 20).read_to_end(&mut head).unwrap();
        head
    }

    fn queue(&self, attribute: &str) -> String {
        let name = self.device.file_name().unwrap();
        fs::read_to_string(Path::new("/sys/block").join(name).join("queue").join(attribute))
            .unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).status();
    }
}

#[test]
fn filesystems_are_compared_with_their_read_back_and_one_that_cannot_be_made_is_a_gap() {
    needs!(is_root);
    let world = World::new();
    let storages = [
        on_a_loop_file(
            &world,
            "ext4",
            "ext4",
            "mount = [\"data=writeback\"]\nwal = \"log\"\n\
             tablespaces = { log = [\"pgbench_history\", \"pgbench_tellers\"] }",
        ),
        on_a_loop_file(&world, "xfs", "xfs", "device = { trim = true }"),
        on_a_loop_file(&world, "log", "ext2", ""),
        on_a_loop_file(&world, "gone", "reiserfs", ""),
        on_a_loop_file(&world, "wrong", "xfs", "mkfs = [\"-b\", \"size=3000\"]"),
    ]
    .concat();
    let file = experiment(&world, "storage = [\"ext4\", \"xfs\", \"gone\", \"wrong\"]", &storages);
    world.run(&["run", &file]).exits(2).prints("could not be made").prints("not available here");
    world.assert_gone();

    let shown = world.show("latest");
    let trials = shown["trials"].as_array().unwrap();
    let state = |i: usize| trials[i]["state"].as_str().unwrap();
    assert_eq!([state(0), state(1), state(2)], ["completed", "completed", "failed"]);
    assert_contains(trials[2]["failure"].as_str().unwrap(), &["mkfs.xfs"]);
    assert_eq!(trials.len(), 3, "what this machine lacks has no trial");
    for trial in &trials[..2] {
        assert_eq!(
            trial["server_count"]["rows"], trial["server_count"]["rows_expected"],
            "{trial}"
        );
    }
    assert_read_back(&shown);

    let environment = world.page(&["latest"])["environment"].to_string();
    assert_contains(&environment, &["Asked for", "data=writeback", "Not made"]);
}

/// Asserts that the run shows each storage as asked for and as obtained, or why it was not
/// obtained.
fn assert_read_back(shown: &Value) {
    let ext4 = &storage(shown, "ext4");
    assert_eq!(ext4["asked"]["filesystem"]["mount"][0], "data=writeback");
    assert_eq!(ext4["obtained"]["filesystem"]["kind"], "ext4");
    let options = ext4["obtained"]["filesystem"]["options"].as_array().unwrap();
    assert!(
        options.contains(&"data=writeback".into()) && options.contains(&"noatime".into()),
        "{options:?}"
    );
    assert_eq!(storage(shown, "xfs")["obtained"]["filesystem"]["kind"], "xfs");
    assert_eq!(storage(shown, "log")["filesystem"], "ext2");
    assert!(storage(shown, "gone")["failure"].as_str().unwrap().contains("reiserfs"));
    let lacks = |name: &str| storage(shown, name)["not_available_here"].as_bool();
    assert_eq!(
        [lacks("gone"), lacks("wrong"), lacks("xfs")],
        [Some(true), Some(false), Some(false)]
    );
    assert!(storage(shown, "gone")["obtained"].is_null());
    let probed: Vec<&str> =
        elements(&shown["fsync"]).map(|f| f["storage"].as_str().unwrap()).collect();
    assert_eq!(probed, ["ext4", "log", "xfs"]);
}

#[test]
fn the_wal_and_the_tables_lie_where_the_file_says() {
    needs!(is_root);
    let world = World::new();
    let storages = [
        on_a_loop_file(
            &world,
            "data",
            "ext4",
            "wal = \"log\"\ntablespaces = { log = [\"pgbench_tellers\"] }",
        ),
        on_a_loop_file(&world, "log", "xfs", ""),
    ]
    .concat();
    // The server's own word, while it runs: asked by the user's command between trials.
    let told = world.path("told");
    let asking = world.file(
        "ask.sh",
        &format!(
            "for data in {disk}/pgdyno-*/mnt/pgdyno-*/data; do\n\
             ls -d $(readlink -f $data/pg_wal) > {told}\n\
             socket=/run/$(basename $(dirname $data)); [ -S $socket/.s.PGSQL.5432 ] || exit 1\n\
             psql -h $socket -U postgres -d pgdyno -Atc \
             \"SELECT c.relname || ' ' || coalesce(t.spcname, '-') FROM pg_class c \
             LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace WHERE c.relname LIKE 'pgbench_%' \
             ORDER BY 1\" >> {told}\n\
             done\n",
            disk = world.disk().display(),
            told = told.display()
        ),
    );
    let more = format!(
        "[between]\nprewarm = true\ncommand = [\"sh\", \"-e\", \"{}\"]\n",
        asking.display()
    );
    let file = experiment(&world, "", &format!("{storages}{more}"));
    world.run(&["run", &file]).exits(0);
    let told = fs::read_to_string(told).unwrap();
    let (wal, tables) = told.split_once('\n').unwrap();
    let log = &world.show("latest")["sessions"][0]["storage"][1]["mount_point"];
    assert!(wal.starts_with(log.as_str().unwrap()) && wal.ends_with("/pg_wal"), "{told} {log}");
    assert_eq!(
        tables.lines().filter(|l| l.contains("pgdyno_log")).collect::<Vec<_>>(),
        ["pgbench_tellers pgdyno_log", "pgbench_tellers_pkey pgdyno_log"],
        "{told}"
    );
    world.assert_gone();
}

#[test]
fn a_device_is_written_only_when_named_twice_and_two_filesystems_take_turns_on_it() {
    needs!(is_root);
    let world = World::new();
    let disk = Disk::new(&world);
    let on_it = |name: &str, filesystem: &str| {
        format!(
            "[storage.{name}]\nbacking = {{ device = \"{}\" }}\nfilesystem = \"{filesystem}\"\n",
            disk.path()
        )
    };
    // What is set while a trial runs: the user's command reads it right before.
    let seen = world.path("seen");
    let name = disk.device.file_name().unwrap().display();
    let reading = format!("cat /sys/block/{name}/queue/read_ahead_kb >> {}", seen.display());
    let between = format!("[between]\ncommand = [\"sh\", \"-c\", \"{reading}\"]\n");
    let storages = [on_it("a", "ext4"), on_it("b", "xfs"), between].concat();
    let factors = "storage = [\"a\", \"b\"]\ndevice.read_ahead_kb = [64, 4096]";
    let file = &experiment(&world, factors, &storages);
    let refused = |args: &[&str], words: &str| {
        let before = disk.head();
        world.run(&[&["run", file], args].concat()).exits(1).says(words).says("help: ");
        assert_eq!(disk.head(), before, "a refused device was written to");
        world.assert_nothing_left();
    };
    refused(&[], "--wipe does not name it");
    refused(&["--wipe", disk.path(), "--wipe", "/dev/null"], "cannot wipe /dev/null");
    assert!(Command::new("mkfs.ext2").args(["-q", disk.path()]).status().unwrap().success());
    refused(&["--wipe", disk.path()], "it holds ext2");
    world
        .run(&["run", file, "--dry-run", "--wipe", disk.path()])
        .prints("On one device in turn: a, b.")
        .prints("holds ext2");

    let read_ahead = disk.queue("read_ahead_kb");
    world
        .run(&["run", file, "--wipe", disk.path(), "--overwrite-signature"])
        .exits(0)
        .says("overwrites")
        .says("ext2");
    assert_eq!(
        fs::read_to_string(seen).unwrap().lines().collect::<Vec<_>>(),
        ["64", "4096", "64", "4096"]
    );
    assert_eq!(disk.queue("read_ahead_kb"), read_ahead);
    let shown = world.show("latest");
    assert_eq!(storage(&shown, "a")["obtained"]["filesystem"]["kind"], "ext4");
    assert_eq!(storage(&shown, "b")["obtained"]["filesystem"]["kind"], "xfs");
    assert_eq!(shown["run"]["state"], "completed");
    world.assert_nothing_left();
    drop(disk);
    world.assert_gone();
}

#[test]
fn a_killed_runs_stack_is_shown_and_removed_by_clean_and_ctrl_c_takes_its_own_down() {
    needs!(is_root);
    let world = World::new();
    let storages = on_a_loop_file(&world, "disk", "ext4", "device = { read_ahead_kb = 96 }");
    let file = experiment(&world, "clients = [1, 2, 3, 4]", &storages);
    let mut child = world.spawn(&["run", &file]);
    world.until("the first trial to be stored", || world.trials_stored() >= 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let left = world.traces();
    assert!(left.len() >= 2, "a mount and a loop device outlive a killed pgdyno: {left:?}");
    world.run(&["clean", "--dry-run"]).exits(0).prints("/disk/pgdyno-").prints("which is gone");
    assert_eq!(world.traces(), left, "a dry run removes nothing");
    world.run(&["clean"]).exits(0).prints("ended server").prints("put ");
    world.assert_gone();
    // Others' leftovers on this machine are told and are no failure.
    let again = world.run(&["clean"]);
    assert!(
        again.code == Some(0) && !again.out.contains(world.disk().to_str().unwrap()),
        "{}",
        again.out
    );

    let child = world.spawn(&["run", "--resume", "latest"]);
    world.until("the next trial to be stored", || world.trials_stored() >= 2);
    signal(child.id().cast_signed(), "INT");
    finish(child).exits(130);
    world.assert_gone();
}

/// `[storage.NAME]` on an emulated disk.
fn on_an_emulated_disk(world: &World, name: &str, more: &str) -> String {
    let disk = world.disk();
    format!(
        "[storage.{name}]\n\
         backing = {{ emulated = {{ size = \"400MiB\", directory = \"{}\"{more} }} }}\n\
         filesystem = \"ext4\"\n",
        disk.display()
    )
}

#[test]
fn an_emulated_disk_bounds_commits_as_it_was_told_and_every_report_says_what_it_is() {
    needs!(is_root);
    let world = World::new();
    let storages = [
        on_an_emulated_disk(&world, "fast", ""),
        on_an_emulated_disk(&world, "slow", ", flush = \"4ms\", parallel = 1"),
    ]
    .concat();
    let file = experiment(&world, "storage = [\"fast\", \"slow\"]", &storages);
    // As fast as the disks let it.
    let set = ["--set", "load.rate=100000"];
    let ran = world.run(&[&["run", &file, "-o", "report.html"], &set[..]].concat()).exits(0);
    assert!(world.disk_servers().is_empty());
    world.assert_gone();
    let shown = world.show("latest");
    let tps = |n: usize| shown["treatments"][n]["tps"]["mean"].as_f64().unwrap();
    // Two clients: no flush carries more than one commit of each.
    assert!(tps(1) <= 2.0 / 0.004, "{} {}", tps(0), tps(1));
    let report = fs::read_to_string(world.path("report.html")).unwrap();
    // The first screen cuts notes at the end of the line.
    ran.prints("Emulated by pgdyno");
    let whole = world.run(&["show", "latest", "--verbose"]).out;
    for text in [whole, report] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("Emulated by pgdyno") && text.contains("4ms a flush"), "{text}");
    }
    let obtained = &storage(&shown, "slow")["obtained"]["notes"][0];
    assert!(obtained.as_str().unwrap().contains("no real device"), "{obtained}");
}

#[test]
#[ignore = "long: two runs that are killed"]
fn a_killed_runs_emulated_disk_is_removed_whether_its_process_lives_or_not() {
    needs!(is_root);
    for kill_the_disk_too in [false, true] {
        let world = World::new();
        let file = experiment(&world, "", &on_an_emulated_disk(&world, "disk", ""));
        let mut child = world.spawn(&["run", &file, "--set", "experiment.repeats=20"]);
        world.until("the first trial to be stored", || world.trials_stored() >= 1);
        child.kill().unwrap();
        child.wait().unwrap();
        let serving = world.disk_servers();
        assert_eq!(serving.len(), 1, "the disk outlives pgdyno");
        if kill_the_disk_too {
            signal(serving[0], "KILL");
            world.until("the disk's process to end", || world.disk_servers().is_empty());
        }
        let cleaned = world.run(&["clean"]).exits(0);
        assert!(world.disk_servers().is_empty(), "{}", cleaned.out);
        world.assert_gone();
    }
}

#[test]
fn a_filesystem_that_is_lost_mid_run_costs_its_trials_and_no_other() {
    needs!(is_root);
    let world = World::new();
    // Before its first trial the xfs shuts down, as it does when its device is gone.
    let losing = world.file(
        "lose.sh",
        &format!(
            "grep ' {}/.* xfs ' /proc/self/mounts | cut -d' ' -f2 | while read at; do\n\
             [ -S /run/$(basename $(ls -d $at/pgdyno-*))/.s.PGSQL.5432 ] && \
             xfs_io -x -c shutdown $at\n\
             done; true\n",
            world.disk().display()
        ),
    );
    let between = format!("[between]\ncommand = [\"sh\", \"{}\"]\n", losing.display());
    let storages = [
        on_a_loop_file(&world, "kept", "ext4", ""),
        on_a_loop_file(&world, "lost", "xfs", ""),
        between,
    ]
    .concat();
    let file = experiment(&world, "storage = [\"kept\", \"lost\"]", &storages);
    let ran = world.run(&["run", &file, "--set", "experiment.repeats=2"]).exits(2);
    let shown = world.show("latest");
    let states: Vec<(&str, &str)> = elements(&shown["trials"])
        .map(|t| {
            let treatment = t["treatment"].as_u64().unwrap();
            (["kept", "lost"][usize::try_from(treatment).unwrap()], t["state"].as_str().unwrap())
        })
        .collect();
    let expected =
        [("kept", "completed"), ("lost", "failed"), ("lost", "failed"), ("kept", "completed")];
    assert_eq!(states, expected, "{}", ran.err);
    // What lay on it could not be removed there: the journal keeps that until the next look.
    assert_eq!(world.traces(), [""; 0]);
    world.run(&["clean"]).exits(0);
    world.assert_gone();
}

#[test]
fn without_root_a_filesystem_is_refused_with_what_to_do() {
    needs!(is_root);
    const NOBODY: u32 = 65_534;
    let world = World::new();
    let file = experiment(&world, "", &on_a_loop_file(&world, "disk", "ext4", ""));
    for directory in [world.disk(), world.path("data"), world.path("state")] {
        fs::create_dir_all(&directory).unwrap();
        chown(&directory, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    // The binary may lie where only root can enter.
    let program = world.path("pgdyno");
    fs::copy(env!("CARGO_BIN_EXE_pgdyno"), &program).unwrap();
    let made = world.command(&["run", &file]);
    let mut command = Command::new(program);
    command
        .args(made.get_args())
        .current_dir(world.disk().parent().unwrap())
        .uid(NOBODY)
        .gid(NOBODY);
    command.envs(made.get_envs().filter_map(|(name, value)| Some((name, value?))));
    ended(command.output().unwrap())
        .exits(1)
        .says("pgdyno does not run as root")
        .says("help: run pgdyno as root");
    world.assert_gone();
}
