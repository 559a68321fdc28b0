//! `pgdyno filesystems`: which filesystems this machine can make.

use pgdyno_lab::clean::filesystems;

use crate::exit_status::ExitStatus;
use crate::output::print;

/// Prints each filesystem that pgdyno supports, and why it cannot be made here.
pub(crate) fn run() -> ExitStatus {
    for known in filesystems() {
        match known.missing {
            None => print(&format!("{:<10} can be made here", known.name)),
            Some((what, help)) => {
                let help = help.map_or_else(String::new, |help| format!("; {help}"));
                print(&format!("{:<10} {what}{help}", known.name));
            }
        }
    }
    ExitStatus::Success
}
