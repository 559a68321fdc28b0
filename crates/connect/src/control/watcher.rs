//! Watches the statement of one session for waits, by a second session.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::transport::Reason;
use super::wait::{LIMIT, Wait, Waiting, is_patient, tell};

/// Time that a statement may take before the watcher asks.
const SHORT: Duration = Duration::from_secs(2);
/// Length from which a wait is reported if the server itself ends it.
const HARMLESS: Duration = Duration::from_secs(10);
/// Time between two questions.
const INTERVAL: Duration = Duration::from_secs(1);
/// Longest time without any answer of the server. It is longer than a machine is paused for a
/// snapshot.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// Way to watch the statements of a session.
pub(super) struct Watch {
    pub(super) ask: Ask,
    /// Whether the connection is direct, without a pooler: then a server that answers nobody is out
    /// of order.
    pub(super) is_direct: bool,
    /// Whether statements are given up if the server answers nobody, however patient the process
    /// is.
    pub(super) ends_silence: bool,
}

/// Returns the questions about a process of the server.
pub(super) type Ask = Arc<dyn Fn(u32) -> Questions + Send + Sync>;

/// Asks the next question.
pub(super) type Questions = Box<dyn FnMut() -> Answer>;

/// State of a statement, as the server reports it.
pub(super) enum Answer {
    /// The statement waits, for this long where the server knows.
    Waits(Wait, Option<Duration>),
    /// The statement works.
    Works,
    /// The process cannot be seen, or the question was refused.
    NotSeen,
    /// No answer.
    None,
}

/// Watch over one statement.
pub(super) struct Watcher<'a> {
    watch: &'a Watch,
    /// The process that serves the statement.
    backend: u32,
    began: Instant,
    asking: Option<Asking>,
    told: Option<Wait>,
}

/// Thread that asks; it ends when this is dropped.
struct Asking {
    seen: Arc<Mutex<Seen>>,
    _ended: Sender<()>,
}

/// Last answers of the server.
struct Seen {
    /// Wait of the statement, with its begin.
    waits: Option<(Wait, Instant)>,
    /// Time of the last answer.
    answered: Instant,
    /// Whether the process that serves the statement was found.
    is_found: bool,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(watch: &'a Watch, backend: u32) -> Self {
        Self { watch, backend, began: Instant::now(), asking: None, told: None }
    }

    /// Reports the statement's wait. Returns why the statement is to be given up, if it is.
    pub(super) fn look(&mut self) -> Option<Reason> {
        if self.began.elapsed() < SHORT {
            return None;
        }
        let asking = match &self.asking {
            Some(asking) => asking,
            None => self.asking.insert(Asking::begin(&self.watch.ask, self.backend)?),
        };
        let waiting = {
            let seen = asking.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let silence = seen.answered.elapsed();
            let Watch { is_direct, ends_silence, .. } = self.watch;
            match &seen.waits {
                _ if silence > SILENCE_LIMIT && (*is_direct || *ends_silence || seen.is_found) => {
                    Waiting { wait: Wait::Answer, since: silence }
                }
                Some((wait, since)) => Waiting { wait: wait.clone(), since: since.elapsed() },
                None => return None,
            }
        };
        let is_given_up = is_given_up(&waiting.wait);
        let patience = if is_given_up { SHORT } else { HARMLESS };
        if waiting.since >= patience && !self.has_told(&waiting.wait) {
            tell(&waiting);
            self.told = Some(waiting.wait.clone());
        }
        let is_patient = is_patient() && !(self.watch.ends_silence && waiting.wait == Wait::Answer);
        let is_over = waiting.since > LIMIT && !is_patient;
        (is_over && is_given_up).then_some(Reason::Waits(waiting))
    }

    /// Whether `wait` need not be reported again. Of waits that the server itself ends, one report
    /// is enough.
    fn has_told(&self, wait: &Wait) -> bool {
        match (&self.told, wait) {
            (Some(Wait::Process { .. }), Wait::Process { .. }) => !is_given_up(wait),
            (told, wait) => told.as_ref() == Some(wait),
        }
    }
}

/// Whether a statement with this wait is given up. It is if nothing that the statement itself
/// brought about ends the wait.
fn is_given_up(wait: &Wait) -> bool {
    match wait {
        Wait::Lock { .. } | Wait::Standby { .. } | Wait::Answer => true,
        Wait::Process { event } => {
            event.starts_with("BufferPin") || event.ends_with("ProcSignalBarrier")
        }
    }
}

impl Asking {
    /// Starts the thread; none if the system gives no thread.
    fn begin(ask: &Ask, backend: u32) -> Option<Self> {
        let seen = Seen { waits: None, answered: Instant::now(), is_found: false };
        let seen = Arc::new(Mutex::new(seen));
        let (ended, theirs) = channel();
        let (shared, ask) = (Arc::clone(&seen), Arc::clone(ask));
        let thread = std::thread::Builder::new().name("waits".into());
        thread.spawn(move || keep_asking(ask(backend), &shared, &theirs)).ok()?;
        Some(Self { seen, _ended: ended })
    }
}

/// Asks until the sender of `ended` is dropped.
fn keep_asking(mut question: Questions, seen: &Mutex<Seen>, ended: &Receiver<()>) {
    loop {
        let answer = question();
        seen.lock().unwrap_or_else(PoisonError::into_inner).take(answer);
        if !matches!(ended.recv_timeout(INTERVAL), Err(RecvTimeoutError::Timeout)) {
            return;
        }
    }
}

impl Seen {
    fn take(&mut self, answer: Answer) {
        let now = Instant::now();
        let waits = match answer {
            Answer::None => return,
            Answer::Waits(wait, waited) => {
                self.is_found = true;
                let since = match (waited, self.waits.take()) {
                    (Some(waited), _) => now.checked_sub(waited).unwrap_or(now),
                    (None, Some((was, since))) if was.is_like(&wait) => since,
                    (None, _) => now,
                };
                Some((wait, since))
            }
            Answer::Works => {
                self.is_found = true;
                None
            }
            Answer::NotSeen => None,
        };
        (self.waits, self.answered) = (waits, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of watching a statement for which the server gives `answer` again and
    /// again.
    fn outcome(answer: fn() -> Answer) -> Option<Reason> {
        let ask: Ask = Arc::new(move |_| Box::new(answer));
        let watch = Watch { ask, is_direct: true, ends_silence: false };
        let now = Instant::now();
        let began = now.checked_sub(SHORT).unwrap();
        let mut watcher = Watcher { began, ..Watcher::new(&watch, 4711) };
        // There is time for a second question.
        let until = now + INTERVAL + Duration::from_millis(200);
        loop {
            match watcher.look() {
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
                outcome => return outcome,
            }
        }
    }

    const LONG: Option<Duration> = Some(Duration::from_secs(30));

    #[test]
    fn what_waits_for_somebody_else_is_given_up() {
        fn lock() -> Wait {
            Wait::Lock { kind: "relation".into(), holders: vec![17] }
        }
        let Some(Reason::Waits(waiting)) = outcome(|| Answer::Waits(lock(), LONG)) else {
            panic!("a lock that was waited for since 30 s is waited for")
        };
        assert_eq!(waiting.wait, lock());
        assert!(waiting.since >= LIMIT, "{waiting:?}");
        let told = waiting.to_string();
        assert!(told.contains("a lock (relation) that the server's process 17 holds"), "{told}");
    }

    #[test]
    fn what_works_may_take_as_long_as_it_takes() {
        let answers: [fn() -> Answer; 4] = [
            || Answer::Works,
            || Answer::NotSeen,
            || Answer::None,
            || Answer::Waits(Wait::Process { event: "IPC: CheckpointDone".into() }, LONG),
        ];
        let outcomes = std::thread::scope(|scope| {
            let threads = answers.map(|answer| scope.spawn(move || outcome(answer)));
            threads.map(std::thread::ScopedJoinHandle::join)
        });
        for outcome in outcomes {
            assert_eq!(outcome.unwrap(), None);
        }
    }

    #[test]
    fn a_server_that_answers_nobody_is_given_up_where_that_is_asked_for() {
        for ends_silence in [true, false] {
            // Behind what may be a pooler: the process was never found.
            let ask: Ask = Arc::new(|_| Box::new(|| Answer::None));
            let watch = Watch { ask, is_direct: false, ends_silence };
            let now = Instant::now();
            let silent = now.checked_sub(SILENCE_LIMIT + Duration::from_secs(1)).unwrap();
            let seen = Seen { waits: None, answered: silent, is_found: false };
            let (ended, _theirs) = channel();
            let asking = Some(Asking { seen: Arc::new(Mutex::new(seen)), _ended: ended });
            let began = now.checked_sub(SHORT).unwrap();
            let mut watcher = Watcher { began, asking, ..Watcher::new(&watch, 4711) };
            let reason = watcher.look();
            let is_given_up =
                matches!(&reason, Some(Reason::Waits(waiting)) if waiting.wait == Wait::Answer);
            assert_eq!(is_given_up, ends_silence, "{reason:?}");
        }
    }

    #[test]
    fn a_wait_counts_from_its_first_sight_until_it_changes() {
        let began = Instant::now().checked_sub(Duration::from_secs(9)).unwrap();
        let standby = || Wait::Standby { names: "nobody".into() };
        let mut seen = Seen { waits: Some((standby(), began)), answered: began, is_found: false };
        seen.take(Answer::Waits(standby(), None));
        assert_eq!(seen.waits, Some((standby(), began)));
        // Another lock than before, by the server's clock.
        let lock = || Wait::Lock { kind: "extend".into(), holders: vec![1] };
        seen.take(Answer::Waits(lock(), Some(Duration::from_millis(1))));
        assert!(seen.waits.as_ref().unwrap().1.elapsed() < Duration::from_secs(5));
        seen.take(Answer::None);
        assert_eq!(seen.waits.as_ref().unwrap().0, lock());
        seen.take(Answer::Works);
        assert_eq!((seen.waits, seen.is_found), (None, true));
    }
}
