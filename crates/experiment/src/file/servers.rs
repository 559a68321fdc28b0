//! Servers as levels: programs are found from the file's folder, and DSNs give way to names that
//! may be shown.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pgdyno_model::experiment::Factor;
use pgdyno_model::level::{Key, LevelValue};
use pgdyno_model::target::Secret;
use pgdyno_postgres::external::server_name;

use super::factors::values_of;

/// Takes the DSNs out of `factors` and returns them by name. What is left in a level is the name;
/// the label of a plain level is the name too.
///
/// Every DSN can be read: the levels were checked.
pub(super) fn take_servers(factors: &mut [Factor]) -> BTreeMap<String, Secret> {
    let mut servers = BTreeMap::new();
    for level in factors.iter_mut().flat_map(|factor| &mut factor.levels) {
        for (_, value) in level.sets.iter_mut().filter(|(key, _)| *key == Key::PostgresDsn) {
            let dsn = value.to_string();
            let name = LevelValue::Text(add_server(&mut servers, dsn));
            if level.label == *value {
                level.label = name.clone();
            }
            *value = name;
        }
    }
    servers
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
    for value in values_of(factors, &Key::PostgresBindir) {
        *value = LevelValue::Text(at(PathBuf::from(value.to_string())).display().to_string());
    }
}
