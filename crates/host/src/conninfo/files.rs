//! Service files and the password file.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use pgdyno_model::target::Secret;

use super::parse::Options;
use super::{ConninfoError, Environment, keywords};

/// What the service `name` says, in the user's file or else the system's.
pub(super) fn service(
    name: &str,
    file: Option<&str>,
    environment: &Environment,
) -> Result<Options, ConninfoError> {
    let system =
        environment.variable("PGSYSCONFDIR").map_or(&*environment.system_directory, Path::new);
    let users = match file {
        Some(file) => Some(PathBuf::from(file)),
        None => environment.home.as_ref().map(|home| home.join(".pg_service.conf")),
    };
    let mut sought = Vec::new();
    for path in users.into_iter().chain([system.join("pg_service.conf")]) {
        match fs::read_to_string(&path) {
            Ok(text) => {
                if let Some(options) = section(&text, name, &path)? {
                    return Ok(options);
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && file.is_none() => {}
            Err(cause) if sought.is_empty() && file.is_some() => {
                return Err(ConninfoError::ServiceFile { path, cause });
            }
            Err(_) => {}
        }
        sought.push(path);
    }
    Err(ConninfoError::NoService { name: name.to_owned(), sought })
}

fn section(text: &str, name: &str, path: &Path) -> Result<Option<Options>, ConninfoError> {
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

/// The password file's lines, once for all hosts.
#[derive(Default)]
pub(super) struct PasswordFile {
    lines: Vec<[String; 5]>,
    /// Why it is not used, if it is there and should not be.
    pub(super) note: Option<String>,
}

impl PasswordFile {
    /// Reads the file at `path`, if it is there and only we can.
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

    /// The password of the first line that fits.
    pub(super) fn find(&self, host: &str, port: u16, database: &str, user: &str) -> Option<Secret> {
        let port = port.to_string();
        let asked = [host, port.as_str(), database, user];
        let fits = |line: &&[String; 5]| {
            line.iter().zip(asked).all(|(said, asked)| said == "*" || said == asked)
        };
        self.lines
            .iter()
            .find(fits)
            .map(|line| Secret::new(line[4].clone()))
            .filter(|p| !p.reveal().is_empty())
    }
}

/// `host:port:database:user:password`, with `\` before a `:` or `\` that is meant.
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
            // What stands after the password is nothing.
            ':' => break,
            '\\' => fields[at].extend(characters.next()),
            c => fields[at].push(c),
        }
    }
    (at == 4).then_some(fields)
}
