//! The connection to one host, in a thread of its own.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use pgdyno_exec::process::Identity;
use pgdyno_exec::program::start_piped;
use pgdyno_generators::{Fault, words_on};
use pgdyno_model::lab_host::LabHost;
use rustix::process::Signal;

use super::{Assignment, HostError, Reply, STORED};

/// A message from the thread that holds a host's connection.
pub(super) enum Message {
    /// A line of progress, or a complaint.
    Line(String),
    /// How the host's run ended, and the file that holds the host's store.
    Ended(Result<(Reply, Option<PathBuf>), HostError>),
    /// The connection is over.
    Gone,
}

/// The coordinator's side of a connection: stops, confirms or kills.
#[derive(Clone, Default)]
pub(super) struct Handle(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    stdin: Option<ChildStdin>,
    process: Option<Identity>,
    is_stopped: bool,
}

impl Handle {
    /// Has the host interrupt its run, by ending the standard input of `host-run`.
    pub(super) fn stop(&self) {
        self.with(|state| {
            state.is_stopped = true;
            state.stdin = None;
        });
    }

    /// Tells the host that its run is stored here.
    pub(super) fn confirm(&self) {
        self.with(|state| {
            if let Some(mut stdin) = state.stdin.take() {
                // A host that is gone keeps its store; the next merge finds the same run.
                let _ = writeln!(stdin, "{STORED}");
            }
        });
    }

    /// Ends the program that reaches the host.
    pub(super) fn kill(&self) {
        self.with(|state| state.process.into_iter().for_each(|it| it.signal(Signal::KILL)));
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> Option<T> {
        self.0.lock().ok().map(|mut state| work(&mut state))
    }
}

/// Runs `assignment` on `host` and writes the host's store to `file`. `tell` receives every message
/// with `number`, [`Message::Gone`] last.
pub(super) fn converse(
    host: &LabHost,
    assignment: &Assignment,
    file: PathBuf,
    handle: &Handle,
    tell: &Sender<(usize, Message)>,
    number: usize,
) {
    // Nobody listens any more only when the process ends.
    let send = |message| drop(tell.send((number, message)));
    match start(host, assignment, handle) {
        Err(error) => send(Message::Ended(Err(error))),
        Ok(mut child) => {
            let complaints = child.stderr.take().map(|from| {
                let tell = tell.clone();
                std::thread::spawn(move || pass_on(from, &tell, number))
            });
            let received = receive(&mut child, file);
            let last = || complaints.and_then(|thread| thread.join().ok()).flatten();
            let received = received.map_err(|error| match error {
                HostError::Ended(how) => HostError::Ended(last().unwrap_or(how)),
                other => other,
            });
            send(Message::Ended(received));
            let _ = child.wait();
        }
    }
    send(Message::Gone);
}

/// Starts `pgdyno host-run` on `host` and sends it the assignment.
fn start(host: &LabHost, assignment: &Assignment, handle: &Handle) -> Result<Child, HostError> {
    let words = words_on(host, "host-run", start_piped).map_err(HostError::Unusable)?;
    let mut child = start_piped(&words).map_err(|error| {
        let program = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        HostError::Unusable(Fault::Launch(format!("cannot run {program}: {error}")))
    })?;
    let mut stdin = child.stdin.take();
    let text = serde_json::to_string(assignment).map_err(|e| HostError::Ended(e.to_string()))?;
    if let Some(stdin) = &mut stdin {
        // An error here has its cause at the other end, which says more of it.
        let _ = writeln!(stdin, "{text}");
    }
    let process = i32::try_from(child.id()).ok().and_then(Identity::from_pid);
    handle.with(|state| {
        state.process = process;
        state.stdin = stdin.filter(|_| !state.is_stopped);
    });
    Ok(child)
}

/// Passes on the lines that are not empty. Returns the last one.
fn pass_on(from: impl Read, tell: &Sender<(usize, Message)>, number: usize) -> Option<String> {
    let mut last = None;
    for line in BufReader::new(from).split(b'\n') {
        let Ok(line) = line else { break };
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        if !line.is_empty() {
            last = Some(line.clone());
            let _ = tell.send((number, Message::Line(line)));
        }
    }
    last
}

/// Reads the reply, then writes the store that follows it to `file`.
fn receive(child: &mut Child, file: PathBuf) -> Result<(Reply, Option<PathBuf>), HostError> {
    let ended = |how: &dyn std::fmt::Display| HostError::Ended(how.to_string());
    let Some(stdout) = child.stdout.take() else { return Err(ended(&"no output")) };
    let mut from = BufReader::new(stdout);
    let mut line = String::new();
    from.read_line(&mut line).map_err(|error| ended(&error))?;
    if line.is_empty() {
        return Err(ended(&"without a word"));
    }
    let reply: Reply =
        serde_json::from_str(&line).map_err(|_| ended(&"it sent what is no reply of pgdyno's"))?;
    if reply.bytes == 0 {
        return Ok((reply, None));
    }
    let mut to = File::create(&file).map_err(HostError::File)?;
    let copied = io::copy(&mut from.take(reply.bytes), &mut to).map_err(HostError::File)?;
    if copied < reply.bytes {
        return Err(ended(&"while it sent its store"));
    }
    Ok((reply, Some(file)))
}
