//! Signals: the first asks for an orderly end, the second ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::output::Failure;

/// Signals that ask for the end.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Whether one of them came.
static CAME: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Takes signals from now on, and returns a flag that becomes true at the first.
pub(crate) fn take() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::clone(&CAME);
    let failed = |e: std::io::Error| Failure::new(format!("cannot handle signals: {e}"));
    for signal in ENDING {
        // In this order: at the first signal the flag is not set yet.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .map_err(failed)?;
        flag::register(signal, Arc::clone(&stop)).map_err(failed)?;
    }
    let mut signals = Signals::new(ENDING).map_err(failed)?;
    let watch = move || {
        if signals.forever().next().is_some() {
            pgdyno_lab::interrupt();
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(watch).map_err(failed)?;
    Ok(stop)
}

/// Whether a signal came that asks for the end.
pub(crate) fn came() -> bool {
    CAME.load(Ordering::Relaxed)
}
