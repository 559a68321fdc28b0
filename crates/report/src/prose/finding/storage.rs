//! Sentences on storage and durability.

use pgdyno_audit::{Protection, StorageKind, Switch};

use super::{exact, rounded};

pub(super) fn message(kind: &StorageKind, is_right: bool) -> String {
    match kind {
        StorageKind::Setting { switch, value, .. } if is_right => {
            format!("{} = {value}", name(*switch))
        }
        StorageKind::Setting { switch, varied, .. } => {
            let varied = match varied {
                true => ". The report varies it: where it is off, figures are of another promise",
                false => "",
            };
            format!("{} = off{}{varied}", name(*switch), consequence(*switch))
        }
        StorageKind::BarriersOff { words, protection } => {
            format!("barriers are off (`{words}`){}", without_barriers(protection.as_ref()))
        }
        StorageKind::BarriersOn {} => "barriers are on".to_owned(),
        StorageKind::WriteCache { protection: Some(protection) } => format!(
            "a write cache is on; line {} says that it is protected (`{}`)",
            protection.line, protection.words
        ),
        StorageKind::WriteCache { protection: None } => "a write cache is on, and nothing says \
            that it survives a power loss (battery, capacitors)"
            .to_owned(),
        StorageKind::FlushCeiling {
            ceiling_tps, method, fsync_per_second, clients, tps, ..
        } => {
            let (flushes, ceiling) = (exact(*fsync_per_second), rounded(*ceiling_tps));
            let words = format!(
                "{flushes} flushes/s ({method}) × {clients} clients are at most {ceiling} commits/s"
            );
            let tps = exact(*tps);
            match is_right {
                true => format!("{words}; {tps} tps are below"),
                false => format!(
                    "{words}, but {tps} tps are claimed: commits did not wait, or the probe was of \
                     another storage"
                ),
            }
        }
        StorageKind::ZfsSync { value } if is_right => {
            format!("sync={value}: ZFS flushes what it is asked to")
        }
        StorageKind::ZfsSync { value } => {
            format!("sync={value}: ZFS acknowledges flushes that it did not do")
        }
        StorageKind::ZfsLogbias { value, .. } if is_right => format!("logbias={value}"),
        StorageKind::ZfsLogbias { value, .. } => format!(
            "logbias={value}: each commit's flush writes its blocks to the pool itself and a log \
             device is not used, so that commits take longer than with ZFS as it comes, and the \
             pool is fragmented"
        ),
        StorageKind::Property { property, asked, asked_line, listed, subject } => {
            let subject = match subject.as_str() {
                "" => String::new(),
                subject => format!(" for {subject}"),
            };
            match is_right {
                true => format!("{property}={listed} is asked for and listed{subject}"),
                false => format!(
                    "{property}={asked} is asked for (line {asked_line}), and {property}={listed} \
                     is listed{subject}: which of them the figures were measured with is not known"
                ),
            }
        }
    }
}

fn without_barriers(protection: Option<&Protection>) -> String {
    match protection {
        Some(Protection { line, words }) => format!(
            "; line {line} speaks of `{words}`: without it what was acknowledged is lost with the \
             power"
        ),
        None => ", and nothing says that the caches below survive a power loss: commits are \
            acknowledged that may be in a drive's cache only, and flushes seem faster than they are"
            .to_owned(),
    }
}

fn name(switch: Switch) -> &'static str {
    match switch {
        Switch::Fsync => "fsync",
        Switch::FullPageWrites | Switch::FullPageWritesOnZfs => "full_page_writes",
        Switch::SynchronousCommit => "synchronous_commit",
    }
}

/// Renders what follows from a setting that is off.
fn consequence(switch: Switch) -> &'static str {
    match switch {
        Switch::Fsync => {
            ": what was acknowledged need not be on any disk, so this is not the storage's speed"
        }
        Switch::FullPageWrites => {
            ": a page that a power loss tears is not repaired, and WAL is smaller than it has to \
             be \
             elsewhere"
        }
        Switch::FullPageWritesOnZfs => {
            " on ZFS, which writes no page in place: pages are not torn as long as recordsize is \
             no \
             smaller than a page and nothing below breaks that promise"
        }
        Switch::SynchronousCommit => {
            ": commits wait for no flush, so that the storage's commit path is not under test, and \
             the last ones are lost with the power"
        }
    }
}
