//! Calls that a client makes of its ledger, and their order.

use std::io;

use pgdyno_model::experiment::OnError;
use pgdyno_model::ledger::Effect;

use super::*;
use crate::ledger::{ClientLedger, Ledger};

/// Calls of the ledger, in order: `1 issued`, `1 committing`, ….
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Held by the test that reads [`TOLD`].
static LISTENING: Mutex<()> = Mutex::new(());

/// Ledger with room for this many transactions of each client (count).
struct Listening(u64);

struct ListeningClient {
    used: u64,
    room: u64,
}

fn tell(what: String) {
    TOLD.lock().unwrap().push(what);
}

impl Ledger for Listening {
    fn open(&self, _: u32, _: &Clock) -> io::Result<Box<dyn ClientLedger>> {
        Ok(Box::new(ListeningClient { used: 0, room: self.0 }))
    }
}

impl ClientLedger for ListeningClient {
    fn next(&self) -> u64 {
        self.used + 1
    }

    fn issued(&mut self, effect: &Effect, _: Moment) -> io::Result<()> {
        if self.used == self.room {
            return Err(io::Error::other("it is full"));
        }
        self.used += 1;
        assert_eq!((effect.account, effect.delta), (7, -5));
        tell(format!("{} issued", self.used));
        Ok(())
    }

    fn committing(&mut self) -> io::Result<()> {
        tell(format!("{} committing", self.used));
        Ok(())
    }

    fn acknowledged(&mut self, _: Moment) -> io::Result<()> {
        tell(format!("{} acknowledged", self.used));
        Ok(())
    }

    fn failed(&mut self, _: Moment) -> io::Result<()> {
        tell(format!("{} failed", self.used));
        Ok(())
    }
}

const SCRIPT: &str = "\\set aid 7\n\\set tid 1\n\\set bid 1\n\\set delta -5\nBEGIN;\n\
    INSERT :sequence;\n\
    END :sequence;";

#[test]
fn a_ledger_knows_of_each_transaction_before_the_server_does_and_what_became_of_it() {
    let _alone = LISTENING.lock().unwrap();
    let answers = |_| -> Answer {
        Box::new(|sql, _| match sql {
            "BEGIN" => after(MS, done(b'T')),
            // The second is refused once; the fourth's connection breaks before its COMMIT, the
            // fifth's in it.
            "INSERT 2" => after(MS, error("40001", b'E')),
            "INSERT 4" | "END 5" => vec![(MS, PeerAction::HangUp)],
            "ROLLBACK" => after(MS, done(b'I')),
            sql if sql.starts_with("INSERT") => after(MS, done(b'T')),
            sql if sql.starts_with("END") => after(MS, done(b'I')),
            other => panic!("{other}"),
        })
    };
    let load = Load {
        length: Length::Duration(Span(SECOND)),
        change: |spec| {
            spec.ledger = Some(Arc::new(Listening(6)));
            spec.options.reconnect_lost = ReconnectLost::Always;
            spec.options.on_error = OnError::Continue;
        },
        ..Load::new(SCRIPT)
    };
    let seen = load.run(answers);
    let told = std::mem::take(&mut *TOLD.lock().unwrap());
    let expected = [
        "1 issued",
        "1 committing",
        "1 acknowledged",
        "2 issued",
        "2 failed",
        "3 issued",
        "3 committing",
        "3 acknowledged",
        "4 issued",
        "5 issued",
        "5 committing",
        "6 issued",
        "6 committing",
        "6 acknowledged",
    ];
    assert_eq!(told, expected);
    // What it has no room for is not sent.
    let asked = &seen.asked[0];
    assert!(asked.iter().any(|sql| sql.contains("INSERT 6")), "{asked:?}");
    assert_eq!(asked.iter().filter(|sql| *sql == "BEGIN").count(), 6, "{asked:?}");
    assert_eq!(seen.measurement.counters.aborted_clients, 1);
    let reason = &seen.measurement.counters.abort_reasons[0];
    assert!(reason.contains("the ledger cannot be kept: it is full"), "{reason}");
}

#[test]
fn a_ledger_believes_no_reply_that_nobody_asked_for() {
    let _alone = LISTENING.lock().unwrap();
    for lie in [ready(b'I').repeat(4), done(b'I').repeat(4)] {
        let answers = |_| -> Answer {
            let lie = lie.clone();
            Box::new(move |_, _| after(MS, [done(b'T'), lie.clone()].concat()))
        };
        let load = Load {
            length: Length::Duration(Span(SECOND)),
            change: |spec| spec.ledger = Some(Arc::new(Listening(6))),
            ..Load::new(SCRIPT)
        };
        let seen = load.run(answers);
        let told = std::mem::take(&mut *TOLD.lock().unwrap());
        assert_eq!(told, ["1 issued"], "nothing is known of what it sent");
        assert_eq!(seen.measurement.counters.aborted_clients, 1);
    }
}
