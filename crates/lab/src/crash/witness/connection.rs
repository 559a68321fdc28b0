//! What both sides say to each other, and this side's connection.

use std::io;
use std::time::Duration;

use pgdyno_model::ledger::{Effect, Entry, History, State, Token};
use pgdyno_model::target::Secret;
use serde::{Deserialize, Serialize};

use super::channel::{self, Channel};
use crate::LabError;

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
    /// A client of session `0` did that.
    Tell(String, Token, Deed),
    /// The open session of that machine.
    Open(String),
    /// Whether that session is known.
    Session(String),
    /// Records of a session, from that place in its file on; 0 is the first.
    History(String, u64),
    /// A session is over; why.
    Close(String, String),
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

/// What clients' deeds come to. A torn last record is one that the client never heard to be kept.
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

/// The witness of a session: where it listens, and what it shares with this machine.
#[derive(Clone, Debug)]
pub struct Witness {
    /// `HOST:PORT`.
    pub address: String,
    /// See [`super::shared_secret`].
    pub secret: Secret,
}

impl Witness {
    pub(super) fn connect(&self) -> Result<Connection, LabError> {
        Connection::to(&self.address, &self.secret).map_err(|e| self.failed("reach", &e))
    }

    pub(super) fn failed(&self, what: &str, e: &io::Error) -> LabError {
        LabError::witness(&format!("{what} the witness at {}", self.address), e)
    }

    pub(super) fn standing(
        &self,
        connection: &mut Connection,
        session: &str,
    ) -> Result<Standing, LabError> {
        match connection
            .ask(&Ask::Session(session.to_owned()))
            .map_err(|e| self.failed("ask", &e))?
        {
            Answer::Session(standing) => Ok(standing),
            _ => Err(self.failed("ask", &unexpected())),
        }
    }

    /// On a connection of its own: the one before may have been idle for as long as the load took.
    pub(super) fn close(&self, session: &str, why: &str) -> Result<(), LabError> {
        let closing = Ask::Close(session.to_owned(), why.to_owned());
        self.connect()?.done(&closing).map_err(|e| self.failed("tell", &e))
    }
}

/// A connection to a witness that has proved to know the secret.
pub(super) struct Connection {
    channel: Channel,
}

impl Connection {
    pub(super) fn to(address: &str, secret: &Secret) -> io::Result<Self> {
        Ok(Self { channel: Channel::connect(address, secret)? })
    }

    pub(super) fn ask(&mut self, ask: &Ask) -> io::Result<Answer> {
        self.channel.send(&serde_json::to_vec(ask)?)?;
        let message = self.channel.receive(channel::PATIENCE)?;
        let message = message
            .ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "the witness hung up"))?;
        match serde_json::from_slice(&message)? {
            Answer::Refused(why) => {
                Err(io::Error::other(format!("the witness refuses: {}", harmless(&why))))
            }
            answer => Ok(answer),
        }
    }

    pub(super) fn done(&mut self, ask: &Ask) -> io::Result<()> {
        match self.ask(ask)? {
            Answer::Done => Ok(()),
            _ => Err(unexpected()),
        }
    }

    /// Every record of `session`.
    pub(super) fn history(&mut self, session: &str) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        let mut from = Some(0);
        while let Some(at) = from {
            let Answer::History(some, next) = self.ask(&Ask::History(session.to_owned(), at))?
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
}

pub(super) fn unexpected() -> io::Error {
    io::Error::other("the witness answers something else than what was asked")
}

/// Text of the other side's, short and without control characters.
pub(super) fn harmless(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
