//! `[hosts.NAME]`: other values for keys of the same file, on one host of a lab.

use serde::Deserialize;

use super::error::FileError;
use super::overrides::Override;
use super::source::Source;

/// The hosts only: the rest of the file is read elsewhere.
#[derive(Deserialize)]
struct Hosts {
    #[serde(default)]
    hosts: toml::Table,
}

/// Returns what `source` sets on `host`; nothing if it has no table for it.
///
/// # Errors
/// The file is no TOML, or the host's entry is no table.
pub fn host_overrides(source: &Source, host: &str) -> Result<Vec<Override>, FileError> {
    let hosts: Hosts = toml::from_str(&source.text).map_err(|e| FileError::in_file(source, &e))?;
    match hosts.hosts.get(host) {
        None => Ok(Vec::new()),
        Some(toml::Value::Table(table)) => Ok(Override::from_table(table)),
        Some(_) => Err(FileError::Refused {
            what: format!("{}: `hosts.{host}` is no table", source.shown),
            help: Some(format!("write `[hosts.{host}]`, and keys of the file below it")),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::parse;

    #[test]
    fn a_host_has_its_own_values_and_all_others_the_files() {
        let text = "[storage.disk]\ndirectory = \"/srv/a\"\n[load]\nclients = 4\n\
                    [hosts.db1.storage.disk]\ndirectory = \"/srv/b\"\n\
                    [hosts.\"db2.example\".load]\nclients = 9\n";
        let file =
            Source { name: "try".into(), shown: "try".into(), text: text.into(), base: "/".into() };
        let found = |host: &str| {
            let overrides = host_overrides(&file, host).unwrap();
            // A host is sent them as text.
            for sent in &overrides {
                assert_eq!(Override::parse(&sent.given).unwrap(), *sent);
            }
            let experiment = parse(&file, &overrides).unwrap();
            (experiment.load.clients.unwrap().get(), format!("{:?}", experiment.storage["disk"]))
        };
        let (clients, storage) = found("db1");
        assert!(clients == 4 && storage.contains("/srv/b"), "{storage}");
        let (clients, storage) = found("db2.example");
        assert!(clients == 9 && storage.contains("/srv/a"), "{storage}");
        assert!(found("db3").1.contains("/srv/a"));
    }
}
