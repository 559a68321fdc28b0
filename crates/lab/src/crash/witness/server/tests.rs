//! A witness among clients that know the secret, and many that do not.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use pgdyno_model::ledger::{Effect, Token};

use super::super::connection::{Connection, Deed};
use super::*;

/// A witness in a thread, and what it tells. Ended when dropped.
struct Running {
    directory: tempfile::TempDir,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
    address: String,
    secret: Secret,
    _told: Receiver<String>,
}

impl Running {
    /// With the secret that it makes itself, as it prints it.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (telling, told) = channel();
        let (there, stopping) = (directory.path().join("witness"), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let tell = |text: &str| drop(telling.send(text.to_owned()));
            serve("127.0.0.1:0".parse().unwrap(), &there, None, &stopping, &tell).unwrap();
        });
        let address = told
            .recv()
            .unwrap()
            .split([' ', ','])
            .find(|w| w.starts_with("127."))
            .unwrap()
            .to_owned();
        let hint = told.recv().unwrap();
        let secret =
            hint.split(' ').find_map(|word| word.strip_prefix("PGDYNO_WITNESS_SECRET=")).unwrap();
        assert!(secret.len() == 64 && hint.contains(&format!("--witness {address}")), "{hint}");
        Self {
            secret: Secret::new(secret.into()),
            directory,
            stop,
            thread: Some(thread),
            address,
            _told: told,
        }
    }

    fn connect(&self) -> Connection {
        Connection::to(&self.address, &self.secret).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

fn refused(connection: &mut Connection, ask: &Ask) -> String {
    connection.ask(ask).unwrap_err().to_string()
}

#[test]
fn a_session_is_heard_told_again_in_pieces_and_closed() {
    let witness = Running::new();
    let mut client = witness.connect();
    client.done(&Ask::Begin("plug-1".into(), "machine".into())).unwrap();
    let deed = Deed::Issued(Effect { account: 1, teller: 1, branch: 1, delta: -5 });
    // More than one answer takes.
    let count = u64::try_from(RECORDS_AT_ONCE).unwrap() + 20;
    for sequence in 1..=count {
        client.done(&Ask::Tell("plug-1".into(), Token { client: 3, sequence }, deed)).unwrap();
    }
    // A line cut short by a power loss of the witness's own.
    let file = witness.directory.path().join("witness/plug-1.witness");
    File::options().append(true).open(&file).unwrap().write_all(b"{\"token\"").unwrap();
    let heard = client.history("plug-1").unwrap();
    assert_eq!(heard.len(), usize::try_from(count).unwrap());
    assert_eq!(heard.last().unwrap().token, Token { client: 3, sequence: count });
    let open = |client: &mut Connection| client.ask(&Ask::Open("machine".into())).unwrap();
    assert!(matches!(open(&mut client), Answer::Open(Some(id)) if id == "plug-1"));
    client.done(&Ask::Close("plug-1".into(), "why\nclosed: \u{1b}[2J".into())).unwrap();
    assert!(matches!(open(&mut client), Answer::Open(None)));
    assert!(matches!(
        client.ask(&Ask::Session("plug-1".into())).unwrap(),
        Answer::Session(Standing::Closed)
    ));
    assert!(!fs::read_to_string(&file).unwrap().contains('\u{1b}'));
    let late =
        refused(&mut client, &Ask::Tell("plug-1".into(), Token { client: 3, sequence: 1 }, deed));
    assert!(late.contains("not the one that began last"), "{late}");
}

#[test]
fn names_with_parts_of_paths_lead_nowhere() {
    let witness = Running::new();
    let mut client = witness.connect();
    let outside = witness.directory.path().join("outside.witness");
    fs::write(&outside, "{\"id\":\"outside\",\"machine\":\"machine\"}\n").unwrap();
    for name in ["../outside", "/etc/passwd", "", "a/b", "a.b", &"x".repeat(81), "a\0b"] {
        let asks = [
            Ask::Begin(name.into(), "machine".into()),
            Ask::Session(name.into()),
            Ask::History(name.into(), 0),
            Ask::Close(name.into(), "x".into()),
        ];
        for ask in asks {
            let why = refused(&mut client, &ask);
            assert!(why.contains("that is no session's name"), "{ask:?}: {why}");
        }
    }
    assert!(
        refused(&mut client, &Ask::Begin("plug-1".into(), "m".repeat(81)))
            .contains("machine's name")
    );
    assert_eq!(fs::read_dir(witness.directory.path().join("witness")).unwrap().count(), 0);
    assert!(!fs::read_to_string(outside).unwrap().contains(CLOSED));
}

#[test]
fn more_connections_than_are_kept_that_prove_nothing_keep_nobody_out() {
    let witness = Running::new();
    let silent: Vec<TcpStream> =
        (0..2 * MOST_UNPROVED).map(|_| TcpStream::connect(&witness.address).unwrap()).collect();
    let mut client = witness.connect();
    client.done(&Ask::Begin("plug-1".into(), "machine".into())).unwrap();
    // The old ones were hung up on: what is kept for those that prove nothing is bounded.
    let mut heard = Vec::new();
    (&silent[0]).read_to_end(&mut heard).unwrap();
    assert!(heard.len() <= 48, "{heard:?}");
    drop(silent);
}

#[test]
fn who_does_not_prove_to_know_the_secret_changes_nothing() {
    let witness = Running::new();
    // As a client of the version before spoke.
    let mut old = TcpStream::connect(&witness.address).unwrap();
    old.write_all(b"{\"close\":[\"plug-1\",\"by me\"]}\n").unwrap();
    old.write_all(&[b'x'; 200]).unwrap();
    let mut heard = Vec::new();
    // Answered or reset, and then hung up on.
    let _ = old.read_to_end(&mut heard);
    assert!(!String::from_utf8_lossy(&heard).contains("done"));
    let error =
        Connection::to(&witness.address, &Secret::new("another secret of somebody's".into())).err();
    assert!(error.unwrap().to_string().contains("the secret is not the one of the other side"));
    assert_eq!(fs::read_dir(witness.directory.path().join("witness")).unwrap().count(), 0);
    // It goes on serving.
    witness.connect().done(&Ask::Begin("plug-1".into(), "machine".into())).unwrap();
}
