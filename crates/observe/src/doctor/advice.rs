//! What the fingerprint means for PostgreSQL: rules, each a pure function over facts, and each with
//! its source.

use pgdyno_model::facts::{HostFacts, StorageFacts};
use serde::Serialize;

use super::rules::{OF_HOST, OF_STORAGE};

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Acknowledged data can be lost.
    Danger,
    /// Speed is lost, or what is measured is not what one means to measure.
    Warning,
    /// Worth knowing, or worth a try; whether it pays, a run tells.
    Note,
}

impl Severity {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Danger => "danger",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A rule's word on something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// The rule's name.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What was found, and what follows from it.
    pub found: String,
    /// What to do: commands as they are typed, or words where there is no command.
    pub remedy: Vec<String>,
    /// Who says so.
    pub source: &'static str,
}

/// A rule that could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// The rule's name.
    pub rule: &'static str,
    /// What could not be seen.
    pub why: String,
}

/// What all rules said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Advised {
    /// What to look at, the most important first.
    pub advice: Vec<Advice>,
    /// What was checked and is fine, in a word for each.
    pub fine: Vec<&'static str>,
    /// What applies here and could not be seen.
    pub unseen: Vec<Unseen>,
}

/// What the rules look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    pub(super) host: &'a HostFacts,
    pub(super) storage: &'a StorageFacts,
}

/// One thing that is looked at.
pub(super) struct Rule {
    /// Its name, for `--json`.
    pub(super) name: &'static str,
    /// What is so where nothing is found.
    pub(super) fine: &'static str,
    /// The document that it is taken from, and the section.
    pub(super) source: &'static str,
    pub(super) judge: fn(&Facts<'_>) -> Judged,
}

/// What a rule says.
#[derive(Debug)]
pub(super) enum Judged {
    /// This machine has nothing of the kind.
    Idle,
    Fine,
    Unseen(String),
    Found(Vec<Finding>),
}

#[derive(Debug)]
pub(super) struct Finding {
    severity: Severity,
    found: String,
    remedy: Vec<String>,
}

/// A finding without a remedy.
pub(super) fn finding(severity: Severity, found: impl Into<String>) -> Finding {
    Finding { severity, found: found.into(), remedy: Vec::new() }
}

impl Finding {
    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy.push(remedy.into());
        self
    }
}

impl From<Vec<Finding>> for Judged {
    fn from(found: Vec<Finding>) -> Self {
        if found.is_empty() { Self::Fine } else { Self::Found(found) }
    }
}

impl From<Option<Finding>> for Judged {
    fn from(found: Option<Finding>) -> Self {
        Self::from(Vec::from_iter(found))
    }
}

/// Judges by all rules; where nothing is known of a storage, by those about the machine.
#[must_use]
pub fn advise(host: &HostFacts, storage: Option<&StorageFacts>) -> Advised {
    let nothing = StorageFacts::default();
    let facts = Facts { host, storage: storage.unwrap_or(&nothing) };
    let of_storage = if storage.is_some() { OF_STORAGE } else { &[] };
    let mut all = Advised::default();
    for rule in of_storage.iter().chain(OF_HOST).copied().flatten() {
        match (rule.judge)(&facts) {
            Judged::Idle => {}
            Judged::Fine => all.fine.push(rule.fine),
            Judged::Unseen(why) => all.unseen.push(Unseen { rule: rule.name, why }),
            Judged::Found(findings) => all.advice.extend(findings.into_iter().map(|f| Advice {
                rule: rule.name,
                severity: f.severity,
                found: f.found,
                remedy: f.remedy,
                source: rule.source,
            })),
        }
    }
    all.advice.sort_by_key(|a| a.severity);
    all
}
