//! `pgdyno compare`: two runs, two treatments, or a run beside imported figures.

use clap::Args;
use pgdyno_analysis::analyse;
use pgdyno_analysis::comparison::imported::{find_import, side_by_side};
use pgdyno_analysis::comparison::runs::{CompareOptions, GateState, Outcome};
use pgdyno_analysis::gate::{self, Form, Gate};
use pgdyno_report::{self as report, CompareReport, SideBySideReport};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;
use crate::shared_options::StoreOption;
use crate::suggestions::RUNS;
use pgdyno_report::json::json;

/// Options on what must be equal on both sides of a comparison.
#[derive(Args, Clone, Debug)]
pub(crate) struct EqualityOptions {
    /// Compare by FACTOR: allow it to differ between the two sides. FACTOR is a factor of the
    /// experiment or another thing that must be equal (`kernel`, `server build`, `device`). May be
    /// repeated
    #[arg(long, value_name = "FACTOR")]
    pub(crate) by: Vec<String>,
    /// Compare even if things differ that must be equal
    #[arg(long)]
    pub(crate) force: bool,
    /// Judge two runs by earlier runs of their own experiment only, not by repeated runs of others
    /// on the host (`pgdyno noise`)
    #[arg(long)]
    pub(crate) own_runs: bool,
}

impl EqualityOptions {
    /// Returns the options of a comparison with `gates`.
    pub(super) fn compare_options(&self, gates: Vec<Gate>) -> CompareOptions {
        let Self { by, force, own_runs } = self.clone();
        CompareOptions { by, force, own_runs_only: own_runs, gates }
    }
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno compare latest:1 latest:2  Compare two treatments of the newest run
  pgdyno compare base head --by 'server build' --fail-if 'tps < -3%'
                                    Fail if the second build is shown to be slower by more than 3%

See also: pgdyno-run(1), pgdyno-show(1)")]
pub(crate) struct CompareArgs {
    /// The baseline: a run, or `RUN:TREATMENT`, by number (`latest:2`) or levels
    /// (`latest:clients=8,storage=xfs`)
    #[arg(value_name = "RUN_A", value_parser = RUNS, hide_possible_values = true)]
    pub(crate) a: String,
    /// The run or treatment to compare with it
    #[arg(value_name = "RUN_B", value_parser = RUNS, hide_possible_values = true)]
    pub(crate) b: String,
    #[command(flatten)]
    pub(crate) equality: EqualityOptions,
    /// Exit with 3 if the data show this change, with 5 if they are not enough to decide: "tps <
    /// -3%", "p99 > +10%". Several are separated by commas or given by repeating the option
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<String>,
    /// Exit with 3 if the data do not show this: "tps > -3%" demands evidence that throughput did
    /// not fall by 3% or more
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) fail_unless: Vec<String>,
    /// Exit with 0 (pass) or 3 (fail) if the data are not enough to decide. Neither passes what
    /// `--fail-unless` asks for and the data do not show, nor a side without a completed trial
    #[arg(long, value_enum, value_name = "OUTCOME")]
    pub(crate) undecided: Option<Undecided>,
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Print Markdown, for a pull request
    #[arg(long)]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// How a comparison ends whose gates are undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Undecided {
    /// Exit with 0
    Pass,
    /// Exit with 3
    Fail,
}

/// Parses the conditions of `--fail-if`, then those of `--fail-unless`.
pub(super) fn gates(fail_if: &[String], fail_unless: &[String]) -> Result<Vec<Gate>, CommandError> {
    let mut gates = Vec::new();
    for (form, conditions) in [(Form::FailIf, fail_if), (Form::FailUnless, fail_unless)] {
        for condition in conditions {
            gates.extend(gate::parse(condition, form)?);
        }
    }
    Ok(gates)
}

/// Compares two runs, and judges the gates if there are any.
pub(crate) fn run(options: &CompareArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let gates = gates(&options.fail_if, &options.fail_unless)?;
    let store = options.store.open()?;
    if let Some((import, run)) = find_import(&store, &options.a, &options.b)? {
        if let Some(gate) = gates.first() {
            let option = gate.form.option();
            return Err(CommandError::new(format!(
                "cannot judge `{option}` beside imported figures: nothing is computed between the \
                 two"
            )));
        }
        let view = side_by_side(&import, &analyse(&store, &run)?);
        print(&if options.json {
            json(&SideBySideReport(&view))?
        } else {
            report::side_by_side(&view, options.markdown)
        });
        return Ok(ExitStatus::Success);
    }
    let asked = options.equality.compare_options(gates);
    let compared = CompareReport::read(&store, &options.a, &options.b, &asked)?;
    print(&if options.json {
        json(&compared)?
    } else if options.markdown {
        report::compare_markdown(&compared)
    } else {
        report::compare(&compared, context.width(), context.detail())
    });
    let view = compared.view;
    // A side without a completed trial is no lack of data: what it runs may not work at all.
    let works = !view.gates.iter().any(|gate| gate.state == GateState::NoTrial);
    Ok(match (view.outcome, options.undecided) {
        (None | Some(Outcome::Passed), _) => ExitStatus::Success,
        (Some(Outcome::Undecided), Some(Undecided::Pass)) if works => ExitStatus::Success,
        (Some(Outcome::Exceeded), _) | (Some(Outcome::Undecided), Some(Undecided::Fail)) => {
            ExitStatus::Exceeded
        }
        (Some(Outcome::Undecided), _) => ExitStatus::Undecided,
    })
}
