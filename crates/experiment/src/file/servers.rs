//! Servers as levels: programs are found from the file's folder, and DSNs give way to names that
//! may be shown.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pgdyno_model::experiment::Factor;
use pgdyno_model::level::{GroupKey, Key, LevelValue};
use pgdyno_model::target::Secret;
use pgdyno_postgres::external::server_name;

use super::error::Complaint;
use super::factors::{key_name, sets_of};

/// Takes the DSNs that `is_taken` chooses out of `factors` and adds them to `servers` by name. What
/// is left in a level is the name; the label of a plain level is the name too.
///
/// Every DSN can be read: the levels were checked.
fn take(
    factors: &mut [Factor],
    is_taken: impl Fn(&Key) -> bool,
    servers: &mut BTreeMap<String, Secret>,
) {
    for level in factors.iter_mut().flat_map(|factor| &mut factor.levels) {
        for (_, value) in level.sets.iter_mut().filter(|(key, _)| is_taken(key)) {
            let dsn = std::mem::replace(value, LevelValue::Bool(false));
            let name = LevelValue::Text(add_server(servers, dsn.to_string()));
            if level.label == dsn {
                level.label = name.clone();
            }
            *value = name;
        }
    }
}

/// Takes the DSNs of the servers under test out of `factors` and returns them by name.
pub(super) fn take_servers(factors: &mut [Factor]) -> BTreeMap<String, Secret> {
    let mut servers = BTreeMap::new();
    take(factors, |key| *key == Key::PostgresDsn, &mut servers);
    servers
}

/// Takes the DSNs of groups of clients out of `factors` and `groups`, and adds them to `servers`.
/// `is_external`: the server under test is not pgdyno's.
///
/// # Errors
/// A group has a DSN beside a server that pgdyno makes.
pub(super) fn take_groups_servers(
    factors: &mut [Factor],
    groups: &mut [(Key, LevelValue)],
    is_external: bool,
    servers: &mut BTreeMap<String, Secret>,
) -> Result<(), Complaint> {
    let is_dsn = |key: &Key| matches!(key, Key::Group(_, GroupKey::PostgresDsn));
    let mut sets = factors.iter().flat_map(|f| &f.levels).flat_map(|l| &l.sets).chain(&*groups);
    if let Some((key, _)) = sets.find(|(key, _)| is_dsn(key)).filter(|_| !is_external) {
        return Err(Complaint::new(format!(
            "`{}` names a server beside one that pgdyno makes",
            key_name(key)
        ))
        .with_help("name the server of the other clients, too: `postgres.dsn`"));
    }
    take(factors, is_dsn, servers);
    for (_, value) in groups.iter_mut().filter(|(key, _)| is_dsn(key)) {
        *value = LevelValue::Text(add_server(servers, value.to_string()));
    }
    Ok(())
}

/// Returns the name under which `servers` holds `dsn`, after adding it. Where several reach one
/// place, as different roles, they are numbered.
fn add_server(servers: &mut BTreeMap<String, Secret>, dsn: String) -> String {
    let base = server_name(&dsn).unwrap_or_else(|| "server".to_owned());
    let mut name = base.clone();
    let mut number = 1;
    while servers.get(&name).is_some_and(|known| known.reveal() != dsn) {
        number += 1;
        name = format!("{base} ({number})");
    }
    servers.entry(name.clone()).or_insert_with(|| Secret::new(dsn));
    name
}

/// Places the programs that `factors` name: `at` tells where a relative path starts from.
pub(super) fn place_programs(factors: &mut [Factor], at: impl Fn(PathBuf) -> PathBuf) {
    for (_, value) in sets_of(factors).filter(|(key, _)| *key == Key::PostgresBindir) {
        *value = LevelValue::Text(at(PathBuf::from(value.to_string())).display().to_string());
    }
}
