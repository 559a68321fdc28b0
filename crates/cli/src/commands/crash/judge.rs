//! `pgdyno crash judge`: judges one state of a kept failure again.

use std::path::PathBuf;

use clap::Args;
use pgdyno_crash::{KeptState, StateJudgement, judge_again};
use pgdyno_lab::DiskLog;

use crate::context::Context;
use crate::error::{CommandError, unless_interrupted};
use crate::exit_status::ExitStatus;
use crate::output::print;
use crate::progress::ProgressOption;
use crate::shared_options::TrustOption;
use crate::state_options::StateOptions;

#[derive(Args, Debug)]
pub(crate) struct JudgeOptions {
    /// The folder that the report calls `kept`
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    #[command(flatten)]
    state: StateOptions,
    /// Judge it by what was acknowledged before this event of the log [default: the first flush
    /// that covers what the state lacks]
    #[arg(long, value_name = "N")]
    before: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trust: TrustOption,
    #[command(flatten)]
    progress: ProgressOption,
}

/// Judges one state by every oracle.
///
/// # Errors
/// Nothing is kept in the folder, or the state cannot be shown.
pub(crate) fn run(options: &JudgeOptions, context: &Context) -> Result<ExitStatus, CommandError> {
    let log = DiskLog::read(&options.folder.join("disk-log"))?;
    let kept = KeptState {
        folder: options.folder.clone(),
        state: options.state.state(log.newest()),
        before: options.before,
    };
    let trust = options.trust.trust();
    let judged = context.with_progress(options.progress, |progress| {
        judge_again(&kept, trust, progress, context.stop())
    });
    let said = "interrupted before the state was judged; nothing is left behind";
    let Some(judged) = unless_interrupted(judged, said)? else {
        return Ok(ExitStatus::Interrupted);
    };
    let json = || serde_json::to_string_pretty(&judged).map(|text| format!("{text}\n"));
    print(&if options.json { json()? } else { render(&judged) });
    Ok(judged.verdict.into())
}

fn render(judged: &StateJudgement) -> String {
    let mut words = format!("{}: {}\n", judged.verdict, judged.reason);
    words.push_str(&match judged.before {
        Some(before) => format!("  after a cut before event {before}\n"),
        None => "  after a cut at the end\n".into(),
    });
    if !judged.lost.is_empty() {
        let lost: Vec<String> = judged.lost.iter().map(ToString::to_string).collect();
        words.push_str(&format!("  missing: {}\n", lost.join(" ")));
    }
    judged.log.lines().for_each(|line| words.push_str(&format!("  | {line}\n")));
    words
}
