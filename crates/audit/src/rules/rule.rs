//! A rule, and its verdicts.

use crate::finding::{Checked, Confidence, Finding, Kind, Severity};
use crate::recognise::Evidence;

/// Rule by its name in findings. docs/audit.md has its tolerance and its source.
pub(super) struct AuditRule {
    pub(super) name: &'static str,
    pub(super) judge: fn(&Evidence, &mut Verdicts),
}

/// Verdicts of the rules so far.
#[derive(Default)]
pub(super) struct Verdicts {
    /// Rule that judges.
    pub(super) rule: &'static str,
    pub(super) findings: Vec<Finding>,
    pub(super) checked: Vec<Checked>,
}

impl Verdicts {
    /// Reports a fault on `lines`, the most telling first.
    pub(super) fn report(
        &mut self,
        severity: Severity,
        sure: Confidence,
        lines: impl Into<Vec<usize>>,
        kind: impl Into<Kind>,
    ) {
        self.judge(Some((severity, sure)), lines, kind);
    }

    /// Reports that the figures on `lines` are right.
    pub(super) fn right(&mut self, lines: impl Into<Vec<usize>>, kind: impl Into<Kind>) {
        self.judge(None, lines, kind);
    }

    /// Reports either of the two, by whether there is a `fault`.
    pub(super) fn judge(
        &mut self,
        fault: Option<(Severity, Confidence)>,
        lines: impl Into<Vec<usize>>,
        kind: impl Into<Kind>,
    ) {
        let (rule, lines, kind) = (self.rule, lines.into(), kind.into());
        match fault {
            Some((severity, sure)) => {
                let quoted = String::new();
                self.findings.push(Finding { rule, severity, sure, lines, quoted, kind });
            }
            None => self.checked.push(Checked { rule, lines, kind }),
        }
    }
}

/// Clocks and the edges of a run take up to this share, beside rounding.
pub(super) const EDGES: f64 = 0.01;

/// Figures that disagree by more than this share were not merely counted at different times.
pub(super) const SERIOUS: f64 = 0.05;

/// Weight of figures that disagree by this share.
pub(super) fn weight(share: f64) -> Severity {
    if share.abs() > SERIOUS { Severity::Serious } else { Severity::Warning }
}
