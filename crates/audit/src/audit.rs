//! The audit of one report.

use crate::document::Document;
use crate::finding::{Checked, Finding, NotUnderstood, Severity, WhyNot};
use crate::recognise::{Recognised, recognise};
use crate::rules;

/// Audit of one report.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// Findings, the most serious first.
    pub findings: Vec<Finding>,
    /// Checks that held.
    pub checked: Vec<Checked>,
    /// Recognised figures.
    pub recognised: Recognised,
    /// Lines that could not be read.
    pub not_understood: Vec<NotUnderstood>,
}

impl Audit {
    /// Audits the report that `bytes` hold; none if they are no text. What `name` ends in says what
    /// the text does not: that it is HTML.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Option<Self> {
        let document = Document::read(name, bytes)?;
        let (evidence, mut not_understood) = recognise(&document);
        if document.garbled {
            let (line, quoted, why) = (1, String::new(), WhyNot::Garbled);
            not_understood.insert(0, NotUnderstood { line, quoted, why });
        }
        let (mut findings, checked) = rules::judge(&evidence);
        for finding in &mut findings {
            document.quote(finding.line()).clone_into(&mut finding.quoted);
        }
        Some(Self { findings, checked, recognised: evidence.recognised, not_understood })
    }

    /// Whether anything found is serious.
    pub fn is_serious(&self) -> bool {
        self.findings.iter().any(|f| f.severity == Severity::Serious)
    }
}
