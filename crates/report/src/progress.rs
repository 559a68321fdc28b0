//! Words of progress events.

use std::time::Duration;

use pgdyno_model::live::Outlook;
use pgdyno_model::load_strategy::LoadStrategy;
use pgdyno_model::progress::{Activity, EndReason, Notice, RoundStage, StrategyChoice, Warning};
use pgdyno_model::units::Bytes;
use pgdyno_text::format::counted;

use crate::prose;

/// Renders a time that is left: `1:05`, `2:03:04`.
pub fn clock(left: Duration) -> String {
    let seconds = left.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// Returns how the comparisons of a run stand, and how many more blocks they may take.
pub fn outlook(outlook: &Outlook) -> String {
    let Outlook { decided, comparisons, blocks_left, ceiling, .. } = outlook;
    let so_far = format!("{decided} of {} decided", counted(*comparisons, "comparison"));
    let until = match blocks_left {
        _ if decided >= comparisons => return so_far,
        Some(left) => format!("about {}", counted(*left, "more block")),
        None => "blocks left not known yet".to_owned(),
    };
    format!("{so_far}; {until} (at most {ceiling} in all)")
}

/// Returns a notice as one line.
pub fn notice(notice: &Notice) -> String {
    match notice {
        Notice::Script(text)
        | Notice::Swept(text)
        | Notice::Connection(text)
        | Notice::Waits(text)
        | Notice::ExternalServer(text) => text.clone(),
        Notice::StatementsWithoutPercentiles { script, kept, statements } => format!(
            "{script}: percentiles are kept of the first {kept} statements of a workload, not of \
             all {statements}"
        ),
        Notice::OverwritesDevice { storage, device } => {
            format!("storage {storage} overwrites {device}")
        }
        Notice::SuspectStorage { storage, finding } => {
            format!("storage `{storage}` is suspect: {finding}")
        }
        Notice::NotTrimmed { storage, reason } => {
            format!("storage `{storage}` is not probed after fstrim: {reason}")
        }
        Notice::FetchingPrograms { wanted, version } => format!(
            "no PostgreSQL {} found here: fetching a small build of {version} (no lz4, zstd, \
             io_uring)",
            wanted.map_or_else(|| "server".to_owned(), |v| v.to_string())
        ),
        Notice::SeedDrawn(seed) => format!(
            "seed {seed} was drawn for order and load; `--set experiment.seed={seed}` repeats them"
        ),
        Notice::Conditioning(why) => prose::conditioning(why),
        Notice::RunEnds(EndReason::Decided { blocks }) => {
            format!("the run ends: everything is decided after {blocks} blocks")
        }
        Notice::RunEnds(EndReason::BudgetSpent { budget }) => {
            format!("the run ends: another block does not fit into the budget of {budget}")
        }
        Notice::TriedAgain { left } => {
            format!("the trial is tried again, as `generators.retry` says ({left} more at most)")
        }
        Notice::DataCopied { data, storage, bytes, files, reflinks } => {
            let how = match reflinks {
                0 => String::new(),
                n => format!(", {n} of them by reflink"),
            };
            format!("{data} was copied onto {storage}: {bytes} in {files} files{how}")
        }
        Notice::NoTemplate { data, needed, directory } => format!(
            "no copy of {data} is kept, so that it is loaded anew: no {needed} free in {}",
            directory.display()
        ),
        Notice::TemplateKept { data } => format!(
            "a copy of {data} is kept for later runs; `pgdyno clean --templates` removes it"
        ),
        Notice::RoomForLoad { data, needed, available: Some(available) } => {
            format!("{data}: takes about {needed}; {available} are free")
        }
        Notice::RoomForLoad { data, needed, available: None } => format!(
            "{data}: takes about {needed}; how much the server has free cannot be seen from here"
        ),
        Notice::LoadContinues { data, pieces } => {
            format!("going on with {data}: {pieces} pieces are loaded already")
        }
        Notice::Strategy { .. } => strategy(notice),
        Notice::KeySettings { table, settings } => {
            format!("{table}: its key is built with {}", settings.join(", "))
        }
        Notice::WalWriterKeptAwake => {
            "the server's WAL writer is kept awake by empty logical messages (docs/workloads.md)"
                .to_owned()
        }
        Notice::SessionBegunAgain { session } => {
            format!("session {session} ended without a restart of the machine: it is begun anew")
        }
        Notice::StretchKept { session } => format!(
            "the recorded load and what was judged are kept: `pgdyno crash --resume {session}` \
             goes on, `pgdyno clean --crashes` removes them"
        ),
        Notice::StretchResumed { session, judged } => format!(
            "going on with the load that {session} recorded; judged already: {}",
            counted(*judged, "state")
        ),
    }
}

/// Returns how a table is loaded, and why.
fn strategy(notice: &Notice) -> String {
    let Notice::Strategy { table, strategy, chosen_by, partitions, connections, cores } = notice
    else {
        return String::new();
    };
    let how = match strategy {
        LoadStrategy::Freeze => "one COPY with FREEZE",
        LoadStrategy::Chunks => "several COPY without FREEZE, chunk by chunk",
        LoadStrategy::Partitions => "partitions side by side, each by COPY with FREEZE",
    };
    match strategy {
        LoadStrategy::Partitions => {
            format!("{table}: {partitions} {how}, over {connections} connections")
        }
        _ if *chosen_by == StrategyChoice::AfterSchema => format!(
            "{table}: {how}, over {connections} connections (its `after_schema` may have made it a \
             table that takes no FREEZE)"
        ),
        LoadStrategy::Freeze if *chosen_by == StrategyChoice::Cores => format!(
            "{table}: {how} ({cores} cores, {connections} connections: several into one table \
             would lose FREEZE, write WAL and pay a vacuum)"
        ),
        LoadStrategy::Chunks if *chosen_by == StrategyChoice::Cores => format!(
            "{table}: {how}, over {connections} connections ({cores} cores outweigh the vacuum \
             that follows)"
        ),
        LoadStrategy::Freeze | LoadStrategy::Chunks => {
            format!("{table}: {how}, over {connections} connections, as asked")
        }
    }
}

/// Returns a warning as one line.
pub fn warning(warning: &Warning) -> String {
    match warning {
        Warning::NotTakenDown(text) => text.clone(),
        Warning::StorageUnavailable { storage, reason } => {
            format!("storage {storage} is not available here, its trials are left out: {reason}")
        }
        Warning::StorageFailed { storage, reason } => {
            format!("every trial on {storage} will fail: {reason}")
        }
        Warning::NoiseUnread { reason } => format!(
            "what earlier runs tell of this host's noise does not count, since it cannot be read: \
             {reason}"
        ),
        Warning::NotConditioned { reason } => {
            format!("the trial that is not measured failed, and the run goes on: {reason}")
        }
        Warning::NotCrashed { subject, reason } => {
            format!("{subject} could not be crashed: {reason}")
        }
        Warning::CrashTestsCutShort { reason } => format!("not done to the end: {reason}"),
        Warning::RemainsNotKept { fault, round, reason } => {
            format!("what round {round} of {fault} left could not be kept: {reason}")
        }
        Warning::StretchNotKept { reason } => format!(
            "the recorded load and what is judged cannot be kept, and an interrupted session would \
             have to begin anew: {reason}"
        ),
        Warning::StretchNotResumed { reason } => format!("{reason}; the load is recorded anew"),
        Warning::NotWatchable { folder, reason } => format!(
            "the run goes on, but cannot be watched or asked to stop through {}: {reason}",
            folder.display()
        ),
        Warning::PullThePlug { session } => format!(
            "session {session}: pull the plug while load runs; when the machine is back, start the \
             same command again"
        ),
    }
}

/// Returns an activity as one line.
pub fn activity(activity: &Activity) -> String {
    match activity {
        Activity::MakingStorage { storage } => format!("making storage {storage}"),
        Activity::TakingDownStorage { storage } => format!("taking down storage {storage}"),
        Activity::MakingCluster { version, storage } => {
            format!("making a cluster of PostgreSQL {version} on {storage}")
        }
        Activity::FetchingPostgres { version } => format!("fetching PostgreSQL {version}"),
        Activity::UnpackingPostgres { version } => format!("unpacking PostgreSQL {version}"),
        Activity::CopyingData { data, storage } => format!("copying {data} onto {storage}"),
        Activity::MakingTemplate { data } => format!("keeping a copy of {data}"),
        Activity::Conditioning => "running a trial that is not measured".to_owned(),
        Activity::MeasuringFsyncRate { storage } => {
            format!("measuring the fsync rate of {storage}")
        }
        Activity::Probing { storage: Some(storage), test } => format!("probing {storage}: {test}"),
        Activity::Probing { storage: None, test } => test.clone(),
        Activity::TryingRate { rate, confirming, objective } => {
            let doing = if *confirming { "confirming" } else { "trying" };
            format!("{doing} {rate:.1} transactions/s: does that keep {objective}?")
        }
        Activity::AwaitingServer { server } => {
            format!("waiting for {server} to take connections again, to put back what was changed")
        }
        Activity::AwaitingReplica { server, behind } => {
            let behind = Bytes(u64::try_from(*behind).unwrap_or(0));
            format!("waiting for the replica {server}, which has {behind} of WAL to replay")
        }
        Activity::CheckingConsistency { workload } => {
            format!("checking the conditions of {workload}")
        }
        Activity::MakingTestBed { subject } => {
            format!("crash: making storage and cluster for {subject}")
        }
        Activity::CrashRound { subject, fault, round, stage } => {
            let round = match round {
                Some((number, of)) => format!("round {number} of {of}"),
                None => "positive control".to_owned(),
            };
            format!("crash {subject}: {fault}, {round}: {}", round_stage(*stage))
        }
        Activity::JudgingStates { subject, judged, total, boundaries } => {
            let kind = if *boundaries { "flush boundaries" } else { "states between flushes" };
            format!("crash {subject}: judged {judged} of {total} {kind}")
        }
        Activity::AwaitingPlug { session, tps, elapsed } => {
            format!("session {session}: {tps:.0} tps, {} s: pull the plug", elapsed.as_secs())
        }
        Activity::JudgingReturn { session, stage } => {
            format!("session {session}: the machine is back: {}", round_stage(*stage))
        }
    }
}

fn round_stage(stage: RoundStage) -> &'static str {
    match stage {
        RoundStage::Load => "load",
        RoundStage::Fault => "the fault is due",
        RoundStage::Recovery => "recovery",
        RoundStage::Verification => "verification",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_left_read_like_a_clock() {
        assert_eq!(clock(Duration::from_secs(65)), "1:05");
        assert_eq!(clock(Duration::from_secs(7384)), "2:03:04");
    }

    #[test]
    fn an_outlook_tells_what_is_known() {
        let early =
            Outlook { blocks: 2, decided: 0, comparisons: 1, blocks_left: None, ceiling: 30 };
        assert_eq!(
            outlook(&early),
            "0 of 1 comparison decided; blocks left not known yet (at most 30 in all)"
        );
        let later = Outlook { decided: 1, comparisons: 3, blocks_left: Some(1), ..early };
        assert_eq!(
            outlook(&later),
            "1 of 3 comparisons decided; about 1 more block (at most 30 in all)"
        );
        let done = Outlook { decided: 3, ..later };
        assert_eq!(outlook(&done), "3 of 3 comparisons decided");
    }
}
