//! A simulated server, and the messages that it answers with.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::reactor::sim::{Peer, PeerAction};
use crate::schedule::Moment;

/// Answers a command: bytes and hang-ups, each with its delay from now.
pub(super) type Answer = Box<dyn FnMut(&str, Moment) -> Vec<(Duration, PeerAction)>>;

/// A server that knows where messages end, and answers each Query or Sync.
pub(super) struct FakeServer {
    received: Vec<u8>,
    /// The SQL of the series of messages that is under way.
    sql: String,
    asked: Arc<Mutex<Vec<String>>>,
    answer: Answer,
    pub(super) parsed: u32,
    /// Messages that precede the result of each statement of a series: ParseComplete, BindComplete.
    heads: VecDeque<Vec<u8>>,
    /// Whether the series describes its portals.
    described: bool,
    /// Whether a Parse waits for its Bind.
    parses: bool,
    /// Data of the COPY under way.
    copied: Vec<u8>,
}

impl FakeServer {
    pub(super) fn new(answer: Answer, asked: Arc<Mutex<Vec<String>>>) -> Self {
        Self {
            received: Vec::new(),
            sql: String::new(),
            asked,
            answer,
            parsed: 0,
            heads: VecDeque::new(),
            described: false,
            parses: false,
            copied: Vec::new(),
        }
    }
}

/// The acts of `answer` as a server has them for the extended protocol: columns only where they
/// were asked for, and before each result what is in `heads`.
fn extended(
    answer: Vec<(Duration, PeerAction)>,
    heads: &mut VecDeque<Vec<u8>>,
    described: bool,
) -> Vec<(Duration, PeerAction)> {
    let sent = |act: &PeerAction| match act {
        PeerAction::Send(bytes) => bytes.clone(),
        PeerAction::HangUp => Vec::new(),
    };
    let whole: Vec<u8> = answer.iter().flat_map(|(_, act)| sent(act)).collect();
    // By offset: what is left out, and what is put in.
    let mut edits: HashMap<usize, (usize, Vec<u8>)> = HashMap::new();
    let mut at = 0;
    while let Ok(Some(frame)) = pgdyno_wire::next_frame(&whole[at..]) {
        match frame.tag {
            b'T' if !described => drop(edits.insert(at, (frame.len(), Vec::new()))),
            b'C' => {
                drop(edits.insert(at + frame.len(), (0, heads.pop_front().unwrap_or_default())));
            }
            b'E' => heads.clear(),
            _ => {}
        }
        at += frame.len();
    }
    let (mut offset, mut left_out) = (0, 0);
    let edited = answer.into_iter().map(|(delay, act)| {
        let PeerAction::Send(bytes) = act else { return (delay, act) };
        let mut out = Vec::new();
        for byte in bytes {
            if let Some((length, put_in)) = edits.get(&offset) {
                left_out = *length;
                out.extend(put_in);
            }
            match left_out {
                0 => out.push(byte),
                _ => left_out -= 1,
            }
            offset += 1;
        }
        (delay, PeerAction::Send(out))
    });
    edited.collect()
}

/// The first and the last of the bigints in COPY's binary data, and how many there are; each is the
/// first column of a row.
fn ids(data: &[u8]) -> (i64, i64, usize) {
    let whole = |bytes: &[u8]| bytes.iter().fold(0_i64, |n, byte| n << 8 | i64::from(*byte));
    let mut rest = data.strip_prefix(crate::copy::HEADER).unwrap();
    let mut ids = Vec::new();
    while let [0, columns, after @ ..] = rest {
        rest = after;
        for column in 0..*columns {
            let length = usize::try_from(whole(&rest[..4])).unwrap();
            if column == 0 {
                ids.push(whole(&rest[4..4 + length]));
            }
            rest = &rest[4 + length..];
        }
    }
    assert!(rest == crate::copy::TRAILER, "{} bytes after the rows", rest.len());
    (ids.first().copied().unwrap_or(0), ids.last().copied().unwrap_or(0), ids.len())
}

pub(super) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

pub(super) fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

/// A result of one row, and what follows it.
pub(super) fn done(status: u8) -> Vec<u8> {
    let mut bytes = message(b'T', b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0");
    bytes.extend(message(b'D', b"\0\x01\0\0\0\x0242"));
    bytes.extend(message(b'C', b"SELECT 1\0"));
    bytes.extend(message(b'N', b"SNOTICE\0C00000\0Mby the way\0\0"));
    bytes.extend(ready(status));
    bytes
}

pub(super) fn error(code: &str, status: u8) -> Vec<u8> {
    let mut bytes = message(b'E', format!("SERROR\0VERROR\0C{code}\0Mno\0\0").as_bytes());
    bytes.extend(ready(status));
    bytes
}

pub(super) fn after(delay: Duration, bytes: Vec<u8>) -> Vec<(Duration, PeerAction)> {
    vec![(delay, PeerAction::Send(bytes))]
}

impl Peer for FakeServer {
    fn receive(&mut self, bytes: &[u8], now: Moment) -> Vec<(Duration, PeerAction)> {
        self.received.extend_from_slice(bytes);
        let mut acts = Vec::new();
        while let Some(frame) = pgdyno_wire::next_frame(&self.received).unwrap() {
            // ClientLogKind without the semicolon that ends each statement.
            let text = String::from_utf8_lossy(frame.body).replace(";\0", "|").replace('\0', "|");
            let length = frame.len();
            let whole = match frame.tag {
                b'Q' => {
                    self.copied.clear();
                    self.sql = text;
                    true
                }
                b'P' => {
                    self.sql = text;
                    self.parsed += 1;
                    self.heads.push_back(message(b'1', b""));
                    self.parses = true;
                    false
                }
                b'B' => {
                    self.sql.push_str(&text);
                    match self.heads.back_mut().filter(|_| std::mem::take(&mut self.parses)) {
                        Some(head) => head.extend(message(b'2', b"")),
                        None => self.heads.push_back(message(b'2', b"")),
                    }
                    false
                }
                b'D' => {
                    self.described = true;
                    false
                }
                b'E' => false,
                b'd' => {
                    self.copied.extend_from_slice(frame.body);
                    false
                }
                b'c' => {
                    self.sql = format!("rows {:?}", ids(&std::mem::take(&mut self.copied)));
                    true
                }
                b'S' => true,
                b'X' => {
                    self.asked.lock().unwrap().push("goodbye".into());
                    false
                }
                other => panic!("message {}", other.escape_ascii()),
            };
            self.received.drain(..length);
            if whole {
                let sql = std::mem::take(&mut self.sql);
                let answer = (self.answer)(sql.trim_end_matches('|'), now);
                // A Bind is acknowledged at once.
                if let Some(head) = self.heads.pop_front() {
                    acts.push((Duration::ZERO, PeerAction::Send(head)));
                    acts.extend(extended(answer, &mut self.heads, self.described));
                    self.heads.clear();
                    self.described = false;
                } else {
                    acts.extend(answer);
                }
                self.asked.lock().unwrap().push(sql.trim_end_matches('|').to_owned());
            }
        }
        acts
    }
}

/// A server that takes `delay` for everything.
pub(super) fn steady(delay: Duration) -> impl Fn(usize) -> Answer {
    move |_| Box::new(move |_, _| after(delay, done(b'I')))
}
