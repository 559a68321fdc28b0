//! A torn write: a page of a checkpoint reaches the medium in part, and there the power goes.
//!
//! A torn page shows only if recovery needs the page as it was. It does not where WAL since the
//! redo position has an image of the page, or begins the page anew. With checksums there is such an
//! image even under full_page_writes=off, if the page's first change was a hint bit. So hint bits
//! are set and a checkpoint completes first. Then a write is chosen by the two versions of its page
//! ([`Selector::needed_from`]): the disk has the older one and is sent the newer one.

use std::time::Duration;

use pgdyno_connect::control;
use pgdyno_emulated_disk::{
    Content, Control, Cut, CutFacts, Effect, Hits, Rule, Selector, TearUnit,
};

use super::arming::{PATIENCE, Rig, change_pages, drawn, needed_pages};
use crate::missed::{Met, Missed};
use crate::repeated::Repeated;
use pgdyno_provision::{BenchError, Context};

/// How many writes are passed over at most, try by try. A slow load changes few pages.
const AMONG: [i64; 4] = [24, 8, 3, 1];

pub(super) fn inject(rig: Rig<'_>) -> Met {
    let Rig { mut disks, target, load, draws, context, .. } = rig;
    let Some(data) = disks.first_mut() else { return Ok(Err(Missed::NoEmulatedDisk)) };
    let unit = if draws.unit() < 0.5 { TearUnit::Bytes512 } else { TearUnit::Bytes4096 };
    let effect = Effect::TearAndCut(unit, Cut::default());
    let mut client = control::connect_to_own(&target)?;
    for among in AMONG {
        let on = needed_pages(&mut client, load)?;
        let hits = Hits::Nth(1 + drawn(draws, among));
        let rule = data.arm(&Rule { on, hits, effect })?;
        change_pages(draws, context)?;
        if let Some(cut) = wait_for_cut(data, &Repeated::once(&["CHECKPOINT"], &target), context)? {
            return Ok(Ok(vec![format!(
                "write {} tore within a data page at {} bytes, over an older version that recovery \
                 needs; {} cached writes were lost with it",
                cut.at_write,
                unit.bytes(),
                cut.dropped
            )]));
        }
        data.disarm(rule)?;
    }
    // Where pages are written elsewhere each time, the older version stays whole.
    let on = Selector::writes_of(Content::DataPage);
    data.arm(&Rule { on, hits: Hits::Nth(1 + drawn(draws, 8)), effect })?;
    let checkpoints = Repeated::begin(&["CHECKPOINT"], Duration::ZERO, &target);
    Ok(match wait_for_cut(data, &checkpoints, context)? {
        Some(cut) => Ok(vec![format!(
            "write {} tore within a data page at {} bytes; in {} checkpoints the filesystem wrote \
             no page over its older version, so that nothing which was durable is torn",
            cut.at_write,
            unit.bytes(),
            AMONG.len()
        )]),
        None => Err(Missed::NoPageWritten { within: PATIENCE }),
    })
}

/// Waits until the power has gone, or `checkpoints` are over.
fn wait_for_cut(
    disk: &mut Control,
    checkpoints: &Repeated,
    context: Context<'_>,
) -> Result<Option<CutFacts>, BenchError> {
    let cut = context.poll(PATIENCE, Duration::ZERO, || {
        // Asked before: a checkpoint that ended by the cut is no miss.
        let is_over = checkpoints.has_ended();
        let cut = disk.wait_for_cut(Duration::from_millis(10), context.stop)?;
        Ok((cut.is_some() || is_over).then_some(cut))
    });
    cut.map(Option::flatten)
}
