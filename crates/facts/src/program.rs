//! Programs that are asked for facts: they may be missing, refuse, or hang on a dying disk.

use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use pgdyno_exec::tool::locate;

/// How long one may take: a drive that sleeps needs seconds to wake up.
const LIMIT: Duration = Duration::from_secs(15);

/// What a program said.
pub(super) struct Said {
    pub(super) success: bool,
    pub(super) output: String,
    pub(super) errors: String,
}

/// Why it said nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramError {
    #[error("{program} is not installed")]
    Missing { program: &'static str },
    #[error("cannot run {program}: {source}")]
    Run { program: &'static str, source: io::Error },
    #[error("{program} did not answer within {} s", LIMIT.as_secs())]
    Late { program: &'static str },
}

/// Runs `program` with `args` to its end.
pub(super) fn ask(program: &'static str, args: &[&str]) -> Result<Said, ProgramError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ProgramError::Missing { program },
        _ => ProgramError::Run { program, source },
    };
    let mut child = Command::new(locate(program).ok_or(ProgramError::Missing { program })?)
        .args(args)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let streams = [child.stdout.take().map(reading), child.stderr.take().map(reading)];
    let mut texts = Vec::new();
    for stream in streams.into_iter().flatten() {
        match stream.recv_timeout(LIMIT) {
            Ok(text) => texts.push(text),
            Err(_) => {
                // A process stuck in the kernel outlives even this; it is waited for no longer.
                let _ = child.kill();
                let _ = child.try_wait();
                return Err(ProgramError::Late { program });
            }
        }
    }
    let status = child.wait().map_err(failed)?;
    let mut texts = texts.into_iter();
    Ok(Said {
        success: status.success(),
        output: texts.next().unwrap_or_default(),
        errors: texts.next().unwrap_or_default(),
    })
}

fn reading(mut from: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (to, texts) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        let _ = to.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_heard_or_named_as_missing() {
        let said = ask("sh", &["-c", "echo out; echo err >&2; exit 3"]).unwrap();
        assert_eq!(
            (said.success, said.output.as_str(), said.errors.as_str()),
            (false, "out\n", "err\n")
        );
        let missing = ask("pgdyno-no-such-program", &[]).err().unwrap().to_string();
        assert_eq!(missing, "pgdyno-no-such-program is not installed");
    }
}
