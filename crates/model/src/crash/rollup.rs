//! From rounds to a fault's verdict.

use serde::{Deserialize, Serialize};

use super::{Fault, FaultPower, Round, Verdict, chance_at_most};

/// All rounds of one fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultOutcome {
    /// The fault.
    pub fault: Fault,
    /// Verdict of the worst round. Differs from it where rounds passed without putting anything
    /// under test, and for a planted fault.
    pub verdict: Verdict,
    /// Reason for the verdict.
    pub reason: String,
    /// Highest probability with which a round fails (0 to 1, 95% confidence), where none did.
    pub chance_at_most: Option<f64>,
    /// Whether the fault was meant to fail: its failure shows that the instrument sees, and breaks
    /// no promise.
    #[serde(default)]
    pub planted: bool,
    /// All rounds, in the order in which they ran.
    pub rounds: Vec<Round>,
}

impl FaultOutcome {
    /// Derives the verdict of `fault` from its `rounds`.
    ///
    /// A pass is bounded by the rounds that put a flush of data files and a commit under test;
    /// without any such round it is *unknown*. Rounds that did not count them are taken to have
    /// done so, and the reason says it.
    pub fn new(fault: Fault, rounds: Vec<Round>) -> Self {
        let worst = rounds.iter().max_by_key(|r| r.verdict);
        let verdict = worst.map_or(Verdict::Unknown, |r| r.verdict);
        let mut outcome = Self {
            fault,
            verdict,
            reason: "no round was completed".to_owned(),
            chance_at_most: None,
            planted: false,
            rounds,
        };
        match verdict {
            _ if outcome.rounds.is_empty() => {}
            Verdict::Pass | Verdict::BoundedLoss => outcome.bound(),
            _ => outcome.reason = outcome.worst(),
        }
        if fault.is_planted() {
            outcome.plant();
        }
        outcome
    }

    /// Judges the fault as a planted one: a failure is expected, and a pass is *invalid*.
    pub(super) fn plant(&mut self) {
        if self.planted {
            return;
        }
        self.planted = true;
        self.chance_at_most = None;
        if self.rounds.is_empty() {
            return;
        }
        self.verdict = match self.verdict.failing() {
            Some(failing) => Verdict::AsPlanted(failing),
            None => {
                self.reason = format!(
                    "was meant to fail and did not in any of {}: the instrument does not see what \
                     was planted, or it is not there; {}",
                    counted(self.rounds.len()),
                    self.worst()
                );
                Verdict::Invalid
            }
        };
    }

    /// Returns the worst finding and how many rounds share it, in words.
    fn worst(&self) -> String {
        let Some(worst) = self.rounds.iter().max_by_key(|r| r.verdict) else {
            return String::new();
        };
        let alike = self.rounds.iter().filter(|r| r.verdict == worst.verdict).count();
        format!("{alike} of {} rounds; round {}: {}", self.rounds.len(), worst.number, worst.reason)
    }

    /// Sets verdict and reason of rounds none of which failed, with the bound that they support.
    fn bound(&mut self) {
        let count = self.rounds.len();
        let counting = if self.fault.tests_storage() { self.power().rounds } else { count };
        let lacking = self.lacking();
        if counting == 0 {
            self.reason = format!(
                "nothing that a storage could have skipped was under test: {}",
                lacking.join(", ")
            );
            if self.verdict == Verdict::BoundedLoss {
                self.reason = format!("{}; {}", self.reason, self.worst());
            }
            self.verdict = Verdict::Unknown;
            return;
        }
        self.chance_at_most = chance_at_most(counting as u64);
        let percent = self.chance_at_most.unwrap_or(1.0) * 100.0;
        self.reason = match self.verdict {
            Verdict::BoundedLoss if counting < count => {
                format!("{}; {counting} of {count} rounds count", self.worst())
            }
            Verdict::BoundedLoss => self.worst(),
            _ if counting < count => format!(
                "{count} of {count} rounds lost nothing, and {counting} of them count: a round \
                 fails with a probability of at most {percent:.0}% (95% confidence)"
            ),
            _ => format!(
                "{count} of {count} rounds lost nothing: a round fails with a probability of at \
                 most {percent:.0}% (95% confidence)"
            ),
        };
        for lack in lacking {
            self.reason.push_str("; ");
            self.reason.push_str(&lack);
        }
    }

    /// Returns what the rounds left untested, one phrase for each gap.
    fn lacking(&self) -> Vec<String> {
        if !self.fault.tests_storage() {
            return Vec::new();
        }
        let rounds =
            |is: &dyn Fn(&Round) -> bool| self.rounds.iter().filter(|round| is(round)).count();
        let mut lacking = Vec::new();
        let without = rounds(&|round| round.power.lacks_checkpoint());
        if without > 0 {
            lacking.push(format!(
                "no checkpoint completed in {}, so that no flush of a data file was under test \
                 there",
                of_all(without, self.rounds.len())
            ));
        }
        let empty =
            rounds(&|round| !round.power.lacks_checkpoint() && !round.power.counts(self.fault));
        if empty > 0 {
            lacking.push(format!(
                "no acknowledged commit depended on the last flush before the fault in {}",
                of_all(empty, self.rounds.len())
            ));
        }
        let uncounted = rounds(&|round| round.power.checkpoints.is_none());
        if uncounted > 0 {
            lacking.push(format!(
                "checkpoints were not counted in {}: whether a flush of a data file was under test \
                 is not known",
                of_all(uncounted, self.rounds.len())
            ));
        }
        lacking
    }

    /// Returns how much the rounds put under test.
    pub fn power(&self) -> FaultPower {
        FaultPower::new(self.fault, &self.rounds)
    }

    /// Whether a failure says something about the server; a planted fault fails on every server.
    pub fn says_something_of_the_server(&self) -> bool {
        !self.fault.is_planted()
    }

    /// Transactions acknowledged in all rounds (count).
    pub fn acknowledged(&self) -> u64 {
        self.rounds.iter().map(|r| r.acknowledged).sum()
    }

    /// Acknowledged transactions that are missing, in all rounds (count).
    pub fn lost(&self) -> u64 {
        self.rounds.iter().map(|r| r.lost).sum()
    }

    /// Age of the oldest lost transaction at the fault (milliseconds); none if none was lost.
    pub fn oldest_lost_ms(&self) -> Option<f64> {
        self.rounds.iter().filter_map(|r| r.oldest_lost_ms).reduce(f64::max)
    }

    /// Median over the rounds of each one's oldest loss (milliseconds). A round that lost nothing
    /// counts as 0. None if no round lost anything.
    pub fn median_lost_ms(&self) -> Option<f64> {
        self.oldest_lost_ms()?;
        median(self.rounds.iter().map(|r| r.oldest_lost_ms.unwrap_or(0.0)).collect())
    }

    /// The longest recovery (milliseconds).
    pub fn recovery_ms(&self) -> Option<f64> {
        self.rounds.iter().filter_map(|r| r.recovery_ms).reduce(f64::max)
    }
}

/// Median over rounds of the time that mounting took after the power cut (milliseconds). A round's
/// filesystems count together. None if no round mounted any.
pub fn median_mount_ms(rounds: &[&Round]) -> Option<f64> {
    let times = rounds.iter().filter(|round| !round.filesystems.is_empty());
    median(times.map(|round| round.filesystems.iter().map(|f| f.mount_ms).sum()).collect())
}

/// Median over rounds of the time that fsck took (milliseconds). A round's filesystems count
/// together. None if no round ran it.
pub fn median_fsck_ms(rounds: &[&Round]) -> Option<f64> {
    let of = |round: &&Round| {
        let times: Vec<f64> = round.filesystems.iter().filter_map(|f| f.fsck.ms()).collect();
        (!times.is_empty()).then(|| times.iter().sum())
    };
    median(rounds.iter().filter_map(of).collect())
}

/// Returns the median of `values`; none if there are none.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    let is_odd = values.len() % 2 == 1;
    Some(if is_odd { upper } else { f64::midpoint(values[middle - 1], upper) })
}

fn counted(rounds: usize) -> String {
    if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") }
}

fn of_all(some: usize, all: usize) -> String {
    if some == all {
        format!("any of {}", counted(all))
    } else {
        format!("{some} of {}", counted(all))
    }
}

/// A round that must fail, to show that the instrument sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Control {
    /// Name of the planted failure.
    pub name: String,
    /// Fault whose failures the control shows to be seen; none if it stands for the whole session.
    pub fault: Option<Fault>,
    /// Whether the instrument saw the planted failure.
    pub seen: bool,
    /// Verdict of the control's round.
    pub verdict: Verdict,
    /// Reason for the verdict.
    pub reason: String,
}
