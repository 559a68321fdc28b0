//! Questions and answers of both sides, and this side's connection.
//!
//! `ssh` starts `pgdyno crash witness` on another host ([`launch_on`]). An [`Ask`] goes to its
//! standard input, an [`Answer`] comes from its standard output, in the same order. All clients of
//! a load share the connection, and each waits for its own answers. [`Ask::Stay`] goes there each
//! second without a question: a witness that hears nothing ends.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use pgdyno_connect::interruption;
use pgdyno_exec::process::Identity;
use pgdyno_exec::program::start_piped;
use pgdyno_generators::launch_on;
use pgdyno_generators::protocol::frame::{self, FrameError};
use pgdyno_model::ledger::{Effect, Entry, History, State, Token};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::error::PlugError;
use pgdyno_provision::BenchError;

/// How long either side waits for the other's next word.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// How long `ssh` may take to start the witness, to which it may have to copy the program first.
const LAUNCH: Duration = Duration::from_secs(5 * 60);
/// The longest time between two words to the witness.
const BEAT: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 1000 });
/// Time between checks of the stop flag.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// Time that `ssh` has to end once the connection broke, whose words say why.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The most records that a session may have: what one that is read back takes of memory is bounded
/// by it.
pub(super) const MOST_RECORDS: usize = 20_000_000;

/// The longest name of a session or a machine (bytes).
pub(super) const LONGEST_NAME: usize = 80;

/// A step of a transaction, as the client reports it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Deed {
    Issued(Effect),
    Committing,
    Acknowledged,
    Failed,
}

/// A deed in the witness's file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) token: Token,
    pub(super) deed: Deed,
    /// When the witness heard of it, since it heard of the session (milliseconds).
    pub(super) at_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ask {
    /// A session of a machine begins: its name, and the machine's.
    Begin(String, String),
    /// A client of the session that was begun did that.
    Tell(Token, Deed),
    /// The open session of that machine.
    Open(String),
    /// Whether that session is known.
    Session(String),
    /// Records of a session, from that place in its file on; 0 is the first.
    History(String, u64),
    /// A session is over; why.
    Close(String, String),
    /// Go on. It has no answer.
    Stay,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Done,
    /// The name of an open session.
    Open(Option<String>),
    /// How a session stands.
    Session(Standing),
    /// Some records, and where the next ones begin; none after the last.
    History(Vec<Record>, Option<u64>),
    Refused(String),
}

/// How a session stands with the witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Standing {
    Unknown,
    Open,
    Closed,
}

/// Builds the history of `clients` clients from `records`: each transaction in the state that its
/// last deed tells. A torn last record is one that the client never heard to be kept.
pub(super) fn history(records: &[Record], clients: u32) -> History {
    let mut history =
        History { clients: vec![Vec::new(); usize::try_from(clients).unwrap_or_default()] };
    for record in records {
        let client = usize::try_from(record.token.client).unwrap_or(usize::MAX);
        let Some(entries) = history.clients.get_mut(client) else { continue };
        let at = Duration::from_millis(record.at_ms);
        match record.deed {
            Deed::Issued(effect) => {
                let (token, state) = (record.token, State::Issued);
                entries.push(Entry { token, effect, state, begun: at, at });
            }
            Deed::Committing | Deed::Acknowledged | Deed::Failed => {
                if let Some(entry) = entries.iter_mut().rfind(|e| e.token == record.token) {
                    entry.at = at;
                    entry.state = match record.deed {
                        Deed::Acknowledged => State::Acknowledged,
                        Deed::Failed => State::Failed,
                        Deed::Committing | Deed::Issued(_) => State::Unknown,
                    };
                }
            }
        }
    }
    history
}

/// An answer, or why there is none.
type Said = Result<Answer, String>;
/// A question, and who waits for its answer.
type Request = (Ask, Sender<Said>);

/// The connection to a witness. Clones share it.
#[derive(Clone)]
pub(super) struct Connection {
    host: String,
    requests: Sender<Request>,
    program: Arc<Program>,
}

/// The `ssh` of a connection, which ends with the last of its clones.
struct Program(Option<Identity>);

impl Program {
    fn kill(&self) {
        self.0.into_iter().for_each(|program| program.signal(Signal::KILL));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Connection {
    /// Starts a witness on `host`, as `ssh` knows it.
    ///
    /// # Errors
    /// `ssh` does not reach the host, it does not run this program, or a signal came.
    pub(super) fn open(host: &str) -> Result<Self, BenchError> {
        let (requests, asked) = channel();
        let (tell, ready) = channel();
        let name = host.to_owned();
        // Not joined: a connection that hangs must not outlast a signal.
        thread::spawn(move || {
            let mut launched = match launch_on(&name, "crash witness", start_piped) {
                Ok(launched) => launched,
                Err(fault) => return drop(tell.send(Err(fault.to_string()))),
            };
            let program = i32::try_from(launched.child.id()).ok().and_then(Identity::from_pid);
            let streams = (launched.child.stdin.take(), launched.child.stdout.take());
            let (Some(to), Some(from)) = streams else { return };
            let _ = tell.send(Ok(Program(program)));
            converse(to, from, asked, || {
                let status = launched.end(Instant::now() + LAST_WORDS);
                format!("the connection to it ended ({})", launched.how(status))
            });
            launched.end(Instant::now() + LAST_WORDS);
        });
        let program = wait(&ready, LAUNCH)
            .map_err(|source| PlugError::Unreachable { host: host.to_owned(), source })?;
        Ok(Self { host: host.to_owned(), requests, program: Arc::new(program) })
    }

    /// Creates a connection to a witness that reads `to` and writes `from`.
    #[cfg(test)]
    pub(super) fn over(to: impl Write + Send + 'static, from: impl Read + Send + 'static) -> Self {
        let (requests, asked) = channel();
        thread::spawn(move || converse(to, from, asked, || "the connection to it ended".into()));
        Self { host: "test".into(), requests, program: Arc::new(Program(None)) }
    }

    pub(super) fn ask(&self, ask: Ask) -> io::Result<Answer> {
        let (tell, said) = channel();
        // Where the connection is over nobody holds `tell`, which is found at once.
        let _ = self.requests.send((ask, tell));
        let said = wait(&said, PATIENCE);
        if said.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::TimedOut) {
            // Nobody waits once more for a witness that was given up.
            self.program.kill();
        }
        match said? {
            Answer::Refused(why) => {
                Err(io::Error::other(format!("the witness refuses: {}", harmless(&why))))
            }
            answer => Ok(answer),
        }
    }

    pub(super) fn done(&self, ask: Ask) -> io::Result<()> {
        match self.ask(ask)? {
            Answer::Done => Ok(()),
            _ => Err(unexpected()),
        }
    }

    /// Returns every record of `session`.
    pub(super) fn history(&self, session: &str) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        let mut from = Some(0);
        while let Some(at) = from {
            let Answer::History(some, next) = self.ask(Ask::History(session.to_owned(), at))?
            else {
                return Err(unexpected());
            };
            if next.is_some_and(|next| next <= at) || records.len() + some.len() > MOST_RECORDS {
                return Err(io::Error::other("the witness tells of more than a session can have"));
            }
            records.extend(some);
            from = next;
        }
        Ok(records)
    }

    /// Returns the name of the open session of `machine`.
    pub(super) fn open_session(&self, machine: &str) -> Result<Option<String>, BenchError> {
        match self.ask(Ask::Open(machine.to_owned())) {
            Ok(Answer::Open(id)) => Ok(id.map(|id| harmless(&id))),
            Ok(_) => Err(self.failed("ask", &unexpected()).into()),
            Err(e) => Err(self.failed("ask", &e).into()),
        }
    }

    pub(super) fn standing(&self, session: &str) -> Result<Standing, BenchError> {
        match self.ask(Ask::Session(session.to_owned())) {
            Ok(Answer::Session(standing)) => Ok(standing),
            Ok(_) => Err(self.failed("ask", &unexpected()).into()),
            Err(e) => Err(self.failed("ask", &e).into()),
        }
    }

    pub(super) fn close(&self, session: &str, why: &str) -> Result<(), BenchError> {
        let closing = Ask::Close(session.to_owned(), why.to_owned());
        Ok(self.done(closing).map_err(|e| self.failed("tell", &e))?)
    }

    /// Returns the host, as `ssh` knows it.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Creates the error `found` of the attempt to do `what` to the witness.
    pub(super) fn failed(&self, what: &'static str, found: &dyn fmt::Display) -> PlugError {
        PlugError::Witness { what, host: self.host.clone(), found: found.to_string() }
    }
}

/// Passes requests on to a witness, and its answers to those who wait for them, until nobody holds
/// the other end of `asked`. `how` says how the connection ended.
fn converse(
    mut to: impl Write + Send + 'static,
    mut from: impl Read,
    asked: Receiver<Request>,
    mut how: impl FnMut() -> String,
) {
    let (sent, waiting) = channel();
    thread::spawn(move || {
        loop {
            let written = match asked.recv_timeout(BEAT) {
                Ok((ask, waiter)) => {
                    let _ = sent.send(waiter);
                    frame::write(&mut to, &ask)
                }
                Err(RecvTimeoutError::Timeout) => frame::write(&mut to, &Ask::Stay),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            // One that broke is heard of by whoever waits for an answer.
            let _ = written;
        }
    });
    let mut ended = None;
    for waiter in waiting {
        let said: Said = match &ended {
            Some(why) => Err(String::clone(why)),
            None => frame::read(&mut from)
                .and_then(|answer| {
                    answer.ok_or(FrameError::Io(io::ErrorKind::UnexpectedEof.into()))
                })
                .map_err(|e| match e {
                    FrameError::Io(_) => how(),
                    e => e.to_string(),
                }),
        };
        ended = ended.or_else(|| said.as_ref().err().cloned());
        let _ = Sender::send(&waiter, said);
    }
}

/// Waits for what was asked for, unless this process is told to end.
fn wait<T>(said: &Receiver<Result<T, String>>, limit: Duration) -> io::Result<T> {
    let began = Instant::now();
    loop {
        match said.recv_timeout(LOOK) {
            Ok(said) => return said.map_err(io::Error::other),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("the connection to it ended"));
            }
            Err(RecvTimeoutError::Timeout) if interruption::ends(began) => {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted by a signal"));
            }
            Err(RecvTimeoutError::Timeout) if began.elapsed() >= limit => {
                let what = format!("it said nothing for {} s", limit.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn unexpected() -> io::Error {
    io::Error::other("the witness answers something else than what was asked")
}

/// Text of the other side's, short and without control characters.
pub(super) fn harmless(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
