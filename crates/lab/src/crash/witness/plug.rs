//! The fault `plug`: load until somebody pulls the plug, and at the next start of the same command
//! the judgement.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use pgdyno_durability::{Aftermath, AsynchronousCommit, Promise, Unseen, judge};
use pgdyno_engine::LoadSpec;
use pgdyno_host::postgres::{Cluster, ClusterSpec, Install, StopMode};
use pgdyno_host::{Journal, facts, paths, server_account};
use pgdyno_model::crash::{Aim, Control, CrashRecord, Fault, FaultOutcome};
use pgdyno_model::experiment::Length;
use pgdyno_model::ledger::{Effect, Entry, History, State, Token};
use pgdyno_model::storage::Backing;
use pgdyno_model::target::Secret;
use pgdyno_model::units::{Epoch, Span};

use super::super::ground::{DATABASE, Ground};
use super::super::recovery::in_a_line;
use super::super::round::{Orders, Planted};
use super::super::{Session, Subject, load, plan, verify};
use super::local::{self, LocalSession};
use super::{Answer, Ask, Connection, Standing, WitnessLedger, history};
use crate::LabError;
use crate::prepare::Prepared;
use crate::run::{clear_leftovers, id_of, open_store};
use pgdyno_model::progress::{Event, Progress};

/// How long load is offered while nobody pulls the plug.
const AT_MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// So many times `wal_writer_delay` are what the header says of asynchronous commit.
const DELAYS: u32 = 3;

/// What a start came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Plugged {
    /// The machine came back, and was judged.
    Judged(Box<CrashRecord>),
    /// The load was ended, and nobody had pulled the plug.
    Ended,
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
    fn connect(&self) -> Result<Connection, LabError> {
        Connection::to(&self.address, &self.secret).map_err(|e| self.failed("reach", &e))
    }

    fn failed(&self, what: &str, e: &std::io::Error) -> LabError {
        LabError::Witness {
            what: format!("{what} the witness at {}", self.address),
            found: e.to_string(),
        }
    }

    fn standing(&self, connection: &mut Connection, session: &str) -> Result<Standing, LabError> {
        match connection
            .ask(&Ask::Session(session.to_owned()))
            .map_err(|e| self.failed("ask", &e))?
        {
            Answer::Session(standing) => Ok(standing),
            _ => Err(self.failed("ask", &super::unexpected())),
        }
    }

    /// On a connection of its own: the one before may have been idle for as long as the load took.
    fn close(&self, session: &str, why: &str) -> Result<(), LabError> {
        let closing = Ask::Close(session.to_owned(), why.to_owned());
        self.connect()?.done(&closing).map_err(|e| self.failed("tell", &e))
    }
}

/// Offers load to what `prepared` describes until the plug is pulled, its ledger at `witness`; or,
/// if this machine was under such load and was started anew since, judges what is there by what the
/// witness heard.
///
/// # Errors
/// The witness cannot be reached, does not share the secret, or drops; the storage is none that
/// outlives a restart; this machine and the witness do not know of the same session; as
/// [`super::super::crash`].
pub fn plug(
    prepared: &Prepared,
    witness: &Witness,
    store: &Path,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Plugged, LabError> {
    let mut connection = witness.connect()?;
    let owner = pgdyno_host::current_owner().map_err(pgdyno_host::JournalError::Owner)?;
    let machine = machine(&owner.boot_id);
    match LocalSession::read()? {
        Some(session) if session.boot_id != owner.boot_id => {
            is_open_there(witness, &mut connection, &session)?;
            let record =
                judge_return(prepared, &session, &mut connection, witness, progress, stop)?;
            open_store(store)?.add_crash(None, &record)?;
            witness.close(&session.id, &record.outcome.verdict.to_string())?;
            session.remove()?;
            return Ok(Plugged::Judged(Box::new(record)));
        }
        Some(session) => {
            if Path::new(&format!("/proc/{}", session.pid)).exists() {
                return Err(LabError::Crash {
                    what: session.name,
                    found: format!(
                        "process {} offers load for that already, and the machine was not restarted",
                        session.pid
                    ),
                    help: "pull the plug while it does, or end it first".into(),
                });
            }
            let note = format!(
                "session {} ended without a restart of the machine: it is begun anew",
                session.id
            );
            progress.event(&Event::Note(note));
            if witness.standing(&mut connection, &session.id)? == Standing::Open {
                witness.close(&session.id, "no restart")?;
            }
            session.remove()?;
        }
        None => refuse_unknown(witness, &mut connection, &machine)?,
    }
    let journal = clear_leftovers(progress, stop)?;
    let subject = plan::subject(prepared, &prepared.plan.treatments[0], progress, stop)?;
    if !matches!(subject.storages[&subject.storage].backing, Backing::Directory(_)) {
        return Err(LabError::Crash {
            what: format!("storage `{}`", subject.storage),
            found: "nobody mounts it again when the machine comes back".into(),
            help: "name a directory on the real filesystem with `--storage DIR`, without `--filesystem`"
                .into(),
        });
    }
    let under = Under { witness, machine, boot_id: owner.boot_id, pid: owner.pid };
    under.load(&subject, &journal, connection, progress, stop)?;
    Ok(Plugged::Ended)
}

/// Refuses to judge a session of this machine's that the witness does not know, or has closed.
fn is_open_there(
    witness: &Witness,
    connection: &mut Connection,
    session: &LocalSession,
) -> Result<(), LabError> {
    let found = match witness.standing(connection, &session.id)? {
        Standing::Open => return Ok(()),
        Standing::Closed => "has closed it",
        Standing::Unknown => "knows nothing of it",
    };
    Err(LabError::Crash {
        what: format!(
            "{} anew, whose session {} waits for its judgement",
            session.name, session.id
        ),
        found: format!("the witness at {} {found}", witness.address),
        help: format!(
            "start the witness with the `--directory` that it had, or remove {} if that session is given up",
            local::path().display()
        ),
    })
}

/// Refuses to begin where the witness has an open session of a machine that knows nothing of it:
/// what was run stands in this machine's own state alone, and is never taken from the network.
fn refuse_unknown(
    witness: &Witness,
    connection: &mut Connection,
    machine: &str,
) -> Result<(), LabError> {
    let asked =
        connection.ask(&Ask::Open(machine.to_owned())).map_err(|e| witness.failed("ask", &e))?;
    match asked {
        Answer::Open(None) => Ok(()),
        Answer::Open(Some(id)) => {
            let id = super::harmless(&id);
            Err(LabError::Crash {
                what: format!(
                    "anything: the witness at {} has the open session {id} of this machine",
                    witness.address
                ),
                found: format!(
                    "what this machine kept of it, {}, is missing",
                    local::path().display()
                ),
                help: format!(
                    "bring that file back; or remove {id}.witness from the witness's directory if that session is given up"
                ),
            })
        }
        _ => Err(witness.failed("ask", &super::unexpected())),
    }
}

/// Whether one lost transaction would have been seen: the same server judged by a ledger that has
/// one more.
///
/// A plug that is pulled for a control is more than anybody can be asked for.
fn control(history: &History, aftermath: &Aftermath, promise: &Promise) -> Control {
    let mut history = history.clone();
    if let Some(client) = history.clients.first_mut() {
        let sequence = client.last().map_or(1, |last| last.token.sequence + 1);
        // So old that no setting allows its loss.
        let (begun, at) = (Duration::ZERO, Duration::ZERO);
        let effect = Effect { account: 1, teller: 1, branch: 1, delta: 1 };
        client.push(Entry {
            token: Token { client: 0, sequence },
            effect,
            state: State::Acknowledged,
            begun,
            at,
        });
    }
    let judged = judge(&history, aftermath, promise);
    Control {
        name: "one more acknowledged transaction in the ledger than was sent".into(),
        fault: Some(Fault::Plug),
        seen: judged.verdict.is_failure(),
        verdict: judged.verdict,
        reason: judged.reason,
    }
}

/// This machine, whatever it is called.
fn machine(boot_id: &str) -> String {
    let id = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    match id.trim() {
        // Then it cannot be known again after a restart: nothing is judged that is not surely this
        // machine's.
        "" => format!("boot {boot_id}"),
        id => id.to_owned(),
    }
}

/// The first part: under load until the lights go out.
struct Under<'a> {
    witness: &'a Witness,
    machine: String,
    boot_id: String,
    pid: i32,
}

impl Under<'_> {
    fn load(
        &self,
        subject: &Subject,
        journal: &Journal,
        mut connection: Connection,
        progress: &dyn Progress,
        stop: &AtomicBool,
    ) -> Result<(), LabError> {
        let mut ground = Ground::make(subject, journal, progress, stop)?;
        ground.begin_again(stop)?;
        let mut client = ground.cluster().control(DATABASE)?;
        let settings = verify::settings(&mut client)?;
        let identifier = verify::system_identifier(&mut client);
        drop(client);
        // Also what initdb wrote and the directories' own names.
        pgdyno_host::fault::make_durable(&ground.cluster().data())?;
        let spec = ground.cluster().spec().clone();
        let id = id_of("plug", Epoch::of(SystemTime::now()));
        let session = LocalSession {
            id: id.clone(),
            boot_id: self.boot_id.clone(),
            pid: self.pid,
            name: subject.name.clone(),
            storage: subject.storage.clone(),
            directory: spec.directory.clone(),
            bindir: spec.install.bindir.clone(),
            settings: spec.settings.clone(),
            options: subject.options.clone(),
            checksums: settings.checksums,
            system_identifier: identifier.unwrap_or_default(),
            loses_at_most_ms: settings
                .wal_writer_delay
                .map(|delay| u64::try_from((delay * DELAYS).as_millis()).unwrap_or(u64::MAX)),
        };
        session.write()?;
        let beginning = Ask::Begin(id.clone(), self.machine.clone());
        if let Err(e) = connection.done(&beginning) {
            session.remove()?;
            return Err(self.witness.failed("tell", &e));
        }
        drop(connection);
        progress.event(&Event::Warning(format!(
            "session {id}: pull the plug while load runs; when the machine is back, start the same command again"
        )));
        let Witness { address, secret } = self.witness.clone();
        let ledger = WitnessLedger { address, secret, session: id.clone() };
        let spec = LoadSpec {
            // Each client waits for the witness by itself.
            threads: load::clients(&subject.options),
            length: Length::Duration(Span(AT_MOST)),
            ledger: Some(Arc::new(ledger)),
            ..load::spec(ground.cluster().target(DATABASE), &subject.options, subject.options.seed)?
        };
        let told = Instant::now();
        let on_second = |live: &pgdyno_engine::Live| {
            let what = format!(
                "session {id}: {:.0} tps, {} s: pull the plug",
                live.tps,
                told.elapsed().as_secs()
            );
            progress.event(&Event::Working { what, share: None });
        };
        let watch = pgdyno_engine::Watch { stop, on_open: &|_| {}, on_second: &on_second };
        let driven = pgdyno_engine::drive(&spec, &watch);
        for left in ground.take_down() {
            progress.event(&Event::Warning(left));
        }
        let ended = self.witness.close(&id, "ended without a restart");
        if ended.is_ok() {
            session.remove()?;
        }
        match driven {
            Ok(measured) if !stop.load(Ordering::Relaxed) => Err(LabError::Witness {
                what: format!("go on with the load whose ledger is at {}", self.witness.address),
                found: measured
                    .abort_reasons
                    .first()
                    .cloned()
                    .unwrap_or_else(|| "it ended by itself".into()),
            }),
            Ok(_) | Err(pgdyno_engine::LoadError::Interrupted) => ended,
            Err(e) => Err(e.into()),
        }
    }
}

/// The second part: the machine is back. Nothing was swept before this.
fn judge_return(
    prepared: &Prepared,
    header: &LocalSession,
    connection: &mut Connection,
    witness: &Witness,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<CrashRecord, LabError> {
    let working = |what: &str| {
        let what = format!("session {}: the machine is back: {what}", header.id);
        progress.event(&Event::Working { what, share: None });
    };
    let records =
        connection.history(&header.id).map_err(|e| witness.failed("read the ledger of", &e))?;
    let history = history(&records, header.options.clients);
    // The witness's clock: the last that it heard.
    let struck_at = Duration::from_millis(records.last().map_or(0, |record| record.at_ms));
    let journal = Journal::open(&paths::state_dir())?;
    let mut subject = plan::subject(prepared, &prepared.plan.treatments[0], progress, stop)?;
    subject.name.clone_from(&header.name);
    subject.storage.clone_from(&header.storage);
    subject.settings.clone_from(&header.settings);
    subject.options = header.options.clone();
    subject.options.faults = vec![Fault::Plug];
    subject.options.controls = false;
    let source = subject.install.source.clone();
    let install = Install::open(&header.bindir, source).map_err(|e| LabError::Crash {
        what: header.name.clone(),
        found: format!("the programs it ran with are gone: {e}"),
        help: "install them again where they were".into(),
    })?;
    let mut spec = ClusterSpec::new(install, header.directory.clone())?;
    spec.settings.clone_from(&header.settings);
    spec.account = server_account()?;
    let session = Session::new(&subject, &header.id, &journal, progress, stop);
    let mut record = session.into_record();
    let mut cluster = match Cluster::adopt(spec, &journal, stop) {
        Ok(cluster) => cluster,
        Err(e) => {
            // There is nothing left to be judged: the next start begins anew.
            let closed = witness
                .close(&header.id, &format!("not judged: {e}"))
                .and_then(|()| header.remove());
            let closed = closed.err().map(|e| format!("; {}", e.in_words())).unwrap_or_default();
            let found = format!("{}{closed}", LabError::from(e).in_words());
            let help = "what a pgdyno that was killed left behind goes at the next start of any other command of pgdyno's: \
                        this one has to be the first";
            return Err(LabError::Crash { what: header.name.clone(), found, help: help.into() });
        }
    };
    record.storage = facts::fingerprint(&header.storage, &header.directory, subject.serials)?;
    working("recovery");
    let mark = cluster.log_mark();
    let began = Instant::now();
    let up = cluster.start_within(header.options.recovery_limit.0, stop);
    let took = began.elapsed();
    if stop.load(Ordering::Relaxed) {
        // Its files stay as they are: the next start judges them.
        cluster.stop(StopMode::Immediate);
        std::mem::forget(cluster);
        return Err(LabError::Interrupted);
    }
    let before = verify::Before {
        system_identifier: Ok(header.system_identifier),
        acknowledged: Err(Unseen::NotApplicable("nobody watched WAL at the witness".into())),
        checksums: header.checksums,
    };
    let (aftermath, recovery, log) = match up {
        Ok(()) => {
            working("verification");
            let (scale, limit) = (header.options.scale, header.options.recovery_limit.0);
            match verify::look(&mut cluster, &before, mark, &verify::Terms { scale, limit, stop }) {
                Ok(found) => (Aftermath::Up(Box::new(found)), Some(took), cluster.log_since(mark)),
                Err(e) => {
                    // As above: the next start judges what is there.
                    cluster.stop(StopMode::Immediate);
                    std::mem::forget(cluster);
                    return Err(e);
                }
            }
        }
        Err(e) => {
            let log = cluster.log_since(mark);
            (Aftermath::WillNotStart(in_a_line(&LabError::from(e), &log)), None, log)
        }
    };
    let asynchronous = header.loses_at_most_ms.map(|most| AsynchronousCommit {
        wal_writer_delay: Duration::from_millis(most) / DELAYS,
        flush_time: None,
        durable_before: None,
    });
    let promise = Promise { asynchronous, struck_at };
    let judged = judge(&history, &aftermath, &promise);
    let orders = Orders {
        fault: Fault::Plug,
        number: 1,
        seed: header.options.seed,
        aim: Aim::Hand,
        planted: Planted::Nothing,
        first: 1,
    };
    let mut round = orders.record(&history, &judged, recovery, &log);
    round.struck_after_ms = struck_at.as_secs_f64() * 1e3;
    if judged.verdict.is_failure() {
        cluster.stop(StopMode::Immediate);
        let into = paths::data_dir().join("crashes").join(&header.id);
        pgdyno_host::fault::keep(&[(cluster.data(), "data".into())], &into)?;
        round.kept = Some(into.display().to_string());
    }
    cluster.remove()?;
    record.outcome.controls.push(control(&history, &aftermath, &promise));
    record.outcome.faults.push(FaultOutcome::of(Fault::Plug, vec![round]));
    record.outcome.complete = true;
    record.outcome.conclude();
    Ok(record)
}
