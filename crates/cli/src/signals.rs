//! Signals: the first asks for an orderly end, the second ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use signal_hook::iterator::Signals;

use crate::error::CommandError;

/// Signals that ask for the end.
const ENDING: [i32; 2] = [SIGINT, SIGTERM];

/// Whether a signal came that asks for the end.
static CAME: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Returns the flag that the first signal sets.
pub(crate) fn flag() -> Arc<AtomicBool> {
    Arc::clone(&CAME)
}

/// Handles signals from now on. A closed terminal (SIGHUP) asks for the end too, unless the command
/// `outlives_terminal`.
///
/// A signal that was ignored when the process started stays ignored: `nohup` starts programs so,
/// and a shell's script what it leaves in the background.
///
/// # Errors
/// A handler or its thread cannot be installed.
pub(crate) fn handle(outlives_terminal: bool) -> Result<(), CommandError> {
    let failed =
        |source: std::io::Error| CommandError::with_source("cannot handle signals", source);
    let stop = flag();
    let mut ending = ENDING.to_vec();
    if outlives_terminal {
        // A handler, since programs that are started would inherit a signal that is ignored.
        register(SIGHUP, Arc::default()).map_err(failed)?;
    } else {
        ending.push(SIGHUP);
    }
    ending.retain(|signal| !is_ignored(*signal));
    for &signal in &ending {
        // In this order: at the first signal the flag is not set yet.
        register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop)).map_err(failed)?;
        register(signal, Arc::clone(&stop)).map_err(failed)?;
    }
    let mut signals = Signals::new(ending).map_err(failed)?;
    let watch = move || {
        if signals.forever().next().is_some() {
            pgdyno_lab::interrupt();
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(watch).map_err(failed)?;
    Ok(())
}

/// Asks for the end as the first signal does.
pub(crate) fn interrupt() {
    CAME.store(true, Ordering::Relaxed);
    pgdyno_lab::interrupt();
}

/// Returns whether a signal asked for the end.
pub(crate) fn is_interrupted() -> bool {
    CAME.load(Ordering::Relaxed)
}

/// Returns whether the process was started with the signal ignored. A handler would end that.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
