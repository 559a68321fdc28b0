//! Service files and the password file.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use pgdyno_model::target::Secret;

use super::environment::Environment;
use super::error::ConninfoError;
use super::keywords;
use super::parse::Options;

/// Reads the options of service `name` from the user's service file, or else from the system's.
pub(super) fn read_service(
    name: &str,
    file: Option<&str>,
    environment: &Environment,
) -> Result<Options, ConninfoError> {
    let system =
        environment.variable("PGSYSCONFDIR").map_or(&*environment.system_directory, Path::new);
    let user_file = match file {
        Some(file) => Some(PathBuf::from(file)),
        None => environment.home.as_ref().map(|home| home.join(".pg_service.conf")),
    };
    let mut searched = Vec::new();
    for path in user_file.into_iter().chain([system.join("pg_service.conf")]) {
        match fs::read_to_string(&path) {
            Ok(text) => {
                if let Some(options) = parse_section(&text, name, &path)? {
                    return Ok(options);
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && file.is_none() => {}
            Err(cause) if searched.is_empty() && file.is_some() => {
                return Err(ConninfoError::ServiceFile { path, cause });
            }
            Err(_) => {}
        }
        searched.push(path);
    }
    Err(ConninfoError::NoService { name: name.to_owned(), sought: searched })
}

fn parse_section(text: &str, name: &str, path: &Path) -> Result<Option<Options>, ConninfoError> {
    let mut found: Option<Options> = None;
    for (number, line) in text.lines().enumerate().map(|(n, line)| (n + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(heading) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            if heading.strip_suffix(']') == Some(name) {
                found = Some(Options::new());
            }
            continue;
        }
        let Some(options) = &mut found else { continue };
        let wrong =
            |found| ConninfoError::ServiceLine { path: path.to_owned(), line: number, found };
        let (keyword, value) = line.split_once('=').ok_or_else(|| wrong("it has no `=`"))?;
        match keywords::find(keyword.trim()) {
            Some(known) if known.name == "service" || known.name == "servicefile" => {
                return Err(wrong("a service cannot name another"));
            }
            Some(known) => {
                options.entry(known.name).or_insert_with(|| value.trim().to_owned());
            }
            None => return Err(wrong("its keyword is not known")),
        }
    }
    Ok(found)
}

/// The lines of a password file.
#[derive(Default)]
pub(super) struct PasswordFile {
    lines: Vec<[String; 5]>,
    /// The warning if the file exists and is not used.
    pub(super) note: Option<String>,
}

impl PasswordFile {
    /// Reads the file at `path` if it exists and nobody else may read it.
    pub(super) fn read(path: &Path) -> Self {
        let ignored = |why: &str| Self {
            lines: Vec::new(),
            note: Some(format!("password file {} is not used: {why}", path.display())),
        };
        let Ok(about) = fs::metadata(path) else { return Self::default() };
        if !about.is_file() {
            return ignored("it is not a plain file");
        }
        if about.mode() & 0o077 != 0 {
            return ignored("others than you may read it (chmod 0600 mends that)");
        }
        match fs::read_to_string(path) {
            Ok(text) => Self { lines: text.lines().filter_map(fields).collect(), note: None },
            Err(e) => ignored(&e.to_string()),
        }
    }

    /// Returns the password of the first line that matches.
    pub(super) fn find(&self, host: &str, port: u16, database: &str, user: &str) -> Option<Secret> {
        let port = port.to_string();
        let wanted = [host, port.as_str(), database, user];
        let matches = |line: &&[String; 5]| {
            line.iter().zip(wanted).all(|(given, wanted)| given == "*" || given == wanted)
        };
        self.lines
            .iter()
            .find(matches)
            .map(|line| Secret::new(line[4].clone()))
            .filter(|p| !p.reveal().is_empty())
    }
}

/// Splits `host:port:database:user:password`, where `\` escapes `:` and `\`.
fn fields(line: &str) -> Option<[String; 5]> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields: [String; 5] = Default::default();
    let mut at = 0;
    let mut characters = line.trim_end_matches('\r').chars();
    while let Some(c) = characters.next() {
        match c {
            ':' if at < 4 => at += 1,
            // Nothing may follow the password.
            ':' => break,
            '\\' => fields[at].extend(characters.next()),
            c => fields[at].push(c),
        }
    }
    (at == 4).then_some(fields)
}
