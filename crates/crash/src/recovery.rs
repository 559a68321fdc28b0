//! Recovery after a fault, within a limit; damage planted for a control; and a look at the server.

use std::time::{Duration, Instant};

use pgdyno_durability::{Aftermath, Promise, judge};
use pgdyno_engine::random::Random;
use pgdyno_model::Fault;
use pgdyno_model::crash::Aim;
use pgdyno_model::ledger::{History, State};
use pgdyno_model::progress::RoundStage;
use pgdyno_postgres::{Cluster, ClusterError, StopMode};
use pgdyno_storage::fault::FileBaseline;

use super::inject_fault::InjectedFault;
use super::round_plan::{Planted, RoundContext, RoundPlan};
use super::test_bed::TestBed;
use super::verify::{self, Before, Depth, Terms};
use super::workload::CrashLoad;
use pgdyno_provision::BenchError;
use pgdyno_provision::provisioner::DATABASE;
use pgdyno_provision::sql::execute;

/// A round up to its fault.
#[derive(Clone, Copy)]
pub(super) struct Faulted<'a> {
    /// The server before the fault.
    pub(super) before: &'a Before,
    /// The transactions that clients sent, and which of them were acknowledged.
    pub(super) history: &'a History,
    /// Promise of the acknowledgements, by the server's settings.
    pub(super) promise: &'a Promise,
    pub(super) fault: &'a InjectedFault,
    /// Files to put back as they were at the baseline, for a control.
    pub(super) stale: Option<&'a FileBaseline>,
    /// Whether the postmaster restarts by itself once a backend has crashed.
    pub(super) restarts_after_crash: bool,
}

/// A server after a fault.
pub(super) struct Recovered {
    pub(super) aftermath: Aftermath,
    /// Time until the server took connections; none if it did not.
    pub(super) took: Option<Duration>,
    /// The server's log since the fault.
    pub(super) log: String,
}

impl Recovered {
    fn without_mount(error: &BenchError) -> Self {
        Self { aftermath: mount_failure(error), took: None, log: String::new() }
    }
}

/// Returns the aftermath of a filesystem that could not be mounted again. The failure is its own,
/// or that of something around it, which says nothing about it.
pub(super) fn mount_failure(error: &BenchError) -> Aftermath {
    let words = error.message();
    match error.is_around_the_storage() {
        true => Aftermath::NotTried(words),
        false => Aftermath::WillNotMount(words),
    }
}

/// Lets the server recover and looks at it, for the oracles.
///
/// Where the round aims at recovery, a second fault strikes in the middle of it.
pub(super) fn recover(
    plan: &RoundPlan,
    bed: &mut TestBed,
    faulted: &Faulted<'_>,
    draws: &mut Random,
    around: &RoundContext<'_>,
) -> Result<Recovered, BenchError> {
    let RoundContext { subject, context, .. } = *around;
    let Faulted { history, fault, stale, restarts_after_crash, .. } = *faulted;
    let stop = context.stop;
    plan.report(around, RoundStage::Recovery);
    if plan.aim == Aim::Recovery {
        if let Err(e) = bed.power_on(stop) {
            return Ok(Recovered::without_mount(&e));
        }
        crash_recovery(plan.fault, bed, draws)?;
    }
    if let Err(e) = bed.power_on(stop) {
        return Ok(Recovered::without_mount(&e));
    }
    if let Some(stale) = stale {
        stale.put_back()?;
    }
    let mark = fault.log_mark.unwrap_or_else(|| bed.cluster().log_mark());
    let began = Instant::now();
    let limit = subject.options.recovery_limit.0;
    let up = match plan.fault {
        // Its postmaster lives, and recovers by itself, unless it is told to end.
        Fault::Backend => match bed.cluster().wait_ready(limit, stop) {
            Err(ClusterError::Died { .. }) if !restarts_after_crash => {
                bed.cluster().start_within(limit, stop)
            }
            came => came,
        },
        _ => bed.cluster().start_within(limit, stop),
    };
    let took = began.elapsed();
    context.check_stop()?;
    if let Err(e) = up {
        bed.cluster().stop(StopMode::Immediate);
        // One that did not even begin to tell: what it told before.
        let log = Some(bed.cluster().log_since(mark)).filter(|log| !log.is_empty());
        let log = log.unwrap_or_else(|| bed.cluster().log_since(0));
        let aftermath = Aftermath::WillNotStart(start_failure(&e, &log));
        return Ok(Recovered { aftermath, took: None, log });
    }
    plan.report(around, RoundStage::Verification);
    if plan.planted == Planted::OneLost {
        take_back(bed.cluster(), subject.load(), history)?;
    }
    if let Some(interfere) = &subject.interference.after_recovery {
        interfere(&bed.cluster().control_target(DATABASE), &bed.cluster().data());
    }
    let terms = Terms::new(subject.load(), subject.options.scale, limit, stop)?;
    let aftermath = look(plan, bed.cluster(), faulted, mark, &terms)?;
    let log = bed.cluster().log_since(mark);
    Ok(Recovered { aftermath, took: Some(took), log })
}

/// Looks at everything on a server that is up; only at what takes little time where that shows a
/// failure and one is enough.
fn look(
    plan: &RoundPlan,
    cluster: &mut Cluster,
    faulted: &Faulted<'_>,
    log_mark: u64,
    terms: &Terms<'_>,
) -> Result<Aftermath, BenchError> {
    let mut look = |depth| {
        let found = verify::look(cluster, faulted.before, log_mark, depth, terms)?;
        Ok::<_, BenchError>(Aftermath::Up(Box::new(found)))
    };
    if plan.until_failure {
        let quick = look(Depth::Quick)?;
        if judge(faulted.history, &quick, faulted.promise).verdict.is_failure() {
            return Ok(quick);
        }
    }
    look(Depth::Thorough)
}

/// Starts the server and injects `fault` while it recovers.
fn crash_recovery(fault: Fault, bed: &mut TestBed, draws: &mut Random) -> Result<(), BenchError> {
    bed.cluster().begin_start()?;
    std::thread::sleep(
        Duration::from_millis(20) + Duration::from_millis(150).mul_f64(draws.unit()),
    );
    match fault {
        Fault::Power | Fault::EmulatedLie => {
            bed.cut_power(0.0)?;
        }
        Fault::Immediate => bed.cluster().stop(StopMode::Immediate),
        _ => {
            bed.cluster().kill();
            bed.cluster().wait_dead();
        }
    }
    Ok(())
}

/// Takes one acknowledged transaction of `load` back, and all that it did: every rule but the
/// ledger's holds.
fn take_back(cluster: &Cluster, load: &CrashLoad, history: &History) -> Result<(), BenchError> {
    let mut acknowledged = history.entries().filter(|e| e.state == State::Acknowledged);
    let taken = acknowledged.find_map(|e| Some((e.token, (load.take_back)(&e.effect)?)));
    let Some((token, take_back)) = taken else { return Ok(()) };
    let sql = format!(
        "BEGIN; DELETE FROM pgdyno_token WHERE client = {} AND sequence = {}; {take_back}; COMMIT",
        token.client, token.sequence,
    );
    let mut client = cluster.control(DATABASE)?;
    execute(&mut client, "plant a lost transaction", &sql)
}

/// Says in a line why a server did not come back: its end, and the gravest line of its `log`.
pub(super) fn start_failure(error: &ClusterError, log: &str) -> String {
    let seen = match error {
        ClusterError::DidNotStart { status, .. } => {
            format!("the server did not start: it ended with {status}")
        }
        ClusterError::Died { status, .. } => format!("the server ended by itself ({status})"),
        other => other.to_string(),
    };
    let said = log.lines().find(|line| line.contains("PANIC:") || line.contains("FATAL:  invalid"));
    let said = said.or_else(|| {
        log.lines().find(|line| line.contains("FATAL:") && !line.contains("the database system is"))
    });
    match said.and_then(|line| line.split_once("] ")) {
        Some((_, said)) => format!("{seen}; it said: {said}"),
        None => seen,
    }
}
