//! Watches how far the server says that its write-ahead log is written and flushed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgdyno_connect::control;
use pgdyno_model::target::Target;

/// Time between looks: finer than any bound of asynchronous commit, and no load.
const INTERVAL: Duration = Duration::from_millis(10);

/// WAL positions that the server reported, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    /// Before it was asked: what was acknowledged until then lies before `inserted`.
    asked: Instant,
    inserted: u64,
    flushed: u64,
    /// When the answer was there: what lies before `flushed` was durable by then, says the server.
    answered: Instant,
}

/// WAL that the server had reported as flushed when a fault struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flushed {
    /// WAL before this position was flushed.
    pub(super) position: u64,
    /// Commits that were acknowledged before this instant lie before that position; none if no look
    /// shows one.
    pub(super) covers_until: Option<Instant>,
}

/// Asks the server over and over, by reads that write no WAL of their own.
pub(super) struct WalWatcher {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Sample>>>,
}

impl WalWatcher {
    pub(super) fn start(target: &Target) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, target) = (Arc::clone(&stop), target.clone());
        let thread = std::thread::Builder::new().name("crash-watch".into()).spawn(move || {
            let sql = "SELECT pg_catalog.pg_current_wal_insert_lsn()::text, \
                       pg_catalog.pg_current_wal_flush_lsn()::text";
            let mut samples = Vec::new();
            let Ok(mut client) = control::connect_to_own(&target) else { return samples };
            while !told.load(Ordering::Relaxed) {
                let asked = Instant::now();
                let Ok(row) = client.query_one(sql, &[]) else { break };
                let answered = Instant::now();
                let position = |column| row.try_get(column).ok().and_then(parse_lsn);
                if let (Some(inserted), Some(flushed)) = (position(0), position(1)) {
                    samples.push(Sample { asked, inserted, flushed, answered });
                }
                std::thread::sleep(INTERVAL);
            }
            samples
        });
        Self { stop, thread: thread.ok() }
    }

    /// Ends it, and says what had been promised at `struck`; nothing if there was no look before
    /// that.
    pub(super) fn finish(mut self, struck: Instant) -> Option<Flushed> {
        promised(&self.end(), struck)
    }

    fn end(&mut self) -> Vec<Sample> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for WalWatcher {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the WAL that `samples` show as flushed at `struck`.
fn promised(samples: &[Sample], struck: Instant) -> Option<Flushed> {
    let before = || samples.iter().filter(|sample| sample.answered <= struck);
    let position = before().map(|sample| sample.flushed).max()?;
    let covered = before().filter(|sample| sample.inserted <= position);
    Some(Flushed { position, covers_until: covered.map(|sample| sample.asked).max() })
}

/// `16/B374D848` as a number.
pub(super) fn parse_lsn(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    Some(u64::from_str_radix(high, 16).ok()? << 32 | u64::from_str_radix(low, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_lsn_is_a_number() {
        assert_eq!(parse_lsn("16/B374D848"), Some(0x16_B374_D848));
        assert_eq!(parse_lsn("16"), None);
    }

    #[test]
    fn commits_are_promised_once_a_later_look_finds_their_wal_flushed() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let sample = |ms, inserted, flushed| Sample {
            asked: at(ms),
            inserted,
            flushed,
            answered: at(ms + 1),
        };
        let samples =
            [sample(10, 100, 50), sample(20, 200, 120), sample(30, 300, 180), sample(40, 400, 400)];
        assert_eq!(promised(&samples, at(5)), None);
        let first = Flushed { position: 50, covers_until: None };
        assert_eq!(promised(&samples, at(15)), Some(first));
        // What was acknowledged before 10 ms lies before 100, and 180 was flushed at 31 ms.
        let third = Flushed { position: 180, covers_until: Some(at(10)) };
        assert_eq!(promised(&samples, at(31)), Some(third));
        let last = Flushed { position: 400, covers_until: Some(at(40)) };
        assert_eq!(promised(&samples, at(60)), Some(last));
        assert_eq!(
            promised(&samples, at(40)),
            Some(third),
            "an answer that came after the fault is none"
        );
    }
}
