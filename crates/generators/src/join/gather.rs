//! Waiting for workers.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::Answer;
use super::admission::{Arrival, Door};
use super::error::GatherError;
use super::stream::{Reader, Writer};
use super::tls::Server;
use super::token::{Token, TokenFile};
use crate::error::GeneratorsError;
use crate::generators::Join;
use crate::launch::{Hands, Request, Starter, Supervisor};
use crate::protocol::frame;

/// Time that a launcher has to say why its workers left.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Interval at which the stop flag is looked at.
const WATCH: Duration = Duration::from_millis(25);
/// Between two words to workers that wait.
const BEAT: Duration = Duration::from_secs(1);
/// Refusals that are shown; the rest are counted.
const SHOWN: usize = 20;

/// Workers and their names, in the order of these.
type Workers = Vec<(String, (Reader, Writer))>;

/// All workers of a load, told to begin.
pub(crate) struct Gathered {
    pub(crate) workers: Workers,
    _door: Door,
    _token: Option<TokenFile>,
    _supervisor: Option<Supervisor>,
}

/// A worker that waits for others.
struct Waiting {
    host: String,
    reader: Reader,
    writer: Writer,
}

/// Waits for `asked` workers of `cpus` processors each, which `starter` starts, if anything does;
/// `stop` ends that.
pub(crate) fn gather(
    join: &Join,
    (asked, cpus): (usize, u32),
    starter: Option<&'static Starter>,
    stop: &AtomicBool,
    hands: &Hands<'_>,
) -> Result<Gathered, GeneratorsError> {
    let failed = GeneratorsError::Gather;
    let began = Instant::now();
    let (arrivals, inbox) = channel();
    let server = Server::new().map_err(|error| failed(GatherError::Prepare(error)))?;
    let token =
        Token::new(&server.certificate).map_err(|error| failed(GatherError::Prepare(error)))?;
    // The port first: whoever has it may have the token file, too.
    let (listener, address) = listen(&join.listen).map_err(failed)?;
    let create = |path: &PathBuf| TokenFile::create(path, &token);
    let file =
        join.token.as_ref().map(create).transpose().map_err(|e| failed(GatherError::Token(e)))?;
    let line = token.line();
    let door = Door::open(listener, server, token, asked, arrivals)
        .map_err(|error| failed(GatherError::Prepare(error)))?;
    let wait = join.wait.as_secs_f64();
    let how = match (starter, &join.token) {
        (Some(starter), _) => format!(" of {}", starter.name),
        (None, Some(file)) => {
            format!(": pgdyno worker --join {address} --token-file {}", file.display())
        }
        (None, None) => String::new(),
    };
    (hands.notice)(&format!("waiting {wait} s for {asked} workers{how}"));
    let start = |starter: &'static Starter| {
        let request = Request { workers: asked, cpus, coordinator: address };
        starter.start(&request, &line, hands.start).map_err(|fault| {
            failed(GatherError::Start { how: fault.to_string(), help: starter.missing })
        })
    };
    let supervisor = starter.map(start).transpose()?;
    let mut lobby = Lobby { waiting: Vec::new(), asked, refused: 0, last: None, supervisor };
    lobby.fill(&inbox, (began + join.wait, join.wait), stop, hands)?;
    let (workers, supervisor) = lobby.begin().map_err(failed)?;
    Ok(Gathered { workers, _door: door, _token: file, _supervisor: supervisor })
}

fn listen(address: &str) -> Result<(TcpListener, SocketAddr), GatherError> {
    let failed = |error| GatherError::Listen { address: address.to_owned(), error };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Workers that wait for others.
struct Lobby {
    waiting: Vec<Waiting>,
    asked: usize,
    refused: usize,
    /// The last refusal.
    last: Option<String>,
    /// Watches the launcher of the workers; none where people start them.
    supervisor: Option<Supervisor>,
}

impl Lobby {
    fn fill(
        &mut self,
        inbox: &Receiver<Arrival>,
        (until, wait): (Instant, Duration),
        stop: &AtomicBool,
        hands: &Hands<'_>,
    ) -> Result<(), GeneratorsError> {
        let mut next_beat = Instant::now();
        while self.waiting.len() < self.asked {
            if stop.load(Ordering::Relaxed) {
                return Err(GeneratorsError::Interrupted);
            }
            if Instant::now() >= until {
                return Err(GeneratorsError::Gather(self.late(wait)));
            }
            match inbox.recv_timeout(WATCH) {
                Ok(arrival) => self.receive(arrival, hands),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    self.launcher_ended(Duration::ZERO).map_err(GeneratorsError::Gather)?;
                }
            }
            if Instant::now() >= next_beat {
                next_beat += BEAT;
                self.say(&Answer::Waiting).map_err(GeneratorsError::Gather)?;
            }
        }
        Ok(())
    }

    fn receive(&mut self, arrival: Arrival, hands: &Hands<'_>) {
        match arrival {
            Arrival::Accepted { host, reader, writer } => {
                self.waiting.push(Waiting { host, reader, writer });
                let (came, asked) = (self.waiting.len(), self.asked);
                let host = &self.waiting[came - 1].host;
                (hands.notice)(&format!("{came} of {asked} workers came: {host}"));
            }
            Arrival::Refused { from, why } => {
                self.refused += 1;
                let refusal = format!("refused {from}: {why}");
                if self.refused <= SHOWN {
                    (hands.notice)(&refusal);
                }
                self.last = Some(refusal);
            }
        }
    }

    /// Fails if the launcher ends within `limit`.
    fn launcher_ended(&mut self, limit: Duration) -> Result<(), GatherError> {
        let (came, asked) = (self.waiting.len(), self.asked);
        let Some(supervisor) = &mut self.supervisor else { return Ok(()) };
        match supervisor.ended(limit) {
            Some(how) => {
                Err(GatherError::Launcher { came, asked, how, help: supervisor.starter.ended })
            }
            None => Ok(()),
        }
    }

    /// Says something to all.
    fn say(&mut self, answer: &Answer) -> Result<(), GatherError> {
        let said = |worker: &mut Waiting| frame::write(&mut worker.writer, answer).is_ok();
        let Some(gone) = self.waiting.iter_mut().position(|worker| !said(worker)) else {
            return Ok(());
        };
        // A launcher that ends all workers when one fails knows more.
        self.launcher_ended(LAST_WORDS)?;
        let host = self.waiting[gone].host.clone();
        Err(GatherError::Left { host, came: self.waiting.len(), asked: self.asked })
    }

    fn late(&self, wait: Duration) -> GatherError {
        let hosts: Vec<&str> = self.waiting.iter().map(|worker| worker.host.as_str()).collect();
        let mut others = match hosts.is_empty() {
            true => String::new(),
            false => format!(" ({})", hosts.join(", ")),
        };
        if let Some(last) = &self.last {
            others += &format!("; {} refused, the last: {last}", self.refused);
        }
        GatherError::Late { came: hosts.len(), asked: self.asked, wait, others }
    }

    /// Tells all to begin. Shares go by the order of names, so that the same hosts have the same.
    fn begin(mut self) -> Result<(Workers, Option<Supervisor>), GatherError> {
        self.say(&Answer::Begin)?;
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.all_have_come();
        }
        self.waiting.sort_by(|a, b| a.host.cmp(&b.host));
        let hosts: Vec<&str> = self.waiting.iter().map(|worker| worker.host.as_str()).collect();
        let names = names(&hosts);
        let workers = self.waiting.into_iter();
        let named = names.into_iter().zip(workers).map(|(n, w)| (n, (w.reader, w.writer)));
        Ok((named.collect(), self.supervisor))
    }
}

/// Names workers after their sorted hosts; several on one host are numbered.
fn names(hosts: &[&str]) -> Vec<String> {
    let name =
        |(index, host): (usize, &&str)| match hosts.iter().filter(|other| *other == host).count() {
            1 => (*host).to_owned(),
            _ => {
                let before = hosts[..index].iter().filter(|other| *other == host).count();
                format!("{host}-{}", before + 1)
            }
        };
    hosts.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn several_workers_of_one_host_are_numbered() {
        assert_eq!(super::names(&["a", "b", "b", "c"]), ["a", "b-1", "b-2", "c"]);
    }
}
