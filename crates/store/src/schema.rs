//! A store's file may come from elsewhere: nothing in it is trusted.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;

use super::error::{StoreError, sqlite};

/// The longest text or blob, and the longest row (bytes): far more than any plan or telemetry
/// takes.
const MOST_BYTES: i32 = 256 << 20;

/// Makes SQLite run nothing that the file brings along, and bounds what it takes.
pub(crate) fn distrust(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MOST_BYTES)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.execute_batch("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;")
}

/// Refuses a store whose tables, views, indexes and triggers are not those that the migrations
/// make. Tables, views and indexes under other names are the user's own; a trigger is not: it would
/// run when pgdyno writes.
pub(super) fn check(
    connection: &Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<(), StoreError> {
    let failed = sqlite(path, "read the schema");
    let known = Connection::open_in_memory().map_err(&failed)?;
    migrations.iter().try_for_each(|script| known.execute_batch(script)).map_err(&failed)?;
    let (known, found) = (objects(&known).map_err(&failed)?, objects(connection).map_err(&failed)?);
    let wrong =
        |found: String| StoreError::Corrupt { path: path.into(), what: "a schema".into(), found };
    for (object @ (kind, name), text) in &known {
        match found.get(object) {
            None => return Err(wrong(format!("the {kind} {name} is missing"))),
            Some(other) if other != text => {
                return Err(wrong(format!("the {kind} {name} is not as pgdyno makes it")));
            }
            Some(_) => {}
        }
    }
    match found.keys().find(|object| object.0 == "trigger" && !known.contains_key(*object)) {
        Some((_, name)) => Err(wrong(format!("the trigger {name} is not pgdyno's"))),
        None => Ok(()),
    }
}

/// By kind and name, what each was made with.
type Objects = BTreeMap<(String, String), (String, Option<String>)>;

fn objects(connection: &Connection) -> rusqlite::Result<Objects> {
    connection
        .prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema")?
        .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, row.get(3)?))))?
        .collect()
}

/// Whether another account may change the store or put a journal beside it. One that cannot be
/// looked at is.
pub(crate) fn is_foreign(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return true };
    let us = rustix::process::geteuid().as_raw();
    let is_ours = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|found| {
            let is_owner = found.uid() == us || found.uid() == 0;
            // A group of the owner's own number has nobody else in it, as `useradd` makes them.
            let is_own_group = found.gid() == 0 || found.gid() == found.uid();
            is_owner && found.mode() & 0o002 == 0 && (found.mode() & 0o020 == 0 || is_own_group)
        })
    };
    !is_ours(&path) || !path.parent().is_some_and(is_ours)
}
