//! The open files that a load needs, and the process's limit of them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::LoadError;

/// Files of an event loop: its reactor's two, and its log.
const PER_LOOP: usize = 3;

/// Raises this process's soft limit of open files if `clients` clients on `event_loops` event
/// loops, and `others` files that will be opened beside them, are more than it allows.
///
/// # Errors
/// [`LoadError::OpenFiles`]: the hard limit is too low.
pub fn allow_open_files(
    clients: usize,
    event_loops: usize,
    others: usize,
) -> Result<(), LoadError> {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let needed = (open + clients + event_loops * PER_LOOP + others) as u64;
    let limits @ Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|limit| limit >= needed) {
        return Ok(());
    }
    if let Some(limit) = maximum.filter(|limit| *limit < needed) {
        return Err(LoadError::OpenFiles { needed, limit });
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), ..limits })
        .map_err(|error| LoadError::System(error.into()))
}
