//! `pgdyno pgbench`: pgbench's options and report before pgdyno's load engine.

mod connection;
mod files;
mod flags;
mod getopt;
mod hdr_log;
mod initialize;
mod log;
mod options;
mod password;
mod progress;
mod refused;
mod report;
mod run;
mod scripts;
mod tables;

use std::io::Write;
use std::sync::atomic::AtomicBool;

use initialize::Ended;
use options::Request;
pub(crate) use scripts::is_variable_name;

/// Exit statuses, as pgbench has them.
const WELL: i32 = 0;
const REFUSED: i32 = 1;
const INCOMPLETE: i32 = 2;
/// A signal ended it: what a shell says of pgbench then.
const INTERRUPTED: i32 = 130;

/// Does what pgbench would do with `args` (without the program's name), and returns its exit status. The report goes to
/// `out`, all else to `err`. When `stop` becomes true, a run ends with what was measured so far.
pub fn main(args: &[String], out: &mut dyn Write, err: &mut (dyn Write + Send), stop: &AtomicBool) -> i32 {
    let (request, notes) = match options::read(args) {
        Ok(read) => read,
        Err(refused) => {
            refused.write(err);
            return REFUSED;
        }
    };
    if let Request::Run(run) = &request
        && let Some(seed) = run.seed
    {
        let _ = writeln!(err, "pgbench: setting random seed to {seed}");
    }
    tell(err, &notes);
    let ended = match request {
        Request::Print(text) => {
            let _ = out.write_all(text.as_bytes());
            Ok(WELL)
        }
        Request::Say(text) => {
            let _ = err.write_all(text.as_bytes());
            Ok(WELL)
        }
        Request::Initialize(what) => connection::connect(&what.connect, stop).and_then(|connected| {
            tell(err, &connected.notes);
            initialize::initialize(connected.client, &what, err, stop).map(|()| WELL)
        }),
        Request::Run(what) => connection::connect(&what.connect, stop)
            .and_then(|connected| {
                tell(err, &connected.notes);
                run::run(connected, &what, out, err, stop).map_err(Ended::Refused)
            })
            .map(|ended| match ended {
                run::Ended::Well => WELL,
                run::Ended::Incomplete => INCOMPLETE,
                run::Ended::Interrupted => INTERRUPTED,
            }),
    };
    let _ = out.flush();
    match ended {
        Ok(status) => status,
        Err(Ended::Refused(refused)) => {
            refused.write(err);
            REFUSED
        }
        Err(Ended::Interrupted) => {
            let _ = writeln!(err, "pgbench: error: interrupted");
            INTERRUPTED
        }
    }
}

fn tell(err: &mut dyn Write, notes: &[String]) {
    for note in notes {
        let _ = writeln!(err, "pgdyno: note: {note}");
    }
}
