//! A ratio that prose claims of two configurations, against their figures.

use serde_json::json;

use super::rule::{Rule, Verdicts, exact};
use crate::finding::Confidence::Certain;
use crate::finding::Severity::Warning;
use crate::recognise::Evidence;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "claimed-ratio",
    looks_for: "`A is 25% faster than B`, `A is twice as fast as B`, `A reaches 75% of B`, where A and B are rows of a table of tps or labels \
                of runs, and the tps of A over that of B, in this direction, is another",
    source: "arithmetic",
    judge,
}];

fn judge(evidence: &Evidence, verdicts: &mut Verdicts) {
    for claim in &evidence.claims {
        let (of, to, said) = (&claim.of, &claim.to, &claim.words);
        let ratio = claim.computed();
        let lines = [claim.line, of.line, to.line];
        let computed = json!({ "ratio": ratio, "claimed": said, "of": of.name, "to": to.name });
        let words = format!(
            "`{}` ÷ `{}`, {} ÷ {} tps, is {}",
            of.name,
            to.name,
            exact(of.tps),
            exact(to.tps),
            exact(ratio)
        );
        if claim.is_right() {
            verdicts.right(&lines, format!("{words}, as is said ({said})"), computed);
        } else {
            verdicts.found(Warning, Certain, &lines, format!("{words}, not `{said}`"), computed);
        }
    }
}
