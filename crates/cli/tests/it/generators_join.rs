//! `pgdyno pgbench --generators join:…`: workers that dial the coordinator, and those who should
//! not get in.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::generators_support::{ANY_SKEW, CLIENTS, pgbench, server_with_tables};
use crate::intruder::Intruder;
use crate::support::{Ended, ended, finish, signal};
use pgdyno_test_support::{Server, Session, wait_for};

/// A place for a coordinator: a free port, and a folder for its token.
struct Place {
    address: String,
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        Self { address, folder: tempfile::tempdir().unwrap() }
    }

    fn token(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    fn generators(&self, number: u32, wait: &str) -> String {
        let token = self.token();
        format!("join:{number},listen={},token={},wait={wait}", self.address, token.display())
    }

    /// Starts a coordinator of `args`, and waits for its token.
    fn coordinator(&self, server: &Server, generators: &str, args: &[&str]) -> Child {
        let mut command = pgbench(server);
        command.args(args).args(["-n", "-S", ANY_SKEW, "--generators", generators]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for("the token", || {
            std::fs::read_to_string(self.token())
                .is_ok_and(|text| text.ends_with('\n'))
                .then_some(())
        });
        wait_for("the door", || TcpStream::connect(&self.address).ok().map(drop));
        child
    }

    /// Starts a worker with the token in a file.
    fn worker_with(&self, token: &std::path::Path) -> Child {
        Command::new(env!("CARGO_BIN_EXE_pgdyno"))
            .args(["worker", "--join", &self.address, "--token-file"])
            .arg(token)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn worker(&self) -> Child {
        self.worker_with(&self.token())
    }

    /// Runs a worker whose token has another part of this number, from 1.
    fn worker_with_other(&self, part: usize) -> Ended {
        let line = std::fs::read_to_string(self.token()).unwrap();
        let mut parts: Vec<String> = line.trim().split('.').map(str::to_owned).collect();
        let first = if parts[part].starts_with('A') { "B" } else { "A" };
        parts[part].replace_range(..1, first);
        let path = self.folder.path().join(format!("other-{part}"));
        std::fs::write(&path, parts.join(".")).unwrap();
        finish(self.worker_with(&path))
    }
}

#[test]
fn workers_that_join_offer_one_load_and_the_token_goes_with_it() {
    let (server, place) = (server_with_tables(), Place::new());
    let args = ["-c", "4", "-t", "50"];
    let coordinator = place.coordinator(&server, &place.generators(2, "60s"), &args);
    let mode = std::fs::metadata(place.token()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let workers = [place.worker(), place.worker()];
    let ended = finish(coordinator).exits(0);
    ended.prints("actually processed: 200/200").prints("pgdyno: generator ");
    ended.says("2 of 2 workers came");
    for worker in workers {
        finish(worker).exits(0);
    }
    assert!(!place.token().exists());
}

#[test]
fn nobody_gets_in_without_the_token_of_this_run() {
    let (server, place) = (server_with_tables(), Place::new());
    let args = ["-c", "2", "-t", "5"];
    let coordinator = place.coordinator(&server, &place.generators(1, "60s"), &args);

    // Plain text, as a worker that knows nothing of TLS would send it.
    let mut plain = TcpStream::connect(&place.address).unwrap();
    plain.write_all(b"\0\0\0\x2a{\"Hello\":{\"protocol\":1,\"pgdyno\":\"0.2.0\"}}").unwrap();
    let _ = plain.read_to_end(&mut Vec::new());
    // TLS without a token, and with nonsense in its place.
    assert!(Intruder::new(&place.address).says(b"").contains("no token"));
    let long = u32::MAX.to_be_bytes();
    assert!(Intruder::new(&place.address).says(&long).contains("no token"));
    let none = Intruder::new(&place.address).shows("");
    assert!(none.contains("not the one of this run"), "{none}");
    // The secret of another run.
    place.worker_with_other(2).fails(&["refuses this worker", "not the one of this run"]);
    // The certificate of another run: the worker turns away by itself.
    place.worker_with_other(1).fails(&["another certificate"]);
    // A proof that is valid elsewhere.
    let (one, mut two) = (Intruder::new(&place.address), Intruder::new(&place.address));
    let proof = one.proof(&std::fs::read_to_string(place.token()).unwrap());
    let replayed = two.shows(&proof);
    assert!(replayed.contains("not the one of this run"), "{replayed}");
    let empty = place.folder.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    finish(place.worker_with(&empty)).fails(&["no token"]);

    // After all of that the worker is let in.
    finish(place.worker()).exits(0);
    let ended = finish(coordinator).exits(0);
    ended.prints("actually processed: 10/10").says("no TLS");
    ended.says("it showed no token").says("its token is not the one");
    drop(one);
}

#[test]
fn a_valid_proof_is_worth_one_worker() {
    let (server, place) = (server_with_tables(), Place::new());
    let coordinator =
        place.coordinator(&server, &place.generators(1, "60s"), &["-c", "2", "-T", "60"]);
    let mut intruder = Intruder::new(&place.address);
    let proof = intruder.proof(&std::fs::read_to_string(place.token()).unwrap());
    // The replay of the test above fails for its connection, not for its form.
    let answer = intruder.shows(&proof);
    assert!(answer.contains("Accepted"), "{answer}");
    // That was the only one.
    finish(place.worker()).fails(&["all workers have come"]);
    drop(intruder);
    let words = ["generator intruder before the load began", "its connection closed"];
    finish(coordinator).fails(&words);
}

#[test]
fn a_load_takes_no_more_workers_and_ends_with_its_coordinator() {
    let (server, place) = (server_with_tables(), Place::new());
    let mut session = Session::new(&server.unix());
    let generators = place.generators(2, "60s");
    let mut coordinator = place.coordinator(&server, &generators, &["-c", "4", "-T", "120"]);
    let workers = [place.worker(), place.worker()];
    wait_for("four clients", || (session.count(CLIENTS) == 4).then_some(()));
    finish(place.worker()).fails(&["all workers have come"]);

    // Neither the port nor the token is shared with another coordinator.
    let second = |generators: &str| {
        let args = ["-n", "-S", "-c", "2", "-t", "1", "--generators", generators];
        ended(pgbench(&server).args(args).output().unwrap())
    };
    second(&generators).fails(&["cannot listen", &place.address, "another port"]);
    let elsewhere = Place::new();
    let token = place.token().display().to_string();
    let same_token = format!("join:1,listen={},token={token}", elsewhere.address);
    second(&same_token).fails(&["another coordinator", &token]);

    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    for worker in workers {
        finish(worker).fails(&["the coordinator ended"]);
    }
    wait_for("the connections' end", || (session.count(CLIENTS) == 0).then_some(()));

    // The token that was left behind is replaced.
    let left = std::fs::read_to_string(place.token()).unwrap();
    let args = ["-c", "2", "-t", "1"];
    let mut next = pgbench(&server);
    next.args(args).args(["-n", "-S", ANY_SKEW, "--generators", &place.generators(1, "60s")]);
    let next = next.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("a new token", || {
        let text = std::fs::read_to_string(place.token()).unwrap_or_default();
        (text.ends_with('\n') && text != left).then_some(())
    });
    wait_for("the door", || TcpStream::connect(&place.address).ok().map(drop));
    finish(place.worker()).exits(0);
    assert!(next.wait_with_output().unwrap().status.success());
}

#[test]
fn a_killed_worker_makes_the_run_invalid_and_stops_the_other() {
    let (server, place) = (server_with_tables(), Place::new());
    let mut session = Session::new(&server.unix());
    let generators = place.generators(2, "60s");
    let coordinator = place.coordinator(&server, &generators, &["-c", "4", "-T", "120"]);
    let (mut killed, other) = (place.worker(), place.worker());
    wait_for("four clients", || (session.count(CLIENTS) == 4).then_some(()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let ended =
        finish(coordinator).fails(&["generator ", "its worker ended (its connection closed)"]);
    assert!(!ended.out.contains("tps"), "{}", ended.out);
    assert!(!other.wait_with_output().unwrap().status.success());
    wait_for("the connections' end", || (session.count(CLIENTS) == 0).then_some(()));
}

#[test]
fn workers_that_do_not_come_or_do_not_stay_are_told_of() {
    let (server, place) = (server_with_tables(), Place::new());
    let args = ["-c", "4", "-t", "1"];
    let coordinator = place.coordinator(&server, &place.generators(3, "10s"), &args);
    let worker = place.worker();
    place.worker_with_other(2);
    finish(coordinator).fails(&["1 of 3 workers came within 10 s", "refused", "wait="]);
    finish(worker).fails(&["ended before the load began"]);
    assert!(!place.token().exists());

    // One that came, and left again.
    let coordinator = place.coordinator(&server, &place.generators(2, "60s"), &args);
    let mut intruder = Intruder::new(&place.address);
    let proof = intruder.proof(&std::fs::read_to_string(place.token()).unwrap());
    assert!(intruder.shows(&proof).contains("Accepted"));
    drop(intruder);
    finish(coordinator).fails(&["the worker on intruder left", "1 of 2 had come"]);
}

#[test]
fn a_signal_ends_the_wait_and_removes_the_token() {
    let (server, place) = (server_with_tables(), Place::new());
    let generators = place.generators(2, "600s");
    let coordinator = place.coordinator(&server, &generators, &["-c", "4", "-t", "1"]);
    let worker = place.worker();
    signal(coordinator.id(), "INT");
    finish(coordinator).exits(130);
    assert!(!worker.wait_with_output().unwrap().status.success());
    assert!(!place.token().exists());
}

#[test]
fn a_worker_turns_away_from_what_is_no_coordinator() {
    let place = Place::new();
    let token = place.token();
    let text = "pgdyno1.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.\
                AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    std::fs::write(&token, text).unwrap();
    finish(place.worker()).fails(&["cannot reach", &place.address]);
    let listener = TcpListener::bind(&place.address).unwrap();
    let worker = place.worker();
    let (mut socket, _) = listener.accept().unwrap();
    socket.write_all(b"220 mail.example ESMTP, at your service\r\n").unwrap();
    finish(worker).fails(&["no coordinator", "TLS"]);
    // It shows its proof to nobody before TLS says who that is.
    let mut sent = Vec::new();
    let _ = socket.read_to_end(&mut sent);
    assert!(!String::from_utf8_lossy(&sent).contains("proof"));
    let missing = place.folder.path().join("missing");
    let words = ["cannot read the token file", "missing"];
    finish(place.worker_with(&missing)).fails(&words);
}
