//! The least that any client can cost: fixed messages on every connection, the next sent as soon as
//! the answer to the last is there, on the engine's reactors. It draws nothing, keeps no time,
//! reads nothing but the end of an answer and counts nothing but transactions, so that what it
//! costs is the kernel's part and the reactor's.

use std::io::Write as _;
use std::time::{Duration, Instant};

use pgdyno_connect::{CONNECT_TIMEOUT, connect};
use pgdyno_engine::ReactorChoice;
use pgdyno_engine::reactor::epoll::Epoll;
use pgdyno_engine::reactor::uring::Uring;
use pgdyno_engine::reactor::{AfterSend, Reactor, ReactorHandler};
use pgdyno_engine::schedule::{Clock, Moment};
use pgdyno_model::target::{Address, Secret, Target};

use super::Anything;
use super::null_server::message;

/// A `ReadyForQuery` up to its status: every answer ends with one.
const READY: &[u8] = b"Z\0\0\0\x05";

const SELECT: &[&str] = &["SELECT abalance FROM pgbench_accounts WHERE aid = $1"];
const TPCB: &[&str] = &[
    "BEGIN",
    "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = $1",
    "SELECT abalance FROM pgbench_accounts WHERE aid = $1",
    "UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = $1",
    "UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = $1",
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, 1, 1, 1, \
     CURRENT_TIMESTAMP)",
    "END",
];

/// Runs as pgbench would with the same options, of which only those are looked at that matter here.
pub(crate) fn main(arguments: &[String]) -> Result<(), Anything> {
    let after = |flag: &str| {
        let at = arguments.iter().position(|a| a == flag).ok_or_else(|| format!("no {flag}"))?;
        arguments.get(at + 1).ok_or_else(|| format!("nothing after {flag}"))
    };
    let (host, port) = (after("-h")?, after("-p")?.parse()?);
    let address = if host.starts_with('/') {
        Address::Unix { directory: host.into(), port }
    } else {
        Address::Tcp { host: host.clone(), port }
    };
    let mut target = Target::new(address, after("-U")?, "postgres");
    target.password = std::env::var("PGPASSWORD").ok().map(Secret::new);
    let clients: usize = after("-c")?.parse()?;
    let span = Duration::from_secs(after("-T")?.parse()?);
    let script = std::fs::read_to_string(after("-f")?)?;
    let statements = match () {
        () if script.contains("INSERT") => TPCB,
        () if script.contains("pgbench_accounts") => SELECT,
        () => &["SELECT $1"],
    };
    let piped = script.contains("pipeline");
    let streams = (0..clients)
        .map(|_| connect(&target, CONNECT_TIMEOUT).map(|connection| connection.stream))
        .collect::<Result<Vec<_>, _>>()?;
    let clock = Clock::new(Instant::now());
    let mut echo = Echo {
        clients: (0..clients).map(|client| (0, messages(statements, client, piped))).collect(),
        left: clients,
        transactions: 0,
        end: Moment::NEVER,
    };
    if clients < ReactorChoice::URING_FROM {
        echo.run(&mut Epoll::new(clock, streams, None)?, statements, span)
    } else {
        echo.run(&mut Uring::new(clock, streams, None)?, statements, span)
    }
}

/// Returns the requests of client `client` for one transaction, to be sent one after the other.
fn messages(statements: &[&str], client: usize, piped: bool) -> Vec<Vec<u8>> {
    let execute = |(number, sql): (usize, &&str)| {
        let parameter = if sql.contains("$1") {
            // Within the tables at scale 10, and of each branch and teller as many as of the
            // others.
            let value = (client % if sql.contains("bid =") { 10 } else { 100 } + 1).to_string();
            let length = u32::try_from(value.len()).unwrap_or_default().to_be_bytes();
            [b"\0\x01", &length[..], value.as_bytes()].concat()
        } else {
            vec![0; 2]
        };
        let name = format!("\0s{number}\0\0\0");
        let mut out = Vec::new();
        message(&mut out, b'B', &[name.as_bytes(), &parameter, &[0; 2]].concat());
        message(&mut out, b'E', &[0; 5]);
        out
    };
    let mut all: Vec<Vec<u8>> = statements.iter().enumerate().map(execute).collect();
    if piped {
        all = vec![all.concat()];
    }
    all.iter_mut().for_each(|messages| message(messages, b'S', &[]));
    all
}

struct Echo {
    /// Which of its messages each client has sent, and the messages.
    clients: Vec<(usize, Vec<Vec<u8>>)>,
    /// Clients that are not told to end.
    left: usize,
    transactions: u64,
    end: Moment,
}

impl ReactorHandler for Echo {
    fn received(&mut self, link: usize, bytes: &[u8], now: Moment, out: &mut Vec<u8>) -> AfterSend {
        let ends = bytes.split_last().is_some_and(|(_, before)| before.ends_with(READY));
        if !ends {
            return AfterSend::Open;
        }
        let (next, messages) = &mut self.clients[link];
        if *next == messages.len() {
            self.transactions += 1;
            *next = 0;
            if now >= self.end {
                self.left -= 1;
                out.extend_from_slice(b"X\0\0\0\x04");
                return AfterSend::Close;
            }
        }
        out.extend_from_slice(&messages[*next]);
        *next += 1;
        AfterSend::Open
    }

    fn lost(&mut self, _: usize, how: &str, _: Moment) {
        let _ = writeln!(std::io::stderr(), "lost: {how}");
        std::process::exit(2);
    }
}

impl Echo {
    fn run<R: Reactor>(
        &mut self,
        reactor: &mut R,
        statements: &[&str],
        span: Duration,
    ) -> Result<(), Anything> {
        let mut prepare = Vec::new();
        for (number, sql) in statements.iter().enumerate() {
            message(&mut prepare, b'P', format!("s{number}\0{sql}\0\0\0").as_bytes());
        }
        message(&mut prepare, b'S', &[]);
        for link in 0..self.clients.len() {
            reactor.send(link, &mut |out| {
                out.extend_from_slice(&prepare);
                AfterSend::Open
            });
        }
        let begun = reactor.now();
        self.end = begun.after(span);
        while self.left > 0 {
            let now = reactor.now();
            reactor.turn(now, now.after(Duration::from_millis(50)), self)?;
        }
        let seconds = reactor.now().since(begun).as_secs_f64();
        let rate = self.transactions as f64 / seconds;
        writeln!(
            std::io::stdout(),
            "transactions actually processed: {}\ntps = {rate}",
            self.transactions
        )?;
        Ok(())
    }
}
