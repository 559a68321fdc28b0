//! Crash tests: what is broken on purpose, and what is said of what was found.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::facts::{HostFacts, StorageFacts};
use crate::ledger::Token;
use crate::units::{Epoch, Span};

/// Something that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// SIGKILL to the postmaster and its children.
    Process,
    /// `pg_ctl stop -m immediate`.
    Immediate,
    /// SIGKILL to one backend.
    Backend,
    /// The filesystem's volatile state goes as with the power.
    Power,
    /// A disk that acknowledges flushes that it did not do, and then loses power.
    LyingDisk,
    /// A write of which a part only reached the disk when the power went.
    TornWrite,
    /// A read, write or flush that fails with EIO.
    IoError,
    /// A filesystem that has no room left.
    DiskFull,
    /// Nothing is injected: somebody pulls the plug.
    Plug,
}

impl Fault {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Process,
        Self::Immediate,
        Self::Backend,
        Self::Power,
        Self::LyingDisk,
        Self::TornWrite,
        Self::IoError,
        Self::DiskFull,
        Self::Plug,
    ];
    /// Their names, as files and options have them.
    pub const NAMES: &[&str] = &[
        "process",
        "immediate",
        "backend",
        "power",
        "lying-disk",
        "torn-write",
        "io-error",
        "disk-full",
        "plug",
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let at = Self::ALL.iter().position(|f| *f == self);
        at.map_or("", |at| Self::NAMES[at])
    }

    /// The one of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|f| f.name() == name)
    }

    /// What may be lost by it, and what cannot.
    #[must_use]
    pub fn models(self) -> &'static str {
        match self {
            Self::Process => {
                "the server's processes die; the kernel and its caches live: says nothing of the storage"
            }
            Self::Immediate => "the server ends without a checkpoint; nothing that it wrote is lost",
            Self::Backend => "one backend dies; the server throws its shared memory away and recovers",
            Self::Power => {
                "what the kernel had not made durable is lost, and a server that waited for it must not have \
                 acknowledged; a drive's own cache is not modelled unless the disk is an emulated one"
            }
            Self::LyingDisk => {
                "the disk acknowledges flushes and keeps the data in its cache, which the power loss takes"
            }
            Self::TornWrite => {
                "the power goes in the middle of a checkpoint's write of a data page: its first sectors are on the disk"
            }
            Self::IoError => {
                "the disk answers one flush, or one write of WAL or of a data page, with EIO; the power goes afterwards"
            }
            Self::DiskFull => {
                "the filesystem of PGDATA or pg_wal has no room left, until the server has run into that"
            }
            Self::Plug => "whatever the machine loses when its plug is pulled",
        }
    }

    /// Whether it takes a filesystem that pgdyno made.
    #[must_use]
    pub fn needs_filesystem(self) -> bool {
        matches!(self, Self::Power | Self::LyingDisk | Self::TornWrite | Self::IoError | Self::DiskFull)
    }

    /// Whether it takes a disk that pgdyno emulates.
    #[must_use]
    pub fn needs_emulated_disk(self) -> bool {
        matches!(self, Self::LyingDisk | Self::TornWrite | Self::IoError | Self::DiskFull)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// In what way a server or its storage failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failing {
    /// Acknowledged transactions are missing.
    Lost,
    /// What is there is not what was written.
    Corrupt,
    /// The server does not recover.
    WillNotStart,
    /// The filesystem cannot be mounted.
    WillNotMount,
}

/// What is said of a round, a fault, a session: the later of two outweighs the earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Every oracle ran and found nothing wrong. No proof: see [`chance_at_most`].
    Pass,
    /// Acknowledged transactions are missing, as many as the settings promise at worst.
    BoundedLoss,
    /// Something could not be checked.
    #[default]
    Unknown,
    /// The instrument did not see what it must see, so that its silence means nothing.
    Invalid,
    /// A promise was broken.
    Fail(Failing),
}

impl Verdict {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Pass,
        Self::BoundedLoss,
        Self::Unknown,
        Self::Invalid,
        Self::Fail(Failing::Lost),
        Self::Fail(Failing::Corrupt),
        Self::Fail(Failing::WillNotStart),
        Self::Fail(Failing::WillNotMount),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::BoundedLoss => "bounded-loss",
            Self::Unknown => "unknown",
            Self::Invalid => "invalid",
            Self::Fail(Failing::Lost) => "FAIL (lost)",
            Self::Fail(Failing::Corrupt) => "FAIL (corrupt)",
            Self::Fail(Failing::WillNotStart) => "FAIL (will not start)",
            Self::Fail(Failing::WillNotMount) => "FAIL (will not mount)",
        }
    }

    /// Whether a promise was broken.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Fail(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Verdict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let found = Self::ALL.iter().copied().find(|v| v.name() == name);
        found.ok_or_else(|| serde::de::Error::custom(format!("`{name}` is no verdict")))
    }
}

/// What came of one oracle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome", content = "found")]
pub enum CheckOutcome {
    /// It ran and found nothing wrong.
    Passed,
    /// It ran and found loss that the settings allow.
    Allowed(String),
    /// It ran and found something wrong.
    Failed(String),
    /// It could not run: never a pass.
    CouldNotRun(String),
    /// There is nothing that it could be asked about.
    NotApplicable(String),
}

/// One oracle and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What it looks at.
    pub name: String,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: CheckOutcome,
}

/// During what a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// The load, at a moment drawn by the seed.
    Load,
    /// A checkpoint's writes.
    Checkpoint,
    /// A switch of WAL segments.
    SegmentSwitch,
    /// VACUUM of the tables under load.
    Vacuum,
    /// CREATE INDEX on a table under load.
    CreateIndex,
    /// Recovery from a first crash: the fault strikes twice.
    Recovery,
    /// The time between a write of WAL and the flush that makes it durable, on an emulated disk.
    WalFlush,
    /// A request of the disk's, as the fault says.
    Request,
    /// Whatever the one who pulls the plug aims at.
    Hand,
}

impl Aim {
    /// In words, after "during".
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Checkpoint => "a checkpoint",
            Self::SegmentSwitch => "a WAL segment switch",
            Self::Vacuum => "VACUUM",
            Self::CreateIndex => "CREATE INDEX",
            Self::Recovery => "recovery",
            Self::WalFlush => "the time between a WAL write and its flush",
            Self::Request => "a request of the disk's",
            Self::Hand => "load, by hand",
        }
    }
}

/// Under what a disk lies or fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Under {
    /// PGDATA and pg_wal, on however many disks.
    #[default]
    Both,
    /// PGDATA only; pg_wal lies on an honest disk of its own.
    Data,
    /// pg_wal only; PGDATA lies on an honest disk of its own.
    Wal,
}

/// A transaction that was acknowledged and is missing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// Its name.
    pub token: Token,
    /// From its acknowledgement to the fault (milliseconds).
    pub age_ms: f64,
}

/// One round: load, fault, recovery, verification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Its number among the fault's, from 1.
    pub number: u32,
    /// What repeats it.
    pub seed: u64,
    /// During what the fault struck.
    pub aim: Aim,
    /// From the load's beginning to the fault (milliseconds).
    pub struck_after_ms: f64,
    /// Transactions acknowledged (count).
    pub acknowledged: u64,
    /// Transactions whose COMMIT was in flight (count).
    pub in_doubt: u64,
    /// Acknowledged transactions that are missing (count).
    pub lost: u64,
    /// The first of them, oldest first.
    pub tokens: Vec<Lost>,
    /// Age of the oldest of them at the fault (milliseconds).
    pub oldest_lost_ms: Option<f64>,
    /// From the end of the fault until the server took connections (milliseconds); none if it did not.
    pub recovery_ms: Option<f64>,
    /// What is said of it.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// Every oracle.
    pub checks: Vec<Check>,
    /// What the fault did, where that is not all in its name.
    pub notes: Vec<String>,
    /// Lines of the server's log that bear on it.
    pub log: String,
    /// Where what was found is kept, for one that failed.
    pub kept: Option<String>,
}

/// All rounds of one fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultOutcome {
    /// The fault.
    pub fault: Fault,
    /// Its worst round's.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// With how much probability a round would fail at most (95% confidence), where none did.
    pub chance_at_most: Option<f64>,
    /// Its rounds.
    pub rounds: Vec<Round>,
}

impl FaultOutcome {
    /// What `rounds` come to.
    #[must_use]
    pub fn of(fault: Fault, rounds: Vec<Round>) -> Self {
        let worst = rounds.iter().max_by_key(|r| r.verdict);
        let verdict = worst.map_or(Verdict::Unknown, |r| r.verdict);
        let count = rounds.len();
        let alike = rounds.iter().filter(|r| r.verdict == verdict).count();
        let bound = match verdict {
            Verdict::Pass | Verdict::BoundedLoss => chance_at_most(count as u64),
            _ => None,
        };
        let reason = match (verdict, worst) {
            (_, None) => "no round was completed".to_owned(),
            (Verdict::Pass, _) => match bound {
                Some(bound) => format!(
                    "{count} of {count} rounds lost nothing: a round fails with a probability of at most {:.0}% (95% confidence)",
                    bound * 100.0
                ),
                None => "nothing was lost".to_owned(),
            },
            (_, Some(worst)) => {
                format!("{alike} of {count} rounds; round {}: {}", worst.number, worst.reason)
            }
        };
        Self { fault, verdict, reason, chance_at_most: bound, rounds }
    }

    /// Transactions acknowledged in all rounds (count).
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.rounds.iter().map(|r| r.acknowledged).sum()
    }

    /// Acknowledged transactions that are missing, in all rounds (count).
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.rounds.iter().map(|r| r.lost).sum()
    }

    /// Age of the oldest one lost (milliseconds).
    #[must_use]
    pub fn oldest_lost_ms(&self) -> Option<f64> {
        self.rounds.iter().filter_map(|r| r.oldest_lost_ms).reduce(f64::max)
    }

    /// The longest recovery (milliseconds).
    #[must_use]
    pub fn recovery_ms(&self) -> Option<f64> {
        self.rounds.iter().filter_map(|r| r.recovery_ms).reduce(f64::max)
    }
}

/// The largest probability with which a round can fail although none of `rounds` did, at 95% confidence: the p with
/// (1 − p)ⁿ = 0.05, which for many rounds is the *rule of three*, 3/n (Hanley and Lippman-Hand, "If nothing goes wrong,
/// is everything all right?", JAMA 249, 1983). It is about rounds like these: same load, same moments, same faults.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn chance_at_most(rounds: u64) -> Option<f64> {
    (rounds > 0).then(|| 1.0 - 0.05_f64.powf(1.0 / rounds as f64))
}

/// A round that must fail, to show that the instrument sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// What was planted.
    pub name: String,
    /// Whether it was seen.
    pub seen: bool,
    /// What came of the round.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
}

/// What a session of crash tests does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrashOptions {
    /// What is broken, one after the other.
    pub faults: Vec<Fault>,
    /// Rounds of each.
    pub rounds: u32,
    /// Connections.
    pub clients: u32,
    /// The data set's size: TPC-B's, 100,000 accounts each.
    pub scale: u32,
    /// How long load is offered at most before a fault strikes.
    pub load: Span,
    /// How long the server may take to come back.
    pub recovery_limit: Span,
    /// Where all moments are drawn from.
    pub seed: u64,
    /// Under what a disk lies or fails, where the fault is one of those.
    #[serde(default)]
    pub under: Under,
    /// Whether positive controls are run.
    pub controls: bool,
}

impl Default for CrashOptions {
    fn default() -> Self {
        Self {
            faults: vec![Fault::Process],
            rounds: 3,
            clients: 4,
            scale: 1,
            load: Span::from_secs(2),
            recovery_limit: Span::from_secs(120),
            seed: 1,
            under: Under::Both,
            controls: true,
        }
    }
}

/// What came of a session of crash tests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrashOutcome {
    /// What was asked.
    pub options: CrashOptions,
    /// The server's settings that were asked for, by name.
    pub settings: std::collections::BTreeMap<String, String>,
    /// The server's version; empty if none came up.
    pub server_version: String,
    /// The worst of the faults' verdicts; without a failure among them, *invalid* if a control was not seen.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// By fault.
    pub faults: Vec<FaultOutcome>,
    /// The positive controls.
    pub controls: Vec<Control>,
    /// What weakens the verdict: controls that were left out, and the like.
    pub notes: Vec<String>,
    /// Whether everything was done that was to be; not so after a signal.
    pub complete: bool,
}

impl CrashOutcome {
    /// The session's verdict and its reason, from its faults and controls.
    pub fn conclude(&mut self) {
        let worst = self.faults.iter().max_by_key(|f| f.verdict);
        let blind: Vec<&Control> = self.controls.iter().filter(|c| !c.seen).collect();
        (self.verdict, self.reason) = match worst {
            None => (Verdict::Unknown, "no fault was tried to the end".into()),
            Some(worst) if worst.verdict.is_failure() || blind.is_empty() => {
                (worst.verdict, format!("{}: {}", worst.fault, worst.reason))
            }
            Some(_) => {
                let names: Vec<&str> = blind.iter().map(|c| c.name.as_str()).collect();
                (
                    Verdict::Invalid,
                    format!("the instrument did not see what was planted: {}", names.join(", ")),
                )
            }
        };
        if !self.complete && matches!(self.verdict, Verdict::Pass | Verdict::BoundedLoss) {
            self.reason = format!("not done to the end; so far {}: {}", self.verdict, self.reason);
            self.verdict = Verdict::Unknown;
        }
    }
}

/// A session of crash tests in the store.
#[derive(Clone, Debug, PartialEq)]
pub struct CrashRecord {
    /// Its name in the store: `crash`, start and four letters drawn at random.
    pub id: String,
    /// The run that it belongs to; none for a session by itself.
    pub run: Option<String>,
    /// The index of the run's treatment that was crashed.
    pub treatment: Option<usize>,
    /// What was crashed, in a few words.
    pub name: String,
    /// When it began.
    pub started_at: Epoch,
    /// pgdyno's version.
    pub pgdyno_version: String,
    /// The machine.
    pub host: HostFacts,
    /// The storage of PGDATA.
    pub storage: StorageFacts,
    /// What came of it.
    pub outcome: CrashOutcome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for fault in Fault::ALL {
            assert_eq!(Fault::parse(fault.name()), Some(*fault));
        }
        for verdict in Verdict::ALL {
            let json = serde_json::to_string(verdict).unwrap();
            assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), *verdict);
        }
    }

    #[test]
    fn rounds_without_a_failure_bound_its_probability_and_prove_nothing() {
        assert_eq!(chance_at_most(0), None);
        assert!((chance_at_most(1).unwrap() - 0.95).abs() < 1e-9);
        assert!((chance_at_most(300).unwrap() - 0.01).abs() < 0.0001, "the rule of three");
    }
}
