//! A recorded stream of transactions, and workers that report their part of it.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgdyno_engine::LoadSpec;
use pgdyno_engine::program::Program;
use pgdyno_engine::recorder::{FinishedTransaction, Interval, Recorder, RecorderOptions};
use pgdyno_engine::schedule::{Exchange, Moment, Timeline};
use pgdyno_engine::script::{Script, WeightedScript};
use pgdyno_engine::tally::Tally;
use pgdyno_generators::protocol::{Done, IntervalCounts, TallyCounts};
use pgdyno_model::experiment::Length;
use pgdyno_model::target::{Address, Target};
use pgdyno_model::units::Span;

/// Statements of the script.
const STATEMENTS: usize = 2;

/// A transaction of the stream.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    pub client: u32,
    pub script: usize,
    /// When it was due, and how long until it was sent and done (nanoseconds).
    pub due: u64,
    pub lag: u64,
    pub took: u64,
    /// Whether the reply came in two reads.
    pub is_torn: bool,
    pub is_failed: bool,
}

/// A load of two scripts that lasts `seconds`, after `warm_up`.
pub fn load(clients: u32, threads: u32, warm_up: Duration, seconds: u64) -> LoadSpec {
    let script = |name: &str| {
        let script = Script::parse(name, "SELECT 1;\nSELECT 2;").unwrap();
        WeightedScript::new(Arc::new(script), 1)
    };
    let target = Target::new(Address::Tcp { host: "nowhere".into(), port: 1 }, "u", "d");
    LoadSpec {
        clients: NonZeroU32::new(clients).unwrap(),
        threads: NonZeroU32::new(threads).unwrap(),
        warm_up,
        length: Length::Duration(Span::from_secs(seconds)),
        ..LoadSpec::new(target, vec![script("a.sql"), script("b.sql")])
    }
}

/// Returns a worker's reports of its `part` of a stream: the seconds and the totals.
///
/// The stream lasts until `end` (nanoseconds since `start`); none means to its own end.
pub fn reports(
    spec: &LoadSpec,
    start: Moment,
    part: &[Recorded],
    end: Option<u64>,
) -> (Vec<IntervalCounts>, Done) {
    let schedule = spec.schedule(start);
    let is_whole = end.is_none();
    let end = match end {
        Some(end) => Moment(start.0 + end),
        None => schedule.closing.after(Duration::from_millis(5)),
    };
    let LoadSpec { scripts, protocol, seed, variables, .. } = spec;
    let program = Program::link(scripts, *protocol, *seed, variables, &[]).unwrap();
    let intervals: Arc<Mutex<Vec<Interval>>> = Arc::default();
    let kept = Arc::clone(&intervals);
    let mut recorder = Recorder::with_options(
        &program,
        schedule,
        Box::new(move |interval| kept.lock().unwrap().push(interval)),
        RecorderOptions {
            service: true,
            tallies_seconds: true,
            ..RecorderOptions::from_load(&spec.options)
        },
    );
    let mut part = part.to_vec();
    part.sort_by_key(|t| (t.due + t.lag + t.took, t.client));
    let last = part.last().map_or(0, |t| t.due + t.lag + t.took + 1);
    let end = if is_whole { end.max(Moment(start.0 + last)) } else { end };
    part.retain(|t| start.0 + t.due + t.lag + t.took < end.0);
    for (number, t) in (0..).zip(&part) {
        let at = |nanoseconds| Moment(start.0 + nanoseconds);
        let times =
            Timeline { due: at(t.due), sent: at(t.due + t.lag), done: at(t.due + t.lag + t.took) };
        while recorder.next_tick() <= times.done {
            let next = recorder.next_tick();
            recorder.tick(next);
        }
        let ended =
            FinishedTransaction { client: t.client, number, script: t.script, times, retries: 0 };
        if t.is_failed {
            recorder.record_failure(&ended, Some(0), Some(0), "40001");
            continue;
        }
        let first_byte = if t.is_torn { at(t.due + t.lag + t.took / 2) } else { times.done };
        for statement in 0..STATEMENTS {
            let exchange = Exchange { sent: times.sent, first_byte, done: times.done };
            recorder.record_statement(t.script, statement, &exchange);
            recorder.record_command(t.script, statement, t.took, times.done);
        }
        recorder.record_lag(t.lag);
        recorder.record_transaction(&ended);
    }
    while recorder.next_tick() < end {
        let next = recorder.next_tick();
        recorder.tick(next);
    }
    recorder.finish(end);
    let intervals = std::mem::take(&mut *intervals.lock().unwrap());
    let mut totals: Option<Tally> = None;
    for interval in &intervals {
        let tally = interval.tally.as_deref().unwrap();
        match &mut totals {
            Some(sum) => sum.merge(tally),
            none => *none = Some(tally.clone()),
        }
    }
    let seconds = intervals.iter().map(|i| IntervalCounts::new(&schedule, i)).collect::<Vec<_>>();
    let done = Done {
        seconds: seconds.len() as u64,
        totals: TallyCounts::new(&totals.unwrap(), start),
        ended: end.since(start).as_nanos() as u64,
        reactor: "epoll".into(),
        ..Done::default()
    };
    (seconds, done)
}
