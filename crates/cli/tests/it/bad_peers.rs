//! Meets servers that stall, send without end, lie or ask for the password. A signal ends every
//! command, and no lie is believed.

use std::io::{PipeReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::pgbench_support;
use crate::support::fake_server::{FakeServer, Mode};
use crate::support::{Ended, World, finish, signal};
use pgdyno_test_support::{test_name, wait_for};

/// Time after which a command counts as hung and is killed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for `child`; kills it and panics after [`PATIENCE`].
fn end_of(mut child: Child, what: &str) -> Ended {
    let patience = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > patience {
            child.kill().unwrap();
            let killed = finish(child);
            panic!("{what}: it did not end\n{}{}", killed.out, killed.err);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    finish(child).with_case(what)
}

fn dsn(server: &FakeServer, more: &str) -> String {
    format!("postgresql://me:hunter2@127.0.0.1:{}/postgres?{more}", server.port)
}

/// Starts a command whose output is kept until it ends.
fn quiet(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn commands(world: &World, dsn: &str) -> [Command; 3] {
    let set = format!("postgres.dsn={dsn}");
    [
        world.command(&["pgbench", "-n", "-S", dsn]),
        world.command(&["pgbench", "-i", dsn]),
        world.command(&["run", "quickstart", "--set", &set]),
    ]
}

/// Every place at which a server can stall.
const STALLS: [Mode; 6] = [
    Mode::Silent,
    Mode::StallsInTls,
    Mode::StallsInAuthentication,
    Mode::StallsBeforeReady,
    Mode::StallsInQuery,
    Mode::SendsHalfAMessage,
];

/// Number of sessions before the load's own: one that asks for the user's search_path, and one that
/// works without it.
const SETUP: usize = 2;

#[test]
fn a_signal_ends_whatever_waits_for_a_control_connection() {
    let world = World::new();
    for mode in STALLS {
        for name in ["INT", "TERM"] {
            let server = FakeServer::start(0, mode);
            for (n, command) in commands(&world, &dsn(&server, "")).into_iter().enumerate() {
                let what = format!("{mode:?}, {name}, command {n}");
                let child = quiet(command);
                server.await_arrival();
                signal(child.id().cast_signed(), name);
                end_of(child, &what).exits(130);
            }
        }
    }
}

#[test]
fn a_signal_ends_whatever_waits_for_a_load_connection() {
    let world = World::new();
    for mode in STALLS {
        for name in ["INT", "TERM"] {
            let server = FakeServer::start(SETUP, mode);
            let dsn = dsn(&server, if mode == Mode::StallsInTls { "" } else { "sslmode=disable" });
            let child = quiet(world.command(&["pgbench", "-n", "-S", "-T", "60", &dsn]));
            server.await_arrival();
            signal(child.id().cast_signed(), name);
            end_of(child, &format!("{mode:?}, {name}")).exits(130);
        }
    }
}

#[test]
fn connecting_takes_no_longer_than_connect_timeout_up_to_the_first_ready() {
    let world = World::new();
    for mode in &STALLS[..4] {
        for honest in [0, SETUP] {
            let server = FakeServer::start(honest, *mode);
            let dsn = dsn(&server, "connect_timeout=1");
            let child = quiet(world.command(&["pgbench", "-nS", "-T60", &dsn]));
            end_of(child, &format!("{mode:?}")).exits(1).says("within 1s");
        }
    }
}

#[test]
fn a_server_without_end_is_left() {
    let world = World::new();
    for mode in [Mode::EndlessSettings, Mode::EndlessNotices, Mode::GiantMessage] {
        let server = FakeServer::start(0, mode);
        for (n, command) in commands(&world, &dsn(&server, "")).into_iter().enumerate() {
            let ended = end_of(quiet(command), &format!("{mode:?}, command {n}")).exits(1);
            let said = match mode {
                Mode::GiantMessage => "at most 65536 are taken",
                Mode::EndlessNotices => "more than 10000 messages",
                _ => "more than 1000 messages",
            };
            assert!(ended.err.contains(said), "{mode:?}: {}", ended.err);
        }
    }
}

/// Returns both ends of a full pipe, the writing end as a process's standard error.
fn full_pipe() -> (PipeReader, Stdio) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
    rustix::fs::fcntl_setfl(&writer, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&writer, flags).unwrap();
    (reader, writer.into())
}

/// Returns whether a signal that was sent to the process is still to be delivered.
fn has_pending_signal(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
    pending.trim().contains(|digit| digit != '0')
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let world = World::new();
    for (first, second, status) in
        [("INT", "INT", 130), ("TERM", "TERM", 143), ("INT", "TERM", 143)]
    {
        let server = FakeServer::start(0, Mode::StallsInQuery);
        let mut command = world.command(&["pgbench", "-n", "-S", &dsn(&server, "")]);
        // What it says after the first signal never gets out.
        let (reader, full) = full_pipe();
        let child = command.stdout(Stdio::null()).stderr(full).spawn().unwrap();
        drop(command);
        server.await_arrival();
        let pid = child.id().cast_signed();
        signal(pid, first);
        // Two that wait to be delivered would be one.
        wait_for("the signal to be delivered", || (!has_pending_signal(pid)).then_some(()));
        // Its handler may be interrupted.
        std::thread::sleep(Duration::from_millis(300));
        signal(pid, second);
        end_of(child, &format!("{first}, {second}")).exits(status);
        drop(reader);
    }
}

#[test]
fn a_lock_that_somebody_holds_is_no_reason_to_be_deaf() {
    let Some(server) = pgbench_support::Server::newest(test_name!()) else { return };
    server.pgdyno("pgbench -i -q our").exits(0);
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
    let until = |sql: &str, wanted: &str| {
        let patience = Instant::now() + PATIENCE;
        while server.ask("our", sql) != wanted {
            assert!(Instant::now() < patience, "{sql} is not {wanted}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    std::thread::scope(|scope| {
        let lock =
            "begin; lock table pgbench_branches in access exclusive mode; select pg_sleep(600)";
        let holder = scope.spawn(|| server.asked("our", lock));
        until(
            "select count(*) from pg_locks where mode = 'AccessExclusiveLock' and granted and \
             relation = 'pgbench_branches'::regclass",
            "1",
        );
        for args in ["pgbench -S our", "pgbench -S -C our", "pgbench -i our"] {
            for name in ["INT", "TERM"] {
                let mut command = server.pgdyno_command();
                command.args(args.split_whitespace());
                let child = quiet(command);
                until(waiting, "1");
                signal(child.id().cast_signed(), name);
                end_of(child, args).exits(130);
                // Nothing of ours stands in the queue for the lock.
                until(waiting, "0");
            }
        }
        server.ask(
            "our",
            "select pg_terminate_backend(pid) from pg_stat_activity where query like \
             '%pg_sleep(600)'",
        );
        holder.join().unwrap();
    });
    server.pgdyno("pgbench -S -t 10 our").exits(0);
}

#[test]
fn the_password_is_not_sent_in_clear_unless_that_is_asked_for_by_name() {
    let world = World::new();
    for honest in [0, SETUP] {
        for (required, is_sent) in
            [("", false), ("!md5", false), ("scram-sha-256", false), ("password", true)]
        {
            let server = FakeServer::start(honest, Mode::WantsPassword);
            let dsn = dsn(&server, &format!("require_auth={required}"));
            let dsn = dsn.trim_end_matches("require_auth=");
            let args = ["pgbench", "-n", "-S", "-t", "3", dsn];
            // For a session that needs no password, none may be required.
            let dsn_of_both = dsn.replace("=password", "=password,none");
            let args: Vec<&str> =
                args.iter().map(|a| if *a == dsn { dsn_of_both.as_str() } else { a }).collect();
            if honest == SETUP && required == "scram-sha-256" {
                continue;
            }
            let ended = end_of(quiet(world.command(&args)), required);
            let secrets = server.secrets.lock().unwrap().clone();
            if is_sent {
                assert_eq!(ended.code, Some(0), "{}", ended.err);
                assert!(secrets.starts_with(b"hunter2\0"), "{secrets:?}");
            } else {
                assert_eq!(ended.code, Some(1), "{}", ended.err);
                assert!(secrets.is_empty(), "{required}: {secrets:?}");
                ended.says("clear");
                assert!(!ended.err.contains("hunter2"), "{}", ended.err);
            }
        }
    }
    // And the server that lets in without any proof.
    let server = FakeServer::start(9, Mode::Honest);
    world
        .run(&["pgbench", "-n", "-S", "-t", "3", &dsn(&server, "require_auth=scram-sha-256")])
        .exits(1)
        .says("server did not complete authentication");
    world.run(&["pgbench", "-n", "-S", "-t", "3", &dsn(&server, "require_auth=none")]).exits(0);
}

#[test]
fn a_script_of_the_users_own_is_all_that_a_server_is_sent() {
    let world = World::new();
    let server = FakeServer::start(0, Mode::KnowsNoCatalog);
    let dsn = dsn(&server, "sslmode=disable");
    let script = world.file("one.sql", "SELECT 1;\n");
    let run = |more: &[&str]| {
        let own = ["pgbench", "-n", "-t", "3", "-f", script.to_str().unwrap()];
        end_of(quiet(world.command(&[&own, more, &[&dsn]].concat())), "a script")
    };
    for more in [&[][..], &["-C"]] {
        run(more)
            .with_case(format!("{more:?}"))
            .exits(0)
            .prints("processed: 3/3")
            .prints("server 15.4");
    }
}

#[test]
fn a_server_that_answers_more_than_was_asked_measures_nothing() {
    let world = World::new();
    for reactor in ["epoll", "io_uring", "blocking"] {
        for protocol in ["simple", "extended", "prepared"] {
            for mode in [Mode::Honest, Mode::FiveReady, Mode::FiveReplies, Mode::CopyData] {
                let server = FakeServer::start(SETUP, mode);
                let dsn = dsn(&server, "sslmode=disable");
                let reactor = format!("--reactor={reactor}");
                let args = ["pgbench", "-nS", "-t500", "-M", protocol, &reactor, &dsn];
                let what = format!("{reactor}, {protocol}, {mode:?}");
                let ended = end_of(quiet(world.command(&args)), &what);
                if mode == Mode::Honest {
                    assert_eq!(ended.code, Some(0), "{what}: {}", ended.err);
                } else {
                    assert_eq!(ended.code, Some(2), "{what}: {}{}", ended.out, ended.err);
                    assert!(ended.err.contains("which nobody asked for"), "{what}: {}", ended.err);
                    assert!(!ended.out.contains("processed: 500/500"), "{what}: {}", ended.out);
                }
            }
        }
    }
}

#[test]
fn a_server_that_ends_a_load_is_quoted_and_the_same_command_goes_on() {
    let Some(server) = pgbench_support::Server::newest(test_name!()) else { return };
    let load = || {
        let mut command = server.pgdyno_command();
        command.args(["load", "tpcb-like", "--scale", "5", "-d", "our"]);
        quiet(command)
    };
    let ended = load();
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
               where query like 'COPY%' and state = 'active' and pid <> pg_backend_pid()";
    let patience = Instant::now() + PATIENCE;
    while !["1", "2"].contains(&server.ask("our", end).as_str()) {
        assert!(Instant::now() < patience, "nothing is loaded");
    }
    end_of(ended, "load")
        .exits(1)
        .says("terminating connection due to administrator")
        .says("the same command goes on");
    end_of(load(), "load").exits(0);
}
