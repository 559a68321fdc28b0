//! Says why treatments are not ranked.

use pgdyno_text::format;

use super::phrases::listed;
use pgdyno_analysis::{GravestFault, NotRanked, RunView};

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
pub(crate) fn reason_not_ranked(why: &NotRanked) -> String {
    match why {
        NotRanked::CrashTests(crash) => match crash.broken().and_then(loss) {
            None => format!("its crash tests failed: {}", crash.reason),
            Some(loss) => format!("it {loss}"),
        },
        NotRanked::FsyncOff => {
            "fsync is off: its commits are acknowledged before they are on any disk".to_owned()
        }
    }
}

/// Renders a loss: `lost 3 of 1,000 acknowledged commits to the fault power`; none without one.
pub(super) fn loss(fault: &GravestFault) -> Option<String> {
    let (lost, acknowledged) = (format::count(fault.lost), format::count(fault.acknowledged));
    (fault.lost > 0).then(|| {
        format!("lost {lost} of {acknowledged} acknowledged commits to the fault {}", fault.fault)
    })
}
