//! Notes trials in which the processors may have been the limit, not the disk.

use pgdyno_analysis::IdleDevice;
use pgdyno_model::{AnswerKind, Plan};
use pgdyno_text::format;

use super::finding::machine_use;

/// Says in how many trials the disk was not under test, in a run that asks about a disk.
pub(super) fn idle_device(found: &IdleDevice, plan: &Plan) -> Option<String> {
    let first = found.first.as_ref().filter(|_| asks_about_a_disk(plan))?;
    Some(format!(
        "In {} of {} the processors may have been the limit. In the first of them {}.",
        found.idle,
        format::counted(found.judged as u64, "trial"),
        machine_use(first),
    ))
}

/// Returns whether the question is about a disk: storages or their settings vary, or one is judged.
fn asks_about_a_disk(plan: &Plan) -> bool {
    let is_of_disk = |factor: &String| factor == "storage" || factor.starts_with("device.");
    plan.factors.iter().any(is_of_disk)
        || plan.answer.as_ref().is_some_and(|answer| answer.kind == AnswerKind::Acceptance)
}
