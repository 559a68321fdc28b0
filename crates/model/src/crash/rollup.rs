//! From rounds to a fault's verdict.

use serde::{Deserialize, Serialize};

use super::{Fault, FaultPower, Round, Verdict, chance_at_most};

/// All rounds of one fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultOutcome {
    /// The fault.
    pub fault: Fault,
    /// Its worst round's, unless that is a pass of rounds that put nothing under test, or the fault
    /// is planted.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// With how much probability a round would fail at most (95% confidence), where none did.
    pub chance_at_most: Option<f64>,
    /// Whether it was meant to fail: the failure shows that the instrument sees, and breaks no
    /// promise.
    #[serde(default)]
    pub planted: bool,
    /// Its rounds.
    pub rounds: Vec<Round>,
}

impl FaultOutcome {
    /// What `rounds` come to.
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

    /// Judges it as a planted failure: to fail is what it is meant to, and not to fail is
    /// *invalid*.
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
                    "was meant to fail and did not in any of {}: the instrument does not see what was \
                     planted, or it is not there; {}",
                    counted(self.rounds.len()),
                    self.worst()
                );
                Verdict::Invalid
            }
        };
    }

    /// Of how many rounds the worst is, and what was found in it.
    fn worst(&self) -> String {
        let Some(worst) = self.rounds.iter().max_by_key(|r| r.verdict) else {
            return String::new();
        };
        let alike = self.rounds.iter().filter(|r| r.verdict == worst.verdict).count();
        format!("{alike} of {} rounds; round {}: {}", self.rounds.len(), worst.number, worst.reason)
    }

    /// Says how much it means that no round failed.
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
                "{count} of {count} rounds lost nothing, and {counting} of them count: a round fails with a \
                 probability of at most {percent:.0}% (95% confidence)"
            ),
            _ => format!(
                "{count} of {count} rounds lost nothing: a round fails with a probability of at most \
                 {percent:.0}% (95% confidence)"
            ),
        };
        for lack in lacking {
            self.reason.push_str("; ");
            self.reason.push_str(&lack);
        }
    }

    /// What rounds did not put under test, in words.
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
                "no checkpoint completed in {}, so that no flush of a data file was under test there",
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
                "checkpoints were not counted in {}: whether a flush of a data file was under test is not known",
                of_all(uncounted, self.rounds.len())
            ));
        }
        lacking
    }

    /// What its rounds put under test.
    pub fn power(&self) -> FaultPower {
        FaultPower::new(self.fault, &self.rounds)
    }

    /// Whether its failure says something of what was crashed: not so where every server fails.
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

    /// Age of the oldest one lost (milliseconds).
    pub fn oldest_lost_ms(&self) -> Option<f64> {
        self.rounds.iter().filter_map(|r| r.oldest_lost_ms).reduce(f64::max)
    }

    /// Median over the rounds of the age of each one's oldest loss (milliseconds); a round that lost
    /// nothing has 0. None if no round lost anything.
    pub fn median_lost_ms(&self) -> Option<f64> {
        self.oldest_lost_ms()?;
        median(self.rounds.iter().map(|r| r.oldest_lost_ms.unwrap_or(0.0)).collect())
    }

    /// The longest recovery (milliseconds).
    pub fn recovery_ms(&self) -> Option<f64> {
        self.rounds.iter().filter_map(|r| r.recovery_ms).reduce(f64::max)
    }
}

/// Median over rounds of the time that the mounts after the power cut took (milliseconds), those of
/// a round's filesystems together. None if no round has one.
pub fn median_mount_ms(rounds: &[&Round]) -> Option<f64> {
    let times = rounds.iter().filter(|round| !round.filesystems.is_empty());
    median(times.map(|round| round.filesystems.iter().map(|f| f.mount_ms).sum()).collect())
}

/// Median over rounds of the time that fsck took (milliseconds), for a round's filesystems together.
/// None if it was not run in any round.
pub fn median_fsck_ms(rounds: &[&Round]) -> Option<f64> {
    let of = |round: &&Round| {
        let times: Vec<f64> = round.filesystems.iter().filter_map(|f| f.fsck.ms()).collect();
        (!times.is_empty()).then(|| times.iter().sum())
    };
    median(rounds.iter().filter_map(of).collect())
}

/// Median of `values`; none without any.
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
    /// What was planted.
    pub name: String,
    /// The fault whose failures it shows to be seen; none for one of the session as a whole.
    #[serde(default)]
    pub fault: Option<Fault>,
    /// Whether it was seen.
    pub seen: bool,
    /// What came of the round.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
}
