//! Reasons for which two sides cannot be compared.

use super::Unequal;
use super::equal::{GENERATOR, MACHINE, belongs_to_machine};
use pgdyno_model::Advice;
use pgdyno_store::StoreError;

/// Reason for which two sides cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CompareError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot find treatment `{given}` in run {run}: {why}")]
    NoSuchTreatment {
        run: String,
        given: String,
        why: String,
        /// The run's treatments, each with its number.
        known: Vec<String>,
    },
    /// `--by` names nothing that can differ.
    #[error(
        "cannot compare by `{by}`: it is no factor of either run, and nothing that must be equal"
    )]
    NoSuchFactor {
        by: String,
        /// Names that can be given, nearest first.
        known: Vec<String>,
    },
    /// Both sides are the same.
    #[error("cannot compare run {run} with itself")]
    Itself { run: String, factors: Vec<String> },
    /// No treatment of one side matches one of the other.
    #[error(
        "cannot compare {a} with {b}: no treatment of one matches one of the other\n  \
         A has {}\n  B has {}",
        of_a.join("; "),
        of_b.join("; ")
    )]
    NoPairs {
        /// Side A's run.
        a: String,
        /// Side B's run.
        b: String,
        of_a: Vec<String>,
        of_b: Vec<String>,
    },
    #[error("cannot compare {a} with {b}: what must be equal is not{}", listed(unequal))]
    Unequal {
        /// Side A's run.
        a: String,
        /// Side B's run.
        b: String,
        unequal: Vec<Unequal>,
        /// Whether the runs ran on different machines.
        on_two_hosts: bool,
    },
}

fn listed(unequal: &[Unequal]) -> String {
    unequal.iter().map(|u| format!("\n  {}\n    A: {}\n    B: {}", u.what, u.a, u.b)).collect()
}

impl CompareError {
    /// Returns the names that `--by` takes for the differences that forbid the comparison; none for
    /// another error.
    pub fn comparable_by(&self) -> Option<Vec<&str>> {
        let Self::Unequal { unequal, on_two_hosts, .. } = self else { return None };
        let name = |what| if *on_two_hosts && belongs_to_machine(what) { MACHINE } else { what };
        let mut names: Vec<&str> = Vec::new();
        for what in unequal.iter().map(|u| name(u.what.as_str())) {
            if what != GENERATOR && !names.contains(&what) {
                names.push(what);
            }
        }
        Some(names)
    }
}

impl Advice for CompareError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Store(e) => e.help(),
            Self::NoSuchTreatment { known, .. } => Some(format!(
                "give its number or levels, as in RUN:2 or RUN:{}; its treatments are {}",
                "clients=8,storage=xfs",
                known.join("; ")
            )),
            Self::NoSuchFactor { known, .. } => {
                Some(format!("what can be named is {}", known.join(", ")))
            }
            Self::Itself { run, factors } => Some(match factors.first() {
                Some(factor) => format!(
                    "name the factor that is compared (`--by {factor}`), or two treatments \
                     (`{run}:1 {run}:2`)"
                ),
                None => "name another run".to_owned(),
            }),
            Self::NoPairs { .. } => Some(
                "name the factor that is compared (`--by storage`), or one treatment of each run \
                 (`RUN:2`)"
                    .into(),
            ),
            Self::Unequal { .. } => {
                let names = self.comparable_by().unwrap_or_default();
                let by = names.first().map_or_else(String::new, |what| {
                    let quote = if what.contains(' ') { "\"" } else { "" };
                    format!("`--by {quote}{what}{quote}` where that is what is compared; ")
                });
                Some(format!("{by}`--force` compares all the same, and says so"))
            }
        }
    }
}
