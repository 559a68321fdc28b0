//! pgbench's command line over pgdyno's load engine.
//!
//! Options, exit statuses, messages, logs and the report are pgbench's; the load runs on
//! `pgdyno-engine`. [`Invocation::read`] parses the arguments and reads the scripts.
//! [`Invocation::run`] then initializes the tables (`-i`), or checks and vacuums them, runs the
//! load and writes the report. [`main`] does both.
//!
//! Options of pgdyno's own begin where pgbench's end: `--json`, `--hdr-log`, `--dialect` and
//! others. [`CalledAs`] decides whether the report has lines of pgdyno's own by default.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! let (mut out, mut err) = (Vec::new(), Vec::new());
//! let status = pgdyno_pgbench::main(&["--help"], &mut out, &mut err, &AtomicBool::new(false));
//! assert_eq!(status, 0);
//! assert!(String::from_utf8(out)?.contains("--initialize"));
//! # Ok::<(), std::string::FromUtf8Error>(())
//! ```
//!
//! A run against a server:
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use pgdyno_pgbench::{CalledAs, Invocation};
//!
//! let arguments = ["-S", "-c", "8", "-T", "10", "bench"];
//! let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
//! let status = match Invocation::read(&arguments, CalledAs::Pgbench, &mut err) {
//!     Ok(invocation) => invocation.run(&mut out, &mut err, &AtomicBool::new(false)),
//!     Err(status) => status,
//! };
//! std::process::exit(status);
//! ```

mod ad_hoc;
mod connection;
mod dialect;
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
mod report;
mod request;
mod run;
mod scripts;
mod server_messages;
mod tables;
mod usage_error;
mod values;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use pgdyno_model::record::AdHocRun;

pub use help::{OptionHelp, options};
use request::Request;
use usage_error::{Stopped, exit_status};

/// The name that the program was called by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledAs {
    /// `pgdyno pgbench`: the report includes pgdyno's own lines.
    Pgdyno,
    /// `pgbench`: the report includes them only if an option asks for them.
    Pgbench,
}

/// A command line that was understood, with its scripts.
///
/// Install signal handlers between [`Invocation::read`] and [`Invocation::run`]: reading lasts as
/// long as somebody types a script on standard input, and a signal should end it.
#[derive(Debug)]
pub struct Invocation {
    request: Request,
    notes: Vec<String>,
}

impl Invocation {
    /// Reads `args`, without the program's name, as pgbench does. Writes errors to `err`.
    ///
    /// # Errors
    /// The exit status, if the arguments or a script cannot be understood.
    pub fn read(
        args: &[impl AsRef<OsStr>],
        called_as: CalledAs,
        err: &mut (dyn Write + Send),
    ) -> Result<Self, i32> {
        let mut say = |words: &str| {
            let _ = writeln!(err, "pgbench: {words}");
        };
        let args: Vec<OsString> = args.iter().map(|arg| arg.as_ref().to_owned()).collect();
        match options::read(&args, &mut say) {
            Ok((mut request, notes)) => {
                if let Request::Run(run) = &mut request {
                    run.extra_report |= called_as == CalledAs::Pgdyno;
                }
                Ok(Self { request, notes })
            }
            Err(refused) => Err(refused.write(err)),
        }
    }

    /// Returns whether the run is to be kept in a store, and in which file; the inner none means
    /// pgdyno's own store.
    pub fn store(&self) -> Option<Option<&Path>> {
        match &self.request {
            Request::Run(run) => run.store.as_ref().map(|file| file.as_deref()),
            _ => None,
        }
    }

    /// Initializes the tables or runs the load, and returns pgbench's exit status.
    ///
    /// Writes the report to `out` and everything else to `err`. Once `stop` is set, a run ends with
    /// the figures measured so far.
    pub fn run(&self, out: &mut dyn Write, err: &mut (dyn Write + Send), stop: &AtomicBool) -> i32 {
        self.run_and_keep(out, err, stop, &mut None)
    }

    /// Does what [`Invocation::run`] does, and hands out in `measured` what a store keeps of a run
    /// that was reported.
    pub fn run_and_keep(
        &self,
        out: &mut dyn Write,
        err: &mut (dyn Write + Send),
        stop: &AtomicBool,
        measured: &mut Option<AdHocRun>,
    ) -> i32 {
        connection::tell(err, &self.notes);
        let ended = match &self.request {
            Request::Print(text) => {
                let _ = out.write_all(text.as_bytes());
                Ok(exit_status::SUCCESS)
            }
            Request::Say(text) => {
                let _ = err.write_all(text.as_bytes());
                Ok(exit_status::SUCCESS)
            }
            Request::Initialize(what) => {
                connection::connect(&what.connect, "initialization", true, err, stop).and_then(
                    |connected| {
                        initialize::initialize(connected, what, err, stop)
                            .map(|()| exit_status::SUCCESS)
                    },
                )
            }
            Request::Run(what) => {
                connection::connect(&what.connect, "setup", what.asks(), err, stop)
                    .and_then(|connected| {
                        run::run(connected, what, (out, err), stop, measured)
                            .map_err(Stopped::Error)
                    })
                    .map(|ended| match ended {
                        run::RunEnd::Well => exit_status::SUCCESS,
                        run::RunEnd::Incomplete => exit_status::INCOMPLETE,
                        run::RunEnd::Interrupted => exit_status::INTERRUPTED,
                    })
            }
        };
        let _ = out.flush();
        match ended {
            Ok(status) => status,
            Err(Stopped::Error(refused)) if !stop.load(Ordering::Relaxed) => refused.write(err),
            Err(Stopped::Error(_) | Stopped::Interrupted) => {
                let _ = writeln!(err, "pgbench: error: interrupted");
                exit_status::INTERRUPTED
            }
        }
    }
}

/// Reads `args` and carries them out. Returns pgbench's exit status.
pub fn main(
    args: &[impl AsRef<OsStr>],
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
    stop: &AtomicBool,
) -> i32 {
    match Invocation::read(args, CalledAs::Pgdyno, err) {
        Ok(invocation) => invocation.run(out, err, stop),
        Err(status) => status,
    }
}
