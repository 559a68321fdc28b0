//! Why treatments are not ranked, in words.

use pgdyno_model::format;

use super::phrases::listed;
use crate::analysis::{NotRanked, RunView};

/// Names the treatments that are not ranked, with the reasons; none if all are.
pub(crate) fn not_ranked(view: &RunView) -> Option<String> {
    const SHOWN: usize = 3;
    let named = |label: &str, why: &NotRanked| format!("{label} ({})", reason_not_ranked(why));
    let all: Vec<String> = view
        .treatments
        .iter()
        .filter_map(|t| Some(named(&t.label, t.not_ranked.as_ref()?)))
        .collect();
    (!all.is_empty()).then(|| format!("Not ranked: {}.", listed(&all, SHOWN, "; ")))
}

/// Renders why a treatment is not ranked.
pub(super) fn reason_not_ranked(why: &NotRanked) -> String {
    match why {
        NotRanked::CrashTests(crash) => match crash.broken().filter(|broken| broken.lost > 0) {
            None => format!("its crash tests failed: {}", crash.reason),
            Some(broken) => format!(
                "it lost {} of {} acknowledged commits to the fault {}",
                format::count(broken.lost),
                format::count(broken.acknowledged),
                broken.fault
            ),
        },
        NotRanked::FsyncOff => {
            "fsync is off: its commits are acknowledged before they are on any disk".to_owned()
        }
    }
}
