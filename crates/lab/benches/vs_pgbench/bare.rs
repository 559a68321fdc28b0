//! The least that any client can cost: one fixed statement a connection, sent again as soon as its answer is there, on
//! the engine's reactors. It draws nothing, keeps no time and counts nothing but answers, so that what it costs is the
//! kernel's part and the reactor's.

use std::io::Write as _;
use std::time::{Duration, Instant};

use pgdyno_engine::connect::{CONNECT_TIMEOUT, connect};
use pgdyno_engine::reactor::epoll::Epoll;
use pgdyno_engine::reactor::uring::Uring;
use pgdyno_engine::reactor::{Driver, Keep, Reactor};
use pgdyno_engine::schedule::{Clock, Moment};
use pgdyno_model::target::{Address, Secret, Target};

use super::Anything;

/// From how many clients on the engine serves them by `io_uring`.
const URING_FROM: usize = 16;
/// A `ReadyForQuery` outside of transactions, with which every answer ends.
const READY: &[u8] = b"Z\0\0\0\x05I";

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
    let table = std::fs::read_to_string(after("-f")?)?.contains("pgbench_accounts");
    let sql = if table { "SELECT abalance FROM pgbench_accounts WHERE aid = $1" } else { "SELECT $1" };
    let streams = (0..clients)
        .map(|_| connect(&target, CONNECT_TIMEOUT).map(|connection| connection.stream))
        .collect::<Result<Vec<_>, _>>()?;
    let clock = Clock::new(Instant::now());
    let mut echo =
        Echo { execute: (0..clients).map(execute).collect(), left: clients, answers: 0, end: Moment::NEVER };
    if clients < URING_FROM {
        echo.run(&mut Epoll::new(clock, streams, None)?, sql, span)
    } else {
        echo.run(&mut Uring::new(clock, streams, None)?, sql, span)
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap_or_default().to_be_bytes();
    [&[tag], &length[..], body].concat()
}

/// Bind, Execute and Sync with parameter `client` + 1.
fn execute(client: usize) -> Vec<u8> {
    let text = (client + 1).to_string();
    let length = u32::try_from(text.len()).unwrap_or_default().to_be_bytes();
    let bind = [b"\0s\0\0\0\0\x01", &length[..], text.as_bytes(), &[0; 2]].concat();
    [message(b'B', &bind), message(b'E', &[0; 5]), message(b'S', &[])].concat()
}

struct Echo {
    /// What each client sends.
    execute: Vec<Vec<u8>>,
    /// Clients that are not told to end.
    left: usize,
    answers: u64,
    end: Moment,
}

impl Driver for Echo {
    fn received(&mut self, link: usize, bytes: &[u8], now: Moment, out: &mut Vec<u8>) -> Keep {
        if !bytes.ends_with(READY) {
            return Keep::Open;
        }
        self.answers += 1;
        if now >= self.end {
            self.left -= 1;
            out.extend_from_slice(b"X\0\0\0\x04");
            return Keep::Close;
        }
        out.extend_from_slice(&self.execute[link]);
        Keep::Open
    }

    fn lost(&mut self, _: usize, how: &str, _: Moment) {
        let _ = writeln!(std::io::stderr(), "lost: {how}");
        std::process::exit(2);
    }
}

impl Echo {
    fn run<R: Reactor>(&mut self, reactor: &mut R, sql: &str, span: Duration) -> Result<(), Anything> {
        let parse = [message(b'P', &[b"s\0", sql.as_bytes(), &[0; 3]].concat()), message(b'S', &[])].concat();
        for link in 0..self.execute.len() {
            reactor.send(link, &mut |out| {
                out.extend_from_slice(&parse);
                Keep::Open
            });
        }
        let begun = reactor.now();
        self.end = begun.after(span);
        while self.left > 0 {
            let now = reactor.now();
            reactor.turn(now, now.after(Duration::from_millis(50)), self)?;
        }
        let seconds = reactor.now().since(begun).as_secs_f64();
        #[allow(clippy::cast_precision_loss)]
        let rate = self.answers as f64 / seconds;
        writeln!(std::io::stdout(), "transactions actually processed: {}\ntps = {rate}", self.answers)?;
        Ok(())
    }
}
