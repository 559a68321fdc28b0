//! Checks settings with the program `postgres` alone, before any cluster exists.
//!
//! `postgres -C NAME` reads a configuration, prints one value and exits. With an empty file and the
//! settings as arguments, it refuses unknown names and invalid values in the server's own words. It
//! writes nothing. `--describe-config` does not help, since it omits settings that the sample file
//! lacks.

use std::process::Output;

use pgdyno_exec::tool::{ToolError, ask_tool};

use super::install::{ANSWER_LIMIT, Install};
use super::settings::{SettingProblem, SettingsError, did_you_mean, name_problem};

/// The result of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The program accepts every setting.
    Taken,
    /// The program could not be run, for this reason.
    NotAsked(String),
}

/// Checks `settings` (name, value) with the `postgres` of `install`. Names with a dot belong to
/// loadable modules and are always accepted.
///
/// # Errors
/// [`SettingsError::Refused`]: all refused settings, with the nearest names of unknown ones.
pub fn judge(install: &Install, settings: &[(String, String)]) -> Result<Judgement, SettingsError> {
    let asked = |settings: &[(String, String)]| match ask(install, "port", settings) {
        Ok(output) if output.status.success() => Ok(None),
        Ok(output) => Ok(Some(output)),
        Err(e) => Err(e.to_string()),
    };
    // Runs once without settings, since a failure of that has another cause.
    match asked(&[]) {
        Ok(None) => {}
        Ok(Some(output)) => {
            let said = fatal(&output).0.unwrap_or_else(|| output.status.to_string());
            return Ok(Judgement::NotAsked(format!(
                "`postgres -C` of {} fails: {said}",
                install.version
            )));
        }
        Err(why) => return Ok(Judgement::NotAsked(why)),
    }
    let mut problems: Vec<SettingProblem> =
        settings.iter().filter_map(|(name, value)| name_problem(name, value, &[])).collect();
    let sound: Vec<(String, String)> = settings
        .iter()
        .filter(|(name, value)| name_problem(name, value, &[]).is_none())
        .cloned()
        .collect();
    // The program stops at the first setting that it refuses.
    if matches!(asked(&sound), Ok(None)) && problems.is_empty() {
        return Ok(Judgement::Taken);
    }
    for setting in sound {
        let Ok(Some(output)) = asked(std::slice::from_ref(&setting)) else { continue };
        let (name, value) = setting;
        let (said, hint) = fatal(&output);
        let (why, help) = match said {
            Some(said) if said.starts_with("unrecognized configuration parameter") => {
                let help = did_you_mean(&name.to_ascii_lowercase(), known(install).iter());
                (format!("PostgreSQL {} has no such setting", install.version), help)
            }
            Some(said) => (said, hint),
            None => (format!("`postgres -C` ends with {}", output.status), None),
        };
        problems.push(SettingProblem { name, value, why, help });
    }
    if problems.is_empty() { Ok(Judgement::Taken) } else { Err(SettingsError::Refused(problems)) }
}

/// Returns what the `postgres` of `install` makes of `value` for the setting `name`, in the unit
/// that it keeps it in: `1024` of `1GB` for `max_wal_size`. None if it does not say.
pub fn value_read(install: &Install, name: &str, value: &str) -> Option<String> {
    let output = ask(install, name, &[(name.to_owned(), value.to_owned())]).ok()?;
    let read = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    output.status.success().then_some(read)
}

/// Lets `postgres` read `settings` and print the value of the setting `shown`.
fn ask(install: &Install, shown: &str, settings: &[(String, String)]) -> Result<Output, ToolError> {
    // Root may run `postgres` if `-C` is the first argument. The directory must exist and is not
    // read.
    let mut args =
        ["-C", shown, "-D", "/", "-c", "config_file=/dev/null"].map(str::to_owned).to_vec();
    for (name, value) in settings {
        args.extend(["-c".to_owned(), format!("{name}={value}")]);
    }
    ask_tool(install.program("postgres"), &args, ANSWER_LIMIT)
}

/// Returns the last error message of a failed program, and its hint.
fn fatal(output: &Output) -> (Option<String>, Option<String>) {
    let errors = String::from_utf8_lossy(&output.stderr);
    let after = |mark: &str| {
        errors
            .lines()
            .find_map(|line| line.split_once(mark))
            .map(|(_, said)| said.trim().to_owned())
    };
    (after("FATAL: ").or_else(|| after("ERROR: ")), after("HINT: "))
}

/// Returns the names in the sample file, in which nearest names are searched.
fn known(install: &Install) -> Vec<String> {
    let output = ask_tool(install.program("postgres"), &["--describe-config"], ANSWER_LIMIT);
    let Ok(output) = output else { return Vec::new() };
    let lines = String::from_utf8_lossy(&output.stdout);
    lines.lines().filter_map(|line| line.split('\t').next()).map(str::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _; // past the test runner, which keeps what passing tests print to itself

    use pgdyno_model::facts::BuildSource;

    use super::*;

    fn all(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_program_judges_names_and_values_as_the_server_does() {
        let Ok(Some(install)) = crate::find(None, None) else {
            let test = "the_program_judges_names_and_values_as_the_server_does";
            let _ = writeln!(std::io::stderr(), "\nskipped: {test}: no PostgreSQL is installed");
            return;
        };
        // The second is missing in the sample file; the third is a module's.
        let good = [
            ("work_mem", "8MB"),
            ("zero_damaged_pages", "on"),
            ("mine.own", "x"),
            ("TimeZone", "UTC"),
        ];
        assert_eq!(judge(&install, &all(&good)).unwrap(), Judgement::Taken);
        let bad = [
            ("work_mem", "8MB"),
            ("shared_bufers", "8MB"),
            ("synchronous_commit", "maybe"),
            ("work_mem", "1kB"),
            ("server_version", "3"),
            ("a b", "1"),
        ];
        let SettingsError::Refused(problems) = judge(&install, &all(&bad)).unwrap_err() else {
            panic!()
        };
        let of = |name: &str| problems.iter().find(|p| p.name == name).unwrap();
        assert_eq!(problems.len(), 5, "{problems:?}");
        assert!(
            of("shared_bufers").help.as_ref().unwrap().contains("shared_buffers"),
            "{problems:?}"
        );
        assert!(
            of("synchronous_commit").help.as_ref().unwrap().contains("remote_apply"),
            "{problems:?}"
        );
        assert_eq!(of("work_mem").value, "1kB");
    }

    #[test]
    fn a_program_that_does_not_run_judges_nothing_and_that_is_said() {
        let bindir = std::path::PathBuf::from("/nowhere");
        let source = BuildSource::Found { bindir: "/nowhere".into(), how: "test".into() };
        let install = Install { bindir, version: "17.0".into(), major: 17, source };
        let judged = judge(&install, &all(&[("shared_bufers", "1")])).unwrap();
        assert!(
            matches!(&judged, Judgement::NotAsked(why) if why.contains("/nowhere/postgres")),
            "{judged:?}"
        );
    }
}
