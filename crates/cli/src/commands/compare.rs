//! `pgdyno compare`: two runs, two treatments, or a run beside imported figures.

use clap::Args;
use pgdyno_results::analysis::across::{self, Asked, Outcome};
use pgdyno_results::analysis::{analyse, beside};
use pgdyno_results::audit::ImportedRun;
use pgdyno_results::gate::{self, Form, Gate};
use pgdyno_results::report;
use pgdyno_results::store::{Store, Stored};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;
use crate::render::to_json;
use crate::shared_options::StoreOption;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// What is compared to: a run, or `RUN:TREATMENT`, by number (`latest:2`) or levels
    /// (`latest:clients=8,storage=xfs`)
    #[arg(value_name = "RUN_A")]
    pub(crate) a: String,
    /// What is compared
    #[arg(value_name = "RUN_B")]
    pub(crate) b: String,
    /// What is compared on purpose: a factor, or what else must be equal (`kernel`, `server build`,
    /// `device`); may be repeated
    #[arg(long, value_name = "FACTOR")]
    pub(crate) by: Vec<String>,
    /// Compare although what must be equal is not
    #[arg(long)]
    pub(crate) force: bool,
    /// Exit with 3 where a change is shown to be this, with 5 where the data do not tell: "tps <
    /// -3%", "p99 > +10%"; several with commas, or repeated
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<String>,
    /// Exit with 3 where a change is not shown to be this: "tps > -3%" asks for proof that nothing
    /// got worse
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) fail_unless: Vec<String>,
    /// Let what is undecided pass (exit code 0) or fail (3)
    #[arg(long, value_enum, value_name = "OUTCOME")]
    pub(crate) undecided: Option<Undecided>,
    /// As JSON
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// As Markdown, for a pull request
    #[arg(long)]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// What becomes of a comparison whose gates are undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Undecided {
    /// Exit with 0
    Pass,
    /// Exit with 3
    Fail,
}

impl Options {
    /// Parses the conditions of `--fail-if`, then those of `--fail-unless`.
    fn gates(&self) -> Result<Vec<Gate>, CommandError> {
        let mut gates = Vec::new();
        for (form, conditions) in
            [(Form::FailIf, &self.fail_if), (Form::FailUnless, &self.fail_unless)]
        {
            for condition in conditions {
                gates.extend(gate::parse(condition, form)?);
            }
        }
        Ok(gates)
    }
}

/// Compares two runs, and judges the gates if there are any.
pub(crate) fn run(options: &Options, context: &Context) -> Result<ExitStatus, CommandError> {
    let gates = options.gates()?;
    let store = options.store.open()?;
    if let Some((import, run)) = find_import(&store, &options.a, &options.b)? {
        if let Some(gate) = gates.first() {
            return Err(CommandError::GateOnImport(gate.form));
        }
        let view = beside::beside(&import, &analyse(&store, &run)?);
        print(&if options.json {
            to_json(&view)?
        } else {
            report::beside(&view, options.markdown)
        });
        return Ok(ExitStatus::Success);
    }
    let asked = Asked { by: options.by.clone(), force: options.force, gates };
    let view = across::compare(&store, &options.a, &options.b, &asked)?;
    print(&if options.json {
        to_json(&view)?
    } else if options.markdown {
        report::compare_markdown(&view)
    } else {
        report::compare_with(&view, context.width(), context.detail())
    });
    Ok(match (view.outcome, options.undecided) {
        (None | Some(Outcome::Passed), _) | (Some(Outcome::Undecided), Some(Undecided::Pass)) => {
            ExitStatus::Success
        }
        (Some(Outcome::Exceeded), _) | (Some(Outcome::Undecided), Some(Undecided::Fail)) => {
            ExitStatus::Exceeded
        }
        (Some(Outcome::Undecided), None) => ExitStatus::Undecided,
    })
}

/// Returns the import among `a` and `b` and the id of the other one, a run. Returns `None` if
/// neither is an import.
fn find_import(
    store: &Store,
    a: &str,
    b: &str,
) -> Result<Option<(ImportedRun, String)>, CommandError> {
    let stored = |name: &str| store.resolve_any(name).ok();
    let (import, other) = match (stored(a), stored(b)) {
        (Some(Stored::Imported(import)), _) => (import, b),
        (_, Some(Stored::Imported(import))) => (import, a),
        _ => return Ok(None),
    };
    Ok(Some((store.import(&import)?, store.resolve(other)?)))
}
