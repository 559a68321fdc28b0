//! The plan of crash tests in words. Touches nothing.

use std::fmt::Write as _;

use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::checks::crash::options;
use pgdyno_model::crash::{CrashOptions, States};
use pgdyno_text::format::counted;

use super::aim::aims;
use super::log_room::describe_log_rooms;
use super::subject::{described, takes_emulated};
use pgdyno_provision::{BenchError, making};

/// Describes a crash test: faults, what each models, rounds, aims, controls, and the steps that
/// make its storages.
///
/// # Errors
/// The programs of the server, or an account to run it as, cannot be found.
pub fn dry_run(resolved: &ResolvedExperiment) -> Result<String, BenchError> {
    let options = options(&resolved.experiment, &resolved.plan)?;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "crash tests of {} (nothing is done: this is the plan)\n",
        described(resolved, &resolved.plan.treatments[0])
    );
    match options.states {
        States::Drawn => rounds(&mut out, options, resolved),
        States::Flushes | States::All => states(&mut out, options),
    }
    let _ = writeln!(
        out,
        "what each session stands on, made anew after every failure; page checksums, WAL segments \
         of 1 MB and max_wal_size = 32MB (two segments at least) unless said otherwise; for faults \
         of the disk an emulated disk takes the loop file's place:"
    );
    out.push_str(&making(resolved)?);
    out.push_str(&describe_log_rooms(resolved));
    Ok(out)
}

/// Describes rounds: what each does, faults, aims and controls.
fn rounds(out: &mut String, options: &CrashOptions, resolved: &ResolvedExperiment) {
    let _ = writeln!(
        out,
        "each round: tables brought back and made durable; {} clients, scale {}, {} with a ledger; \
         a fault within {} at a moment drawn by seed {}; recovery within {}; {} oracles",
        options.clients,
        options.scale,
        options.workload.description(),
        options.load,
        options.seed,
        options.recovery_limit,
        pgdyno_durability::oracles::ORACLES.len()
    );
    for fault in &options.faults {
        let storage = &resolved.experiment.storage[&resolved.plan.treatments[0].storage];
        let emulated = takes_emulated(storage, *fault);
        let aims: Vec<&str> = aims(*fault, emulated).iter().map(|a| a.name()).collect();
        let _ =
            writeln!(out, "\n{fault}, {}: {}", counted(options.rounds, "round"), fault.models());
        let _ = writeln!(out, "  aimed in turn at {}", aims.join(", "));
    }
    let controls = if options.controls {
        "run before the rounds"
    } else {
        "left out: a pass will be called invalid"
    };
    let _ = writeln!(out, "\npositive controls: {controls}\n");
}

/// Describes the states of a recorded stretch.
fn states(out: &mut String, options: &CrashOptions) {
    let within = match options.states {
        States::All => ", then a sample of the states between two flushes",
        States::Drawn | States::Flushes => "",
    };
    let budget =
        options.budget.map_or_else(String::new, |budget| format!(", for {budget} at most"));
    let _ = writeln!(
        out,
        "one stretch of {}: {} clients, scale {}, {} with a ledger, on an emulated disk that \
         records it; then the disk at every flush{within}{budget}; {} at a time, each mounted, \
         recovered within {} and judged by the ledger as it was then\n",
        options.load,
        options.clients,
        options.scale,
        options.workload.description(),
        options.jobs,
        options.recovery_limit,
    );
    let control = "the disk as it was before the load, judged by the whole ledger";
    let controls =
        if options.controls { control } else { "left out: a pass will be called invalid" };
    let _ = writeln!(out, "positive control: {controls}\n");
}
