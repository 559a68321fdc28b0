//! Ending a PostgreSQL server by its data directory.

use std::io;
use std::time::Duration;

use rustix::process::Signal;

use crate::beneath::Directory;
use crate::process::{Identity, children, postmaster_of, servers_of};

/// Ends the server that runs in `data`, whoever started it, and returns its pid; none: no server
/// runs there.
///
/// # Errors
/// One of its processes does not end.
pub(crate) fn end_server(data: &Directory) -> io::Result<Option<i32>> {
    let postmaster = postmaster_of(data);
    let mut all = servers_of(data);
    if let Some(postmaster) = postmaster {
        all.extend(children(postmaster.pid()));
        postmaster.signal(Signal::QUIT);
        if !postmaster.wait_gone(Duration::from_secs(10)) {
            all.extend(children(postmaster.pid()));
        }
    }
    for process in all {
        // What outlived its postmaster notices that by itself, mostly at once.
        if !process.wait_gone(Duration::from_secs(2)) {
            process.signal(Signal::KILL);
            if !process.wait_gone(Duration::from_secs(10)) {
                let why = format!("its server's process {} does not end", process.pid());
                return Err(io::Error::other(why));
            }
        }
    }
    Ok(postmaster.map(Identity::pid))
}
