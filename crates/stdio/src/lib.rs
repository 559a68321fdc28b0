//! Whether standard output was closed when the process started (docs/adr/0047).
//!
//! Rust opens `/dev/null` in place of a standard stream that is closed, before `main`: what is
//! printed is then lost without an error. So this crate looks earlier, where C's constructors run.
//!
//! ```
//! assert!(!pgdyno_stdio::standard_output_was_closed());
//! ```
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns whether standard output was closed when the process started, as by `>&-` in a shell.
pub fn standard_output_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

extern "C" fn look() {
    let looked = rustix::io::fcntl_getfd(rustix::stdio::stdout());
    WAS_CLOSED.store(looked == Err(rustix::io::Errno::BADF), Ordering::Relaxed);
}

// SAFETY: the C library calls each function of this section once, before `main`, on the only
// thread. `look` uses nothing that Rust's runtime sets up: one system call and one atomic store.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
