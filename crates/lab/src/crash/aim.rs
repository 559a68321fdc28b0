//! What a fault is aimed at: a cut at a random moment rarely meets what matters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use pgdyno_host::postgres::control;
use pgdyno_model::Fault;
use pgdyno_model::crash::Aim;
use pgdyno_model::target::Target;

/// What the rounds of `fault` are aimed at, in turn; more can be where the disks are emulated.
pub(super) fn aims(fault: Fault, emulated: bool) -> &'static [Aim] {
    match fault {
        Fault::Power | Fault::LyingDisk if emulated => &[
            Aim::Load,
            Aim::WalFlush,
            Aim::Checkpoint,
            Aim::Recovery,
            Aim::SegmentSwitch,
            Aim::Vacuum,
            Aim::CreateIndex,
        ],
        Fault::Process | Fault::Immediate | Fault::Power | Fault::LyingDisk => {
            &[Aim::Load, Aim::Checkpoint, Aim::Recovery, Aim::SegmentSwitch, Aim::Vacuum, Aim::CreateIndex]
        }
        Fault::Backend => &[Aim::Load, Aim::Checkpoint, Aim::Vacuum, Aim::CreateIndex],
        Fault::TornWrite | Fault::IoError | Fault::DiskFull => &[Aim::Request],
        Fault::Plug => &[Aim::Hand],
    }
}

/// What is under way on the server when a fault strikes.
pub(super) struct UnderWay {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl UnderWay {
    /// Begins what `aim` names, and says how long at most to wait before the fault strikes; nothing for the load itself.
    pub(super) fn begin(aim: Aim, target: &Target) -> Option<(Self, Duration)> {
        // The times are guesses of a small database's: whether the aim was met is told.
        let (sql, over_and_over, within) = match aim {
            Aim::Checkpoint => ("CHECKPOINT", true, 40),
            Aim::SegmentSwitch => ("SELECT pg_switch_wal()", true, 40),
            Aim::Vacuum => {
                ("VACUUM pgbench_accounts, pgbench_tellers, pgbench_branches, pgdyno_token", true, 40)
            }
            Aim::CreateIndex => ("CREATE INDEX pgdyno_aim ON pgbench_accounts (abalance, aid)", false, 60),
            Aim::Load | Aim::Recovery | Aim::WalFlush | Aim::Request | Aim::Hand => return None,
        };
        let ended = Arc::new(AtomicBool::new(false));
        let (told, target) = (Arc::clone(&ended), target.clone());
        let thread = std::thread::Builder::new().name("crash-aim".into()).spawn(move || {
            if let Ok(mut client) = control::connect(&target) {
                // Until the server is gone.
                while client.batch_execute(sql).is_ok() && over_and_over {}
            }
            told.store(true, Ordering::Relaxed);
        });
        Some((Self { ended, thread: thread.ok() }, Duration::from_millis(within)))
    }

    /// Whether it is over.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        // The server is gone by now, and with it the connection.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
