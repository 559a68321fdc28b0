//! An I/O error: one request fails with EIO, and the power goes after the next checkpoint.
//!
//! The kernel tells of a failed write once and takes the page for clean. A server that repeats
//! fsync then completes its checkpoint (`data_sync_retry=on`) without what the write held. Only a
//! cut after that checkpoint shows it. Load waits from before the failure to the cut where data
//! files are struck: a page that is changed once more is written once more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgdyno_connect::control::{self, Client};
use pgdyno_emulated_disk::{Content, Control, DiskError, Effect, Hits, Operation, Rule, Selector};
use pgdyno_engine::random::Random;
use pgdyno_model::crash::Under;
use pgdyno_model::target::Target;

use super::arming::{PATIENCE, Rig, change_pages, drawn, needed_pages};
use crate::missed::{Met, Missed};
use crate::workload::CrashLoad;
use pgdyno_provision::sql::execute;
use pgdyno_provision::{BenchError, Context};

/// How long a checkpoint may take to complete after the error, the server's own recovery included.
const RETRYING: Duration = Duration::from_secs(15);
/// After so many attempts in a row to connect that nobody answers the server is gone.
const UNANSWERED: u32 = 20;
/// How many writes of data pages are passed over at most, try by try.
const AMONG: [i64; 3] = [8, 3, 1];

/// The request that fails.
#[derive(Clone, Copy)]
enum Request {
    DataWrite,
    DataFlush,
    WalFlush,
    WalWrite,
}

impl Request {
    /// Returns the kind of round `number`. They take turns, so that four rounds have all four.
    ///
    /// Controls are number 0 and have the kind that a retried fsync loses.
    fn for_round(under: Under, number: u32) -> Self {
        let kinds: &[Self] = match under {
            Under::Data => &[Self::DataWrite, Self::DataFlush],
            Under::Wal => &[Self::WalFlush, Self::WalWrite],
            Under::Both => &[Self::DataWrite, Self::DataFlush, Self::WalFlush, Self::WalWrite],
        };
        kinds[number as usize % kinds.len()]
    }

    fn name(self) -> &'static str {
        match self {
            Self::DataWrite => "a write of a data page",
            Self::DataFlush => "a flush of the disk under PGDATA, a checkpoint's,",
            Self::WalFlush => "a flush of the disk under pg_wal",
            Self::WalWrite => "a write of WAL",
        }
    }
}

pub(super) fn inject(rig: Rig<'_>) -> Met {
    let Rig { mut disks, under, target, load, round, draws, context } = rig;
    let request = Request::for_round(under, round);
    let disk = match request {
        Request::DataWrite | Request::DataFlush => disks.first_mut(),
        Request::WalFlush | Request::WalWrite => disks.last_mut(),
    };
    let Some(disk) = disk else { return Ok(Err(Missed::NoEmulatedDisk)) };
    let mut bystander = control::connect_to_own(&target)?;
    let mut notes = Vec::new();
    let checkpoints = match request {
        Request::DataWrite => {
            let mut bystander = Bystander { client: &mut bystander, target: &target, load };
            fail_data_write(disk, &mut bystander, draws, &mut notes, context)?
        }
        Request::DataFlush => {
            hold_load(&mut bystander, load)?;
            let checkpoints = Checkpoints::begin(&target);
            let on = Selector::all(Operation::Flush);
            let is_hit = has_failed(disk, on, 1 + drawn(draws, 3), context, &|| false)?;
            is_hit.then_some(checkpoints)
        }
        Request::WalFlush | Request::WalWrite => {
            let on = match request {
                Request::WalFlush => Selector::all(Operation::Flush),
                _ => Selector::writes_of(Content::WalPage),
            };
            has_failed(disk, on, 1 + drawn(draws, 5), context, &|| false)?
                .then(|| Checkpoints::begin(&target))
        }
    };
    let Some(checkpoints) = checkpoints else {
        return Ok(Err(Missed::NoRequest { of: request.name(), within: PATIENCE }));
    };
    let afterwards = checkpoints.complete_one(context)?;
    let then = match bystander.batch_execute("SELECT 1") {
        Ok(()) => "the server went on",
        Err(_) => "the server ended its sessions upon it",
    };
    notes.insert(0, format!("{} failed with EIO; {then}; {afterwards}", request.name()));
    Ok(Ok(notes))
}

/// A connection beside the load, and what it holds up.
struct Bystander<'a> {
    client: &'a mut Client,
    target: &'a Target,
    load: &'static CrashLoad,
}

/// Fails the write of a page that recovery repairs, and that it does not from the next checkpoint
/// on.
fn fail_data_write(
    disk: &mut Control,
    bystander: &mut Bystander<'_>,
    draws: &mut Random,
    notes: &mut Vec<String>,
    context: Context<'_>,
) -> Result<Option<Checkpoints>, BenchError> {
    let aimed = AMONG.into_iter().map(|among| (true, among));
    for (is_aimed, among) in aimed.chain([(false, 5)]) {
        let Bystander { client, target, load } = bystander;
        let needed = needed_pages(client, load)?;
        let on = if is_aimed { needed } else { Selector::writes_of(Content::DataPage) };
        change_pages(draws, context)?;
        hold_load(client, load)?;
        let checkpoints = Checkpoints::begin(target);
        let is_over = || is_aimed && checkpoints.has_completed_twice();
        if has_failed(disk, on, 1 + drawn(draws, among), context, &is_over)? {
            if !is_aimed {
                let why = "no page was written over its older version: any page's write failed";
                notes.push(why.into());
            }
            return Ok(Some(checkpoints));
        }
        drop(checkpoints);
        execute(client, "let load go on", "ROLLBACK")?;
    }
    Ok(None)
}

/// Lets each transaction of the load end or wait: all change one table first.
fn hold_load(client: &mut Client, load: &CrashLoad) -> Result<(), BenchError> {
    let sql = format!("BEGIN; LOCK TABLE {} IN EXCLUSIVE MODE", load.changed_first);
    execute(client, "let load wait", &sql)
}

/// Fails the `n`-th request of `on`, once. False if none came before `is_over` or [`PATIENCE`] did.
fn has_failed(
    disk: &mut Control,
    on: Selector,
    n: u64,
    context: Context<'_>,
    is_over: &dyn Fn() -> bool,
) -> Result<bool, BenchError> {
    let rule = Rule { on, hits: Hits::Nth(n), effect: Effect::Fail(DiskError::Eio) };
    let id = disk.arm(&rule)?;
    let is_hit = context.poll(PATIENCE, Duration::from_millis(2), || {
        // Asked before: the last checkpoint may have met the rule.
        let is_over = is_over();
        let is_hit = disk.status()?.rules.iter().any(|rule| rule.id == id && rule.hit > 0);
        Ok((is_hit || is_over).then_some(is_hit))
    });
    let is_hit = is_hit?.unwrap_or(false);
    if !is_hit {
        disk.disarm(id)?;
    }
    Ok(is_hit)
}

/// The outcomes of the checkpoints that are requested.
#[derive(Default)]
struct Course {
    completed: u32,
    refusals: u32,
    last_refusal: String,
    /// Attempts in a row to connect that nobody answered.
    unanswered: u32,
}

/// Checkpoints that are asked for over and over, whatever becomes of them and of the server.
struct Checkpoints {
    enough: Arc<AtomicBool>,
    course: Arc<Mutex<Course>>,
}

impl Checkpoints {
    fn begin(target: &Target) -> Self {
        let (enough, course) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Course>>::default());
        let (told, into, target) = (Arc::clone(&enough), Arc::clone(&course), target.clone());
        let work = move || {
            while !told.load(Ordering::Relaxed) && !update(&into, |course| course.is_gone()) {
                ask_until_closed(&target, &told, &into);
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        if std::thread::Builder::new().name("crash-checkpoints".into()).spawn(work).is_err() {
            update(&course, |course| course.unanswered = UNANSWERED);
        }
        Self { enough, course }
    }

    /// Whether one that began after this was made is complete; the first may have been under way.
    fn has_completed_twice(&self) -> bool {
        update(&self.course, |course| course.completed >= 2 || course.is_gone())
    }

    /// Waits for a checkpoint that begins and completes from now on, and says what came of it.
    fn complete_one(&self, context: Context<'_>) -> Result<String, BenchError> {
        // The one that is under way began before.
        let needed = update(&self.course, |course| course.completed + 2);
        let is_complete = context.poll(RETRYING, Duration::from_millis(10), || {
            Ok(update(&self.course, |course| {
                let is_complete = course.completed >= needed;
                (is_complete || course.is_gone()).then_some(is_complete)
            }))
        });
        let is_complete = is_complete?.unwrap_or(false);
        Ok(update(&self.course, |course| course.message(is_complete)))
    }
}

impl Course {
    /// Whether nobody listens any more. A server that recovers answers.
    fn is_gone(&self) -> bool {
        self.unanswered >= UNANSWERED
    }

    fn message(&self, is_complete: bool) -> String {
        let refused = match self.refusals {
            0 => String::new(),
            n => format!(" ({n} refused before, the last one: {})", self.last_refusal),
        };
        if is_complete {
            format!("a checkpoint completed afterwards{refused}")
        } else if self.is_gone() {
            format!("no checkpoint completed afterwards, since the server was gone{refused}")
        } else {
            format!("no checkpoint completed within {RETRYING:?}{refused}")
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        // Not waited for, as [`Repeated`] is not.
        self.enough.store(true, Ordering::Relaxed);
    }
}

fn update<T>(course: &Mutex<Course>, with: impl FnOnce(&mut Course) -> T) -> T {
    with(&mut course.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Asks for checkpoints on one connection, as long as it lives.
fn ask_until_closed(target: &Target, enough: &AtomicBool, course: &Mutex<Course>) {
    let refuse = |said: String| {
        update(course, |course| {
            course.refusals += 1;
            course.last_refusal = said;
        });
    };
    let mut client = match control::connect_to_own(target) {
        Ok(client) => client,
        Err(e) if e.sqlstate().is_none() => return update(course, |course| course.unanswered += 1),
        Err(_) => return,
    };
    update(course, |course| course.unanswered = 0);
    // One that hangs is asked for anew.
    if client.batch_execute("SET statement_timeout = '10s'").is_err() {
        return;
    }
    while !enough.load(Ordering::Relaxed) {
        match client.batch_execute("CHECKPOINT") {
            Ok(()) => update(course, |course| course.completed += 1),
            Err(e) => {
                refuse(control::error_text(&e));
                if client.is_closed() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}
