//! `pgdyno pgbench`: pgbench's options and report before pgdyno's load engine.

mod connection;
mod extra_report;
mod files;
mod flags;
mod getopt;
mod hdr_log;
mod help;
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
mod values;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use initialize::Ended;
use options::Request;

/// Exit statuses, as pgbench has them.
const WELL: i32 = 0;
const REFUSED: i32 = 1;
const INCOMPLETE: i32 = 2;
/// A signal ended it: what a shell says of pgbench then.
const INTERRUPTED: i32 = 130;

/// The name that this program was called by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledAs {
    /// `pgdyno pgbench`: the report has lines of pgdyno's own.
    Pgdyno,
    /// `pgbench`: it has them where they are asked for.
    Pgbench,
}

/// What a command line asks for, its scripts read.
///
/// Reading takes as long as scripts are, or whoever writes one to standard input takes: whoever
/// takes signals does so between [`Invocation::read`] and [`Invocation::run`].
#[derive(Debug)]
pub struct Invocation {
    request: Request,
    notes: Vec<String>,
}

impl Invocation {
    /// Reads `args` (without the program's name) as pgbench does.
    ///
    /// # Errors
    /// The exit status, where they ask for nothing that can be done; what is wrong is said to
    /// `err`.
    pub fn read(
        args: &[String],
        called_as: CalledAs,
        err: &mut (dyn Write + Send),
    ) -> Result<Self, i32> {
        let mut say = |words: &str| {
            let _ = writeln!(err, "pgbench: {words}");
        };
        match options::read(args, &mut say) {
            Ok((mut request, notes)) => {
                if let Request::Run(run) = &mut request {
                    run.extra_report |= called_as == CalledAs::Pgdyno;
                }
                Ok(Self { request, notes })
            }
            Err(refused) => Err(refused.write(err)),
        }
    }

    /// Does what pgbench would do, and returns its exit status. The report goes to `out`, all else
    /// to `err`. When `stop` becomes true, a run ends with what was measured so far.
    pub fn run(&self, out: &mut dyn Write, err: &mut (dyn Write + Send), stop: &AtomicBool) -> i32 {
        tell(err, &self.notes);
        let ended = match &self.request {
            Request::Print(text) => {
                let _ = out.write_all(text.as_bytes());
                Ok(WELL)
            }
            Request::Say(text) => {
                let _ = err.write_all(text.as_bytes());
                Ok(WELL)
            }
            Request::Initialize(what) => {
                connection::connect(&what.connect, connection::Purpose::Initialization, stop)
                    .and_then(|connected| {
                        tell(err, &connected.notes);
                        initialize::initialize(connected, what, err, stop).map(|()| WELL)
                    })
            }
            Request::Run(what) => {
                connection::connect(&what.connect, connection::Purpose::Setup, stop)
                    .and_then(|connected| {
                        tell(err, &connected.notes);
                        run::run(connected, what, out, err, stop).map_err(Ended::Refused)
                    })
                    .map(|ended| match ended {
                        run::Ended::Well => WELL,
                        run::Ended::Incomplete => INCOMPLETE,
                        run::Ended::Interrupted => INTERRUPTED,
                    })
            }
        };
        let _ = out.flush();
        match ended {
            Ok(status) => status,
            Err(Ended::Refused(refused)) if !stop.load(Ordering::Relaxed) => refused.write(err),
            Err(Ended::Refused(_) | Ended::Interrupted) => {
                let _ = writeln!(err, "pgbench: error: interrupted");
                INTERRUPTED
            }
        }
    }
}

/// Reads `args` and does what they ask for, as [`Invocation`] has it.
pub fn main(
    args: &[String],
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
    stop: &AtomicBool,
) -> i32 {
    match Invocation::read(args, CalledAs::Pgdyno, err) {
        Ok(invocation) => invocation.run(out, err, stop),
        Err(status) => status,
    }
}

fn tell(err: &mut dyn Write, notes: &[String]) {
    for note in notes {
        let _ = writeln!(err, "pgbench: note: {note}");
    }
}
