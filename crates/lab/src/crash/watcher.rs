//! Watches how far the server's write-ahead log is acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use pgdyno_host::postgres::control;
use pgdyno_model::target::Target;

/// Time between looks: rare enough not to be a load.
const INTERVAL: Duration = Duration::from_millis(50);

/// Commits a small WAL record over and over, and keeps where the last one lay whose commit was acknowledged: what is
/// before it is durable, whatever its owner was told.
pub(super) struct Watcher {
    position: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    pub(super) fn start(target: &Target) -> Self {
        let (position, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, told, target) = (Arc::clone(&position), Arc::clone(&stop), target.clone());
        let thread = std::thread::Builder::new().name("crash-watch".into()).spawn(move || {
            // One statement is one transaction: it returns when its commit is acknowledged, and tells where its record
            // lies, before that commit.
            let sql = "SELECT pg_catalog.pg_logical_emit_message(true, 'pgdyno', '')::text";
            let Ok(mut client) = control::connect(&target) else { return };
            while !told.load(Ordering::Relaxed) {
                let Ok(row) = client.query_one(sql, &[]) else { return };
                if let Some(at) = row.try_get(0).ok().and_then(parse_lsn) {
                    seen.store(at, Ordering::Relaxed);
                }
                std::thread::sleep(INTERVAL);
            }
        });
        Self { position, stop, thread: thread.ok() }
    }

    /// Ends it; the position, if there was one.
    pub(super) fn finish(mut self) -> Option<u64> {
        self.end();
        Some(self.position.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.end();
    }
}

/// `16/B374D848` as a number.
pub(super) fn parse_lsn(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    Some(u64::from_str_radix(high, 16).ok()? << 32 | u64::from_str_radix(low, 16).ok()?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_lsn_is_a_number() {
        assert_eq!(super::parse_lsn("16/B374D848"), Some(0x16_B374_D848));
        assert_eq!(super::parse_lsn("16"), None);
    }
}
