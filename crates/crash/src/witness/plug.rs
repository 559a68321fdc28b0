//! The fault `plug`: load until somebody pulls the plug, and at the next start of the same command
//! the judgement.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pgdyno_engine::LoadSpec;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_model::crash::CrashRecord;
use pgdyno_model::experiment::Length;
use pgdyno_model::progress::{Activity, Event, Notice, Progress, Warning};
use pgdyno_model::storage::Backing;
use pgdyno_model::units::{Epoch, Span};

use super::connection::{Ask, Connection, Standing};
use super::error::PlugError;
use super::judge_return::{DELAYS, judge_return};
use super::ledger::WitnessLedger;
use super::local::LocalSession;
use crate::subject::Subject;
use crate::test_bed::TestBed;
use crate::{load, verify};
use pgdyno_provision::provisioner::DATABASE;
use pgdyno_provision::stores::{clear_leftovers, open_store};
use pgdyno_provision::{BenchError, Context, new_record_id};

/// How long load is offered while nobody pulls the plug.
const AT_MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// The outcome of one start of a plug test.
#[derive(Clone, Debug, PartialEq)]
pub enum Plugged {
    /// The machine came back, and was judged.
    Judged(Box<CrashRecord>),
    /// The load was ended, and nobody had pulled the plug.
    Ended,
}

/// Offers load to what `resolved` describes until the plug is pulled, its ledger at a witness on
/// `host`, as `ssh` knows it; or, if this machine was under such load and was started anew since,
/// judges what is there by what the witness heard.
///
/// # Errors
/// The witness cannot be reached, or drops; the storage is none that outlives a restart; this
/// machine and the witness do not know of the same session; as [`super::super::crash`].
pub fn plug(
    resolved: &ResolvedExperiment,
    host: &str,
    store: &Path,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Plugged, BenchError> {
    let local = LocalSession::read()?;
    let connection = Connection::open(host)?;
    let owner =
        pgdyno_exec::process::current_owner().map_err(pgdyno_exec::journal::JournalError::Owner)?;
    let machine = machine(&owner.boot_id);
    match local {
        Some(session) if session.boot_id != owner.boot_id => {
            is_open_there(&connection, &session)?;
            let record = judge_return(resolved, &session, &connection, progress, stop)?;
            open_store(store)?.add_crash(None, &record)?;
            connection.close(&session.id, &record.outcome.verdict.to_string())?;
            session.remove()?;
            return Ok(Plugged::Judged(Box::new(record)));
        }
        Some(session) => {
            if Path::new(&format!("/proc/{}", session.pid)).exists() {
                let LocalSession { name, pid, .. } = session;
                return Err(PlugError::StillRunning { name, pid }.into());
            }
            let id = session.id.clone();
            progress.event(&Event::Note(Notice::SessionBegunAgain { session: id }));
            if connection.standing(&session.id)? == Standing::Open {
                connection.close(&session.id, "no restart")?;
            }
            session.remove()?;
        }
        None => refuse_unknown(&connection, &machine)?,
    }
    let journal = clear_leftovers(progress, stop)?;
    let context = Context { journal: &journal, progress, stop };
    let subject = Subject::new(resolved, &resolved.plan.treatments[0], context)?;
    if !matches!(subject.storages[&subject.storage].backing, Backing::Directory(_)) {
        return Err(PlugError::NotMountedAgain { storage: subject.storage }.into());
    }
    let under = Under { connection, machine, boot_id: owner.boot_id, pid: owner.pid };
    under.load(&subject, context)?;
    Ok(Plugged::Ended)
}

/// Refuses to judge a session of this machine's that the witness does not know, or has closed.
fn is_open_there(connection: &Connection, session: &LocalSession) -> Result<(), BenchError> {
    let found = match connection.standing(&session.id)? {
        Standing::Open => return Ok(()),
        Standing::Closed => "has closed it",
        Standing::Unknown => "knows nothing of it",
    };
    let (name, id) = (session.name.clone(), session.id.clone());
    Err(PlugError::NotOpen { name, id, host: connection.host().to_owned(), found }.into())
}

/// Refuses to begin where the witness has an open session of a machine that knows nothing of it:
/// what was run stands in this machine's own state alone, and is never taken from the network.
fn refuse_unknown(connection: &Connection, machine: &str) -> Result<(), BenchError> {
    let Some(id) = connection.open_session(machine)? else { return Ok(()) };
    Err(PlugError::NotKept { host: connection.host().to_owned(), id }.into())
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
struct Under {
    connection: Connection,
    machine: String,
    boot_id: String,
    pid: i32,
}

impl Under {
    fn load(&self, subject: &Subject, context: Context<'_>) -> Result<(), BenchError> {
        let mut bed = TestBed::make(subject, context)?;
        bed.reset_baseline(context.stop)?;
        let session = self.session(subject, &mut bed)?;
        let id = session.id.clone();
        session.write()?;
        let beginning = Ask::Begin(id.clone(), self.machine.clone());
        if let Err(e) = self.connection.done(beginning) {
            session.remove()?;
            return Err(self.connection.failed("tell", &e).into());
        }
        context.warn(Warning::PullThePlug { session: id.clone() });
        let ledger = WitnessLedger { connection: self.connection.clone() };
        let spec = LoadSpec {
            // Each client waits for the witness by itself.
            threads: load::clients(&subject.options),
            length: Length::Duration(Span(AT_MOST)),
            ledger: Some(Arc::new(ledger)),
            ..load::spec(bed.cluster().target(DATABASE), &subject.options, subject.options.seed)?
        };
        let told = Instant::now();
        let on_second = |live: &pgdyno_engine::LiveSecond| {
            context.begin(Activity::AwaitingPlug {
                session: id.clone(),
                tps: live.tps,
                elapsed: told.elapsed(),
            });
        };
        let watch = pgdyno_engine::LoadObserver {
            stop: context.stop,
            on_open: &|_| {},
            on_second: &on_second,
        };
        let driven = pgdyno_engine::run_load(&spec, &watch);
        context.warn_left(bed.take_down());
        let ended = self.connection.close(&id, "ended without a restart");
        if ended.is_ok() {
            session.remove()?;
        }
        match driven {
            Ok(measured) if !context.is_stopped() => {
                let reason = measured.counters.abort_reasons.first();
                let found = reason.map_or("it ended by itself", String::as_str);
                let what = "go on with the load whose ledger is kept by";
                Err(self.connection.failed(what, &found).into())
            }
            Ok(_) | Err(pgdyno_engine::LoadError::Interrupted) => ended,
            Err(e) => Err(e.into()),
        }
    }

    /// Makes the cluster of `bed` durable, and describes the session that begins on it.
    fn session(&self, subject: &Subject, bed: &mut TestBed) -> Result<LocalSession, BenchError> {
        let mut client = bed.cluster().control(DATABASE)?;
        let settings = verify::settings(&mut client)?;
        let identifier = verify::system_identifier(&mut client);
        drop(client);
        // Also what initdb wrote and the directories' own names.
        pgdyno_storage::fault::make_durable(&bed.cluster().data())?;
        let spec = bed.cluster().spec();
        Ok(LocalSession {
            id: new_record_id("plug", Epoch::now()),
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
        })
    }
}
