//! Tells the user's command how a run ended (`run --notify`).

use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_exec::tool::run_user_shell;

/// Time that the command may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Time that the command may take after a signal.
const LIMIT_AFTER_SIGNAL: Duration = Duration::from_millis(1500);

/// Why the command was not told.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum NotifyError {
    /// The shell cannot be started.
    #[error("cannot run `--notify {command}`")]
    Start { command: String, source: std::io::Error },
    /// The command ended with another status than 0.
    #[error("`--notify {command}` ended with {status}")]
    Failed { command: String, status: ExitStatus },
    /// The command did not end, and was ended.
    #[error("`--notify {command}` was ended after {} s", after.as_secs_f64())]
    Late { command: String, after: Duration },
}

/// Runs the user's `command` in a shell with `outcome` on standard input. Ends the command after a
/// minute, and within two seconds of a signal.
///
/// # Errors
/// [`NotifyError`]: the command cannot be started, fails, or takes too long.
pub fn notify(command: &str, outcome: &str, stop: &AtomicBool) -> Result<(), NotifyError> {
    let began = Instant::now();
    let limit = || if stop.load(Ordering::Relaxed) { LIMIT_AFTER_SIGNAL } else { LIMIT };
    let is_late = || began.elapsed() >= limit();
    let command = command.to_owned();
    match run_user_shell(&command, outcome.as_bytes().to_vec(), &is_late) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) => Err(NotifyError::Failed { command, status }),
        Ok(None) => Err(NotifyError::Late { command, after: began.elapsed() }),
        Err(source) => Err(NotifyError::Start { command, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_on_its_standard_input() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("told");
        let command = format!("cat > '{}'", file.display());
        notify(&command, "{\"state\":\"completed\"}", &false.into()).unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "{\"state\":\"completed\"}");
    }

    #[test]
    fn a_command_that_fails_or_does_not_end_is_an_error() {
        let failed = notify("exit 3", "{}", &false.into());
        assert!(
            matches!(failed, Err(NotifyError::Failed { status, .. }) if status.code() == Some(3))
        );
        // More than a pipe holds, and nobody reads it.
        let large = "x".repeat(1 << 20);
        notify("true", &large, &false.into()).unwrap();
        let late = notify("sleep 100000", "{}", &true.into());
        assert!(matches!(late, Err(NotifyError::Late { .. })));
    }
}
