//! Rules of the doctor: functions from facts to findings.

use pgdyno_model::facts::{BlockDevice, DeviceKind, HostFacts, StorageFacts};

use super::advice::Severity;

/// The facts that rules judge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) host: &'a HostFacts,
    pub(crate) storage: &'a StorageFacts,
}

/// A rule: a pure function over facts, with its source.
pub(crate) struct DoctorRule {
    /// The name, for `--json`.
    pub(crate) name: &'static str,
    /// The statement that holds if the rule finds nothing.
    pub(crate) fine: &'static str,
    /// The document and section that the rule comes from.
    pub(crate) source: &'static str,
    pub(crate) judge: fn(&Facts<'_>) -> Judged,
}

/// A rule's result.
#[derive(Debug)]
pub(crate) enum Judged {
    /// The rule does not apply to this host.
    NotApplicable,
    Fine,
    Unobservable(String),
    Found(Vec<Finding>),
}

#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) found: String,
    pub(crate) remedy: Vec<String>,
}

/// Creates a finding of [`Severity::Danger`] without a remedy.
pub(crate) fn danger(found: impl Into<String>) -> Finding {
    finding(Severity::Danger, found)
}

/// Creates a finding of [`Severity::Warning`] without a remedy.
pub(crate) fn warning(found: impl Into<String>) -> Finding {
    finding(Severity::Warning, found)
}

/// Creates a finding of [`Severity::Note`] without a remedy.
pub(crate) fn note(found: impl Into<String>) -> Finding {
    finding(Severity::Note, found)
}

/// Creates a finding without a remedy.
pub(crate) fn finding(severity: Severity, found: impl Into<String>) -> Finding {
    Finding { severity, found: found.into(), remedy: Vec::new() }
}

impl Finding {
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy.push(remedy.into());
        self
    }
}

impl From<Vec<Finding>> for Judged {
    fn from(found: Vec<Finding>) -> Self {
        if found.is_empty() { Self::Fine } else { Self::Found(found) }
    }
}

impl From<Finding> for Judged {
    fn from(found: Finding) -> Self {
        Self::Found(vec![found])
    }
}

impl From<Option<Finding>> for Judged {
    fn from(found: Option<Finding>) -> Self {
        Self::from(Vec::from_iter(found))
    }
}

impl Facts<'_> {
    /// Returns the kernel setting `name`, as a number.
    pub(crate) fn sysctl(&self, name: &str) -> Option<u64> {
        self.host.settings.sysctl.get(name)?.parse().ok()
    }

    /// Returns the disks of the storage.
    pub(crate) fn disks(&self) -> impl Iterator<Item = &BlockDevice> {
        self.storage.layers().into_iter().filter(|d| d.kind == DeviceKind::Disk)
    }
}

/// Returns the result of a rule whose kernel setting does not exist.
pub(crate) fn no_sysctl(name: &str) -> Judged {
    Judged::Unobservable(format!("the kernel shows no {name}"))
}
