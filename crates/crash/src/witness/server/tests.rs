//! A witness and its other side: sessions, names, and links that break, hang or are no pgdyno's.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;

use pgdyno_model::ledger::{Effect, Token};

use super::super::connection::Connection;
use super::*;

const DEED: Deed = Deed::Issued(Effect { account: 1, teller: 1, branch: 1, delta: -5 });

/// A witness in a thread, its link to the other side, and the flag that a signal sets.
struct Running {
    folder: tempfile::TempDir,
    link: UnixStream,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), BenchError>>,
}

impl Running {
    /// A witness that goes on after so much silence.
    fn new(patience: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (link, there) = UnixStream::pair().unwrap();
        let (directory, stopping) = (folder.path().join("witness"), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let from = there.try_clone().unwrap();
            serve_for(patience, &directory, from, there, &stopping)
        });
        Self { folder, link, stop, thread }
    }

    fn connect(&self) -> Connection {
        Connection::over(self.link.try_clone().unwrap(), self.link.try_clone().unwrap())
    }

    fn file(&self, session: &str) -> PathBuf {
        self.folder.path().join(format!("witness/{session}.witness"))
    }
}

fn refused(connection: &Connection, ask: Ask) -> String {
    connection.ask(ask).unwrap_err().to_string()
}

#[test]
fn a_session_is_heard_told_again_in_pieces_and_closed() {
    let witness = Running::new(PATIENCE);
    let client = witness.connect();
    client.done(Ask::Begin("plug-1".into(), "machine".into())).unwrap();
    // More than one answer takes.
    let count = u64::try_from(RECORDS_AT_ONCE).unwrap() + 20;
    for sequence in 1..=count {
        client.done(Ask::Tell(Token { client: 3, sequence }, DEED)).unwrap();
    }
    // A line cut short by a power loss of the witness's own.
    let file = witness.file("plug-1");
    File::options().append(true).open(&file).unwrap().write_all(b"{\"token\"").unwrap();
    let heard = client.history("plug-1").unwrap();
    assert_eq!(heard.len(), usize::try_from(count).unwrap());
    assert_eq!(heard.last().unwrap().token, Token { client: 3, sequence: count });
    assert_eq!(client.open_session("machine").unwrap().as_deref(), Some("plug-1"));
    client.close("plug-1", "why\nclosed: \u{1b}[2J").unwrap();
    assert_eq!(client.open_session("machine").unwrap(), None);
    assert_eq!(client.standing("plug-1").unwrap(), Standing::Closed);
    assert_eq!(client.standing("plug-2").unwrap(), Standing::Unknown);
    assert!(!fs::read_to_string(&file).unwrap().contains('\u{1b}'));
    let late = refused(&client, Ask::Tell(Token { client: 3, sequence: 1 }, DEED));
    assert!(late.contains("no session is open"), "{late}");
    // The end of its input is its own.
    drop(client);
    witness.link.shutdown(Shutdown::Write).unwrap();
    assert!(witness.thread.join().unwrap().is_ok());
}

#[test]
fn names_with_parts_of_paths_lead_nowhere() {
    let witness = Running::new(PATIENCE);
    let client = witness.connect();
    let outside = witness.folder.path().join("outside.witness");
    fs::write(&outside, "{\"id\":\"outside\",\"machine\":\"machine\"}\n").unwrap();
    for name in ["../outside", "/etc/passwd", "", "a/b", "a.b", &"x".repeat(81), "a\0b"] {
        let asks = [
            Ask::Begin(name.into(), "machine".into()),
            Ask::Session(name.into()),
            Ask::History(name.into(), 0),
            Ask::Close(name.into(), "x".into()),
        ];
        for ask in asks {
            let why = refused(&client, ask);
            assert!(why.contains("that is no session's name"), "{name}: {why}");
        }
    }
    let long = refused(&client, Ask::Begin("plug-1".into(), "m".repeat(81)));
    assert!(long.contains("machine's name"), "{long}");
    assert_eq!(fs::read_dir(witness.folder.path().join("witness")).unwrap().count(), 0);
    assert!(!fs::read_to_string(outside).unwrap().contains(CLOSED));
}

#[test]
fn what_was_answered_before_the_link_broke_is_kept_and_nothing_else() {
    let witness = Running::new(PATIENCE);
    let client = witness.connect();
    client.done(Ask::Begin("plug-1".into(), "machine".into())).unwrap();
    let telling: Vec<_> = (0..4)
        .map(|number| {
            let client = client.clone();
            thread::spawn(move || {
                let tell =
                    |sequence| client.done(Ask::Tell(Token { client: number, sequence }, DEED));
                (1..).take_while(|sequence| tell(*sequence).is_ok()).count()
            })
        })
        .collect();
    let enough = || fs::metadata(witness.file("plug-1")).unwrap().len() > 20_000;
    while !enough() {
        thread::sleep(Duration::from_millis(1));
    }
    let file = witness.file("plug-1");
    witness.link.shutdown(Shutdown::Both).unwrap();
    let answered: Vec<_> = telling.into_iter().map(|client| client.join().unwrap()).collect();
    witness.thread.join().unwrap().unwrap();
    let records = records_of(&file);
    for (number, answered) in (0_u32..).zip(answered) {
        let of_client = records.iter().filter(|record| record.token.client == number);
        let sequences: Vec<_> = of_client.map(|record| record.token.sequence).collect();
        // The one that was on its way may have come.
        assert!([answered, answered + 1].contains(&sequences.len()), "{answered} {sequences:?}");
        assert!(sequences.iter().copied().eq((1..).take(sequences.len())), "{sequences:?}");
    }
    // Whoever comes afterwards is told of the break at once.
    assert!(client.ask(Ask::Session("plug-1".into())).is_err());
}

/// All records of a file.
fn records_of(path: &Path) -> Vec<Record> {
    let (mut all, mut at) = (Vec::new(), Some(0));
    while let Some(from) = at {
        let (some, next) = records(path, from).unwrap();
        all.extend(some);
        at = next;
    }
    all
}

#[test]
fn deeds_that_the_disk_did_not_take_are_refused_and_nothing_stands_behind_them() {
    let full = File::options().append(true).open("/dev/full").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (id, opened, lines) = ("plug-1".to_owned(), Instant::now(), Vec::new());
    let open = Open { id, file: full, opened, records: 0, lines, told: 0 };
    let mut book = Book { directory: folder.path().to_owned(), open: Some(open) };
    let (mut asks, mut answers) = (Vec::new(), Vec::new());
    for sequence in 1..=3 {
        frame::write(&mut asks, &Ask::Tell(Token { client: 0, sequence }, DEED)).unwrap();
    }
    // In two parts, so that the last comes after the failure.
    let from = (&asks[..]).take(2 * asks.len() as u64 / 3).chain(&asks[2 * asks.len() / 3..]);
    book.converse(from, &mut answers, &|| {}).unwrap();
    let mut answers = &answers[..];
    for _ in 0..3 {
        assert!(matches!(frame::read(&mut answers).unwrap(), Some(Answer::Refused(_))));
    }
    assert!(frame::read::<Answer>(&mut answers).unwrap().is_none());
}

#[test]
fn a_witness_ends_when_the_other_side_is_silent_and_stays_while_that_idles() {
    let patience = Duration::from_millis(500);
    let witness = Running::new(patience);
    let client = witness.connect();
    client.done(Ask::Begin("plug-1".into(), "machine".into())).unwrap();
    thread::sleep(2 * patience);
    assert_eq!(client.standing("plug-1").unwrap(), Standing::Open);
    // Half open: the link stays, and nobody speaks.
    let silent = Running::new(patience);
    let error = silent.thread.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("said nothing"), "{error}");
}

#[test]
fn a_signal_ends_a_witness_whose_link_hangs_or_is_never_silent() {
    for ask in [Ask::Open("machine".into()), Ask::Stay] {
        let witness = Running::new(PATIENCE);
        let (mut link, stop) = (witness.link, Arc::clone(&witness.stop));
        // In time there are more answers than the link takes, and nobody reads them.
        link.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let speaking = thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) && frame::write(&mut link, &ask).is_ok() {}
            link
        });
        thread::sleep(Duration::from_millis(200));
        witness.stop.store(true, Ordering::Relaxed);
        let began = Instant::now();
        assert!(witness.thread.join().unwrap().is_ok());
        assert!(began.elapsed() < Duration::from_secs(2));
        drop(speaking.join().unwrap());
    }
}

#[test]
fn who_is_no_pgdyno_is_heard_by_neither_side() {
    let mut witness = Running::new(PATIENCE);
    witness.link.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let error = witness.thread.join().unwrap().unwrap_err().message();
    assert!(error.contains("no pgdyno"), "{error}");
    let answers: [&[u8]; 3] = [b"Welcome to this host!\n", b"\0\0\0\x04none", b"\0\0\0\x09\"done"];
    for answer in answers {
        let client = Connection::over(io::sink(), answer);
        for _ in 0..2 {
            assert!(client.standing("plug-1").is_err(), "{answer:?}");
        }
    }
}
