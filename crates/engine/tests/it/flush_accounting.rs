//! Commits are judged by the flushes that a disk publishes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use pgdyno_engine::client::{Client, ClientContext};
use pgdyno_engine::pace::Pacer;
use pgdyno_engine::program::Program;
use pgdyno_engine::random::Random;
use pgdyno_engine::recorder::{Recorder, RecorderOptions};
use pgdyno_engine::schedule::{Moment, Schedule};
use pgdyno_engine::script::Script;
use pgdyno_engine::{DiskFlushes, WeightedScript};
use pgdyno_model::FlushAccounting;
use pgdyno_model::experiment::Protocol;

/// A disk that publishes its flushes.
struct Disk {
    folder: tempfile::TempDir,
    file: File,
}

impl Disk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("flushes")).unwrap();
        file.set_len(4096).unwrap();
        Self { folder, file }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("flushes")
    }

    fn store(&self, place: u64, number: u64) {
        let words = [number.to_le_bytes(), number.to_le_bytes()].concat();
        self.file.write_all_at(&words, place * 16).unwrap();
    }

    fn begin(&self, number: u64) {
        self.store(0, number);
    }

    fn complete(&self, number: u64) {
        self.store(1, number);
    }
}

/// A client that executes a script, and what is counted of it.
struct Load {
    client: Client,
    recorder: Recorder,
    pacer: Pacer,
    out: Vec<u8>,
    now: u64,
}

impl Load {
    fn new(text: &str, protocol: Protocol, disk: &Disk) -> Self {
        let script = Arc::new(Script::parse("test", text).unwrap());
        let scripts = [WeightedScript::new(script, 1)];
        let program = Rc::new(Program::link(&scripts, protocol, 1, &[], &[]).unwrap());
        let schedule = Schedule { opening: Moment(5_000), ..Schedule::default() };
        let options = RecorderOptions { accounts_flushes: true, ..RecorderOptions::default() };
        let recorder = Recorder::with_options(&program, schedule, Box::new(|_| {}), options);
        let client = Client::new(0, program, Random::new(1), Random::new(2), None);
        let client = client.with_flushes(DiskFlushes::open(&disk.path()).unwrap());
        let out = Vec::with_capacity(4096);
        let mut load = Self { client, recorder, pacer: Pacer::default(), out, now: 0 };
        load.turn(b"");
        load
    }

    /// Hands the client what the server sent, or begins.
    fn turn(&mut self, bytes: &[u8]) {
        self.now += 1_000;
        self.out.clear();
        let mut context = ClientContext {
            now: Moment(self.now),
            out: &mut self.out,
            recorder: &mut self.recorder,
            pacer: &mut self.pacer,
        };
        match bytes {
            [] => self.client.wake(&mut context),
            bytes => self.client.receive(bytes, &mut context),
        };
    }

    /// Answers a simple query with the tags of its commands and the session's status.
    fn answer(&mut self, tags: &[&str], status: u8) {
        let mut bytes = Vec::new();
        for tag in tags {
            bytes.push(b'C');
            bytes.extend(u32::try_from(tag.len() + 5).unwrap().to_be_bytes());
            bytes.extend(tag.as_bytes());
            bytes.push(0);
        }
        bytes.extend([b'Z', 0, 0, 0, 5, status]);
        self.turn(&bytes);
    }

    fn account(self) -> FlushAccounting {
        self.recorder.finish(Moment(self.now)).counters.flush_accounting.unwrap()
    }
}

#[test]
fn a_commit_needs_a_flush_that_began_after_it_was_sent_and_was_done_before_its_answer() {
    let disk = Disk::new();
    disk.begin(7);
    let mut load = Load::new("BEGIN;\nUPDATE t SET a = 1;\nEND;", Protocol::Simple, &disk);
    let until_commit = |load: &mut Load| {
        load.answer(&["BEGIN"], b'T');
        load.answer(&["UPDATE 1"], b'T');
    };
    until_commit(&mut load);
    disk.complete(7);
    load.answer(&["COMMIT"], b'I');
    // The flush that began while COMMIT was under way is not done.
    until_commit(&mut load);
    disk.begin(8);
    load.answer(&["COMMIT"], b'I');
    // Another backend's flush, begun and done, covers this one too.
    until_commit(&mut load);
    disk.begin(9);
    disk.complete(9);
    load.answer(&["COMMIT"], b'I');
    // One that was done before COMMIT was sent does not.
    load.answer(&["BEGIN"], b'T');
    disk.begin(10);
    disk.complete(10);
    load.answer(&["UPDATE 1"], b'T');
    load.answer(&["COMMIT"], b'I');
    let account = load.account();
    assert_eq!((account.judged, account.early, account.unjudged), (4, 3, 0));
    // The window opens at 5 µs; the answers came at 4, 7 and 13 µs.
    let micros: Vec<String> =
        account.first_early_s.iter().map(|at| format!("{:.0}", at * 1e6)).collect();
    assert_eq!(micros, ["-1", "2", "8"]);
}

#[test]
fn transactions_that_changed_no_row_or_were_taken_back_are_not_judged() {
    let disk = Disk::new();
    let mut load = Load::new("BEGIN;\nUPDATE t SET a = 1;\nEND;", Protocol::Simple, &disk);
    for (update, end) in [("UPDATE 0", "COMMIT"), ("SELECT 1", "COMMIT"), ("UPDATE 1", "ROLLBACK")]
    {
        load.answer(&["BEGIN"], b'T');
        load.answer(&[update], b'T');
        load.answer(&[end], b'I');
    }
    let account = load.account();
    assert_eq!((account.judged, account.early, account.unjudged), (0, 0, 0));
}

#[test]
fn a_statement_outside_a_block_is_a_commit_and_several_in_one_message_are_too() {
    let disk = Disk::new();
    let mut load = Load::new(
        "INSERT INTO t VALUES (1);\nBEGIN\\; UPDATE t SET a = 1\\; END;",
        Protocol::Simple,
        &disk,
    );
    load.answer(&["INSERT 0 1"], b'I');
    disk.begin(1);
    disk.complete(1);
    load.answer(&["BEGIN", "UPDATE 3", "COMMIT"], b'I');
    let account = load.account();
    assert_eq!((account.judged, account.early), (2, 1));
}

#[test]
fn what_a_pipeline_commits_is_counted_and_not_judged() {
    let disk = Disk::new();
    let text = "\\startpipeline\nINSERT INTO t VALUES (1);\n\\endpipeline";
    let mut load = Load::new(text, Protocol::Extended, &disk);
    load.turn(b"1\0\0\0\x042\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0Z\0\0\0\x05I");
    let account = load.account();
    assert_eq!((account.judged, account.unjudged), (0, 1));
}

#[test]
fn judging_commits_allocates_nothing() {
    let disk = Disk::new();
    let mut load = Load::new("BEGIN;\nUPDATE t SET a = 1;\nEND;", Protocol::Simple, &disk);
    let mut transactions = |count: u32| {
        for _ in 0..count {
            // The answers are made before, not here.
            load.turn(b"C\0\0\0\x0aBEGIN\0Z\0\0\0\x05T");
            load.turn(b"C\0\0\0\x0dUPDATE 1\0Z\0\0\0\x05T");
            load.turn(b"C\0\0\0\x0bCOMMIT\0Z\0\0\0\x05I");
        }
    };
    transactions(100);
    let counted = allocation_counter::measure(|| transactions(5_000));
    assert_eq!(counted.count_total, 0);
    let account = load.account();
    assert_eq!((account.judged, account.early), (5_100, 5_100));
    assert_eq!(account.first_early_s.len(), FlushAccounting::MAX_INSTANTS);
}
