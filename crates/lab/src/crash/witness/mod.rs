//! A witness: a process, on another machine where a plug is to be pulled, that keeps the ledger durably while load runs here.
//!
//! One line of JSON each way over TCP, without encryption or passwords: for a private network. What a client does is on the
//! witness's disk before the client goes on.

mod plug;
mod server;

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use pgdyno_engine::ledger::{ClientLedger, Ledger};
use pgdyno_engine::schedule::{Clock, Moment};
use pgdyno_model::crash::CrashOptions;
use pgdyno_model::ledger::{Effect, Entry, History, State, Token};
use serde::{Deserialize, Serialize};

pub use plug::{Plugged, plug};
pub use server::serve;

/// How long a witness may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is needed to judge a machine that comes back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    /// The session's name.
    id: String,
    /// Which machine, and which of its boots.
    machine: String,
    boot_id: String,
    /// The process that offers the load.
    pid: i32,
    name: String,
    storage: String,
    /// The cluster.
    directory: PathBuf,
    bindir: PathBuf,
    settings: BTreeMap<String, String>,
    options: CrashOptions,
    checksums: bool,
    system_identifier: u64,
    /// What asynchronous commit may lose at most (milliseconds); none where commits are synchronous.
    loses_at_most_ms: Option<u64>,
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Deed {
    Issued(Effect),
    Committing,
    Acknowledged,
    Failed,
}

/// A deed in the witness's file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    token: Token,
    deed: Deed,
    /// When the witness heard of it, since it heard of the session (milliseconds).
    at_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Ask {
    /// A session begins.
    Begin(Box<Header>),
    /// A client of session `0` did that.
    Tell(String, Token, Deed),
    /// The open session of that machine.
    Open(String),
    /// All that is known of a session.
    History(String),
    /// A session is over; why.
    Close(String, String),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Done,
    Session(Option<Box<Header>>),
    History(Vec<Record>),
    Refused(String),
}

/// What clients' deeds come to. A torn last record is one that the client never heard to be kept.
fn history(records: &[Record], clients: u32) -> History {
    let mut history = History { clients: vec![Vec::new(); usize::try_from(clients).unwrap_or_default()] };
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

/// A connection to a witness.
struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    fn to(address: &str) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in address.to_socket_addrs()? {
            match Self::to_address(&address) {
                Ok(connection) => return Ok(connection),
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    fn to_address(address: &SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    fn ask(&mut self, ask: &Ask) -> io::Result<Answer> {
        send(self.stream.get_mut(), ask)?;
        match receive(&mut self.stream)? {
            Some(Answer::Refused(why)) => Err(io::Error::other(format!("the witness refuses: {why}"))),
            Some(answer) => Ok(answer),
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the witness hung up")),
        }
    }

    fn done(&mut self, ask: &Ask) -> io::Result<()> {
        match self.ask(ask)? {
            Answer::Done => Ok(()),
            other => Err(io::Error::other(format!("the witness answers something else: {other:?}"))),
        }
    }
}

fn send<T: Serialize>(stream: &mut TcpStream, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn receive<T: for<'a> Deserialize<'a>>(stream: &mut BufReader<TcpStream>) -> io::Result<Option<T>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}

/// The ledger of a load at a witness. Its calls wait for the witness's disk: each client needs a thread of its own.
struct WitnessLedger {
    address: String,
    session: String,
}

impl Ledger for WitnessLedger {
    fn open(&self, client: u32, _: &Clock) -> io::Result<Box<dyn ClientLedger>> {
        let connection = Connection::to(&self.address)?;
        let token = Token { client, sequence: 0 };
        Ok(Box::new(WitnessClient { connection, session: self.session.clone(), token }))
    }
}

struct WitnessClient {
    connection: Connection,
    session: String,
    /// The present transaction's.
    token: Token,
}

impl WitnessClient {
    fn tell(&mut self, deed: Deed) -> io::Result<()> {
        self.connection
            .done(&Ask::Tell(self.session.clone(), self.token, deed))
            .map_err(|e| io::Error::new(e.kind(), format!("the witness did not take it: {e}")))
    }
}

impl ClientLedger for WitnessClient {
    fn next(&self) -> u64 {
        self.token.sequence + 1
    }

    fn issued(&mut self, effect: &Effect, _: Moment) -> io::Result<()> {
        self.token.sequence += 1;
        self.tell(Deed::Issued(*effect))
    }

    fn committing(&mut self) -> io::Result<()> {
        self.tell(Deed::Committing)
    }

    fn acknowledged(&mut self, _: Moment) -> io::Result<()> {
        self.tell(Deed::Acknowledged)
    }

    fn failed(&mut self, _: Moment) -> io::Result<()> {
        self.tell(Deed::Failed)
    }
}
