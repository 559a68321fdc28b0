//! Why treatments are not ranked, in words.

use pgdyno_model::format;
use serde::{Serialize, Serializer};

use super::phrases::listed;
use crate::analysis::{NotRanked, RunView};

/// Names the treatments that are not ranked, with the reasons; none if all are.
pub(crate) fn not_ranked(view: &RunView) -> Option<String> {
    const SHOWN: usize = 3;
    let named = |label: &str, why: &NotRanked| format!("{label} ({})", phrase(why));
    let all: Vec<String> = view
        .treatments
        .iter()
        .filter_map(|t| Some(named(&t.label, t.not_ranked.as_ref()?)))
        .collect();
    (!all.is_empty()).then(|| format!("Not ranked: {}.", listed(&all, SHOWN, "; ")))
}

fn phrase(why: &NotRanked) -> String {
    match why {
        NotRanked::CrashTestsFailed(reason) => format!("its crash tests failed: {reason}"),
        NotRanked::Lost { lost, acknowledged, fault } => format!(
            "it lost {} of {} acknowledged commits to the fault {fault}",
            format::count(*lost),
            format::count(*acknowledged)
        ),
        NotRanked::FsyncOff => {
            "fsync is off: its commits are acknowledged before they are on any disk".to_owned()
        }
    }
}

impl Serialize for NotRanked {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&phrase(self))
    }
}
