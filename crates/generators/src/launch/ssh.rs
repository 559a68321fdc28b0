//! Workers on hosts that the system's OpenSSH reaches: the user's configuration, agent and jump
//! hosts apply.
//!
//! One login asks the host what it is, and starts the worker. Where the host lacks this very
//! program, by the hash of its contents, the program is copied to the user's cache, and the login
//! is repeated. `ssh` never asks for a password or a host key: it fails, and its words are passed
//! on.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ChildStdout;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::launched::{Launched, StartProgram, this_program};
use crate::error::Fault;

/// Names the program to use in place of `ssh`, with its options, in words.
const VARIABLE: &str = "PGDYNO_SSH";
/// A host that cannot be reached, or is cut off, is noticed. What the user's configuration says
/// stands after these and does not count.
const ALIVE: [&str; 6] =
    ["-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"];
/// Where workers' programs lie on a host, in the words of its shell.
const FOLDER: &str = r#""${XDG_CACHE_HOME:-$HOME/.cache}/pgdyno/worker""#;

/// The line after which the program itself speaks.
const PRESENT: &str = "pgdyno is here";
/// Beginning of the line that a host without the program prints; its `uname -s -m` follows.
const MISSING: &str = "pgdyno is missing on ";

/// Starts this program's command `command` on `host`, to which the program is copied if need be.
///
/// # Errors
/// [`Fault::Launch`], [`Fault::Architecture`].
pub fn launch_on(host: &str, command: &str, start: StartProgram) -> Result<Launched, Fault> {
    let path = this_program()?;
    let hash = hash(&path)?;
    let (ours, program) = (ours(), format!("{FOLDER}/{hash}"));
    let script = format!(
        "h=$(uname -s -m); if test \"$h\" = \"{ours}\" && test -x {program}; \
         then echo {PRESENT}; exec {program} {command}; fi; echo {MISSING}$h"
    );
    let launch = || found(Launched::start(&words(host, &script), start)?);
    if let Some(launched) = launch()? {
        return Ok(launched);
    }
    copy(host, &path, &hash, start)?;
    launch()?.ok_or_else(|| Fault::Launch("the program that was copied is gone".to_owned()))
}

/// Returns the words that run this program's command `command` on `host`, where the program is now.
///
/// # Errors
/// As [`launch_on`].
pub(super) fn words_on(
    host: &str,
    command: &str,
    start: StartProgram,
) -> Result<Vec<OsString>, Fault> {
    launch_on(host, "--version", start)?.output()?;
    Ok(words(host, &format!("exec {FOLDER}/{} {command}", hash(&this_program()?)?)))
}

/// Returns the program that was launched on a host, once it runs; none: the host lacks it.
fn found(mut launched: Launched) -> Result<Option<Launched>, Fault> {
    // What a login shell prints comes first.
    while let Some(line) = launched.child.stdout.as_mut().and_then(next_line) {
        if line == PRESENT {
            return Ok(Some(launched));
        }
        if let Some(theirs) = line.strip_prefix(MISSING).map(str::to_owned) {
            launched.output()?;
            let ours = ours();
            return if theirs == ours {
                Ok(None)
            } else {
                Err(Fault::Architecture { ours, theirs })
            };
        }
    }
    let status = launched.child.wait().ok();
    Err(Fault::Launch(launched.how(status)))
}

/// Reads one line and not a byte more: the rest is the program's. None at the end.
fn next_line(from: &mut ChildStdout) -> Option<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        from.read_exact(&mut byte).ok()?;
        if byte == *b"\n" {
            return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        line.extend(byte);
    }
}

/// Returns the words that run `script` in a shell on `host`.
fn words(host: &str, script: &str) -> Vec<OsString> {
    let chosen = std::env::var(VARIABLE).unwrap_or_default();
    let mut words: Vec<OsString> = chosen.split_whitespace().map(OsString::from).collect();
    if words.is_empty() {
        words.push("ssh".into());
    }
    // A login shell of any kind passes on what stands between single quotes; scripts have none.
    let script = format!("sh -c '{script}'");
    words.extend(["-T", "-o", "BatchMode=yes"].map(OsString::from));
    words.extend(ALIVE.map(OsString::from));
    words.extend([host, &script].map(OsString::from));
    words
}

/// Returns the system and architecture of this program, as `uname -s -m` prints them.
fn ours() -> String {
    let system = match std::env::consts::OS {
        "linux" => "Linux",
        other => other,
    };
    format!("{system} {}", std::env::consts::ARCH)
}

/// Copies the program to `host`. Only a whole copy gets its name.
fn copy(host: &str, path: &Path, hash: &str, start: StartProgram) -> Result<(), Fault> {
    let failed =
        |error: io::Error| Fault::Launch(format!("cannot copy {}: {error}", path.display()));
    let mut program = File::open(path).map_err(failed)?;
    let size = program.metadata().map_err(failed)?.len();
    let script = format!(
        "umask 077; mkdir -p {FOLDER} && t={FOLDER}/{hash}.$$ && cat > \"$t\" && \
         test $(wc -c < \"$t\") -eq {size} && chmod 700 \"$t\" && mv \"$t\" {FOLDER}/{hash}"
    );
    let mut copying = Launched::start(&words(host, &script), start)?;
    if let Some(mut to) = copying.child.stdin.take() {
        // An error here has its cause at the other end, which says more of it.
        let _ = io::copy(&mut program, &mut to);
    }
    copying.output().map(drop)
}

/// Hash of this program's contents, computed once.
fn hash(path: &Path) -> Result<String, Fault> {
    static HASH: OnceLock<String> = OnceLock::new();
    if let Some(known) = HASH.get() {
        return Ok(known.clone());
    }
    let failed =
        |error: io::Error| Fault::Launch(format!("cannot read {}: {error}", path.display()));
    let mut hasher = Hasher(Sha256::new());
    io::copy(&mut File::open(path).map_err(failed)?, &mut hasher).map_err(failed)?;
    let digest = hasher.0.finalize();
    let hash = digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Ok(HASH.get_or_init(|| hash).clone())
}

struct Hasher(Sha256);

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_survive_the_quotes_of_a_login_shell() {
        for script in [FOLDER, PRESENT, MISSING, &ours()] {
            assert!(!script.contains('\''));
        }
        let words = words("gen1", "true");
        let all: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        assert!(all.contains(&"BatchMode=yes".into()));
        assert!(all.ends_with(&["gen1".into(), "sh -c 'true'".into()]));
    }
}
