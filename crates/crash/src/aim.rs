//! Aims of faults, since a cut at a random moment rarely meets a commit, a checkpoint or a
//! recovery.

use std::time::Duration;

use pgdyno_model::Fault;
use pgdyno_model::crash::Aim;
use pgdyno_model::target::Target;

use super::repeated::Repeated;
use super::workload::CrashLoad;

/// Returns the aims of the rounds of `fault`, in turn. Emulated disks allow more of them.
pub(super) fn aims(fault: Fault, emulated: bool) -> &'static [Aim] {
    match fault {
        Fault::Power | Fault::EmulatedLie if emulated => &[
            Aim::AfterCheckpoint,
            Aim::WalFlush,
            Aim::Checkpoint,
            Aim::Load,
            Aim::Recovery,
            Aim::SegmentSwitch,
            Aim::Vacuum,
            Aim::CreateIndex,
        ],
        Fault::Process | Fault::Immediate | Fault::Power | Fault::EmulatedLie => &[
            Aim::Load,
            Aim::Checkpoint,
            Aim::AfterCheckpoint,
            Aim::Recovery,
            Aim::SegmentSwitch,
            Aim::Vacuum,
            Aim::CreateIndex,
        ],
        Fault::Backend => &[Aim::Load, Aim::Checkpoint, Aim::Vacuum, Aim::CreateIndex],
        Fault::TornWrite | Fault::IoError | Fault::DiskFull => &[Aim::Request],
        Fault::Plug => &[Aim::Hand],
    }
}

/// Begins on the server the work that `aim` names, and returns it with the longest wait before the
/// fault strikes; none for the load itself.
pub(super) fn begin(aim: Aim, load: &CrashLoad, target: &Target) -> Option<(Repeated, Duration)> {
    // The times are guesses of a small database's: whether the aim was met is told.
    let (statements, within): (&'static [&'static str], _) = match aim {
        Aim::Checkpoint => (&["CHECKPOINT"], 40),
        Aim::SegmentSwitch => (&["SELECT pg_switch_wal()"], 40),
        Aim::Vacuum => (load.vacuum, 40),
        Aim::CreateIndex => (load.create_index, 60),
        Aim::Load
        | Aim::AfterCheckpoint
        | Aim::Recovery
        | Aim::WalFlush
        | Aim::Request
        | Aim::Hand => return None,
    };
    let under_way = match aim {
        Aim::CreateIndex => Repeated::once(statements, target),
        _ => Repeated::begin(statements, Duration::ZERO, target),
    };
    Some((under_way, Duration::from_millis(within)))
}
