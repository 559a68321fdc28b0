//! Schema versions: numbered scripts, applied in order, each in the transaction that raises the
//! version.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::error::{StoreError, sqlite};

/// Marks a SQLite file as a store: `pgdy` in ASCII.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"pgdy");

/// The script at index n brings version n to version n + 1. Published scripts never change.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001.sql"),
    include_str!("../migrations/0002.sql"),
    include_str!("../migrations/0003.sql"),
    include_str!("../migrations/0004.sql"),
    include_str!("../migrations/0005.sql"),
    include_str!("../migrations/0006.sql"),
    include_str!("../migrations/0007.sql"),
    include_str!("../migrations/0008.sql"),
    include_str!("../migrations/0009.sql"),
    include_str!("../migrations/0010.sql"),
];

/// Makes sure that `path` is a store (an empty file becomes one) and of the newest version.
pub(super) fn bring_up_to_date(
    connection: &mut Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<(), StoreError> {
    let failed = sqlite(path, "migrate the schema");
    if version(connection, path, migrations)? == migrations.len() {
        return Ok(());
    }
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
    // Another process may have migrated between the look and the lock.
    let from = version(&transaction, path, migrations)?;
    for (script, becomes) in migrations.iter().zip(1_u32..).skip(from) {
        transaction.execute_batch(script).map_err(&failed)?;
        transaction.pragma_update(None, "user_version", becomes).map_err(&failed)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(&failed)?;
    transaction.commit().map_err(failed)
}

/// Whether the store has fewer versions than are known, none included.
pub(super) fn is_older(
    connection: &Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<bool, StoreError> {
    Ok(version(connection, path, migrations)? < migrations.len())
}

/// The schema's version; 0 for an empty file.
///
/// SQLite itself looks whether the file is a database. To open it beside SQLite would release, on
/// closing, the locks of all connections that this process has to it.
fn version(connection: &Connection, path: &Path, migrations: &[&str]) -> Result<usize, StoreError> {
    let read = |query: &str| connection.query_row(query, [], |row| row.get::<_, i64>(0));
    let failed = sqlite(path, "read the schema's version");
    let application = read("PRAGMA application_id").map_err(|error| {
        if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) {
            let found = "no SQLite database".to_owned();
            return StoreError::NotAStore { path: path.into(), found };
        }
        failed(error)
    })?;
    let version = read("PRAGMA user_version").map_err(&failed)?;
    let tables = read("SELECT count(*) FROM sqlite_schema").map_err(&failed)?;
    if application == 0 && version == 0 && tables == 0 {
        return Ok(0);
    }
    if application != i64::from(APPLICATION_ID) {
        return Err(StoreError::NotAStore {
            path: path.into(),
            found: "another program's SQLite database".into(),
        });
    }
    match usize::try_from(version) {
        Ok(version) if version <= migrations.len() => Ok(version),
        _ => Err(StoreError::Newer {
            path: path.into(),
            version: u32::try_from(version).unwrap_or(u32::MAX),
            known: u32::try_from(migrations.len()).unwrap_or(u32::MAX),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_an_older_version_is_brought_to_the_newest_and_keeps_its_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let first = "CREATE TABLE a (x INTEGER); ";
        let second = "ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 7;";
        let mut connection = Connection::open(&path).unwrap();
        bring_up_to_date(&mut connection, &path, &[first]).unwrap();
        connection.execute("INSERT INTO a VALUES (1)", []).unwrap();
        bring_up_to_date(&mut connection, &path, &[first, second]).unwrap();
        let row: (i64, i64) =
            connection.query_row("SELECT x, y FROM a", [], |r| Ok((r.get(0)?, r.get(1)?))).unwrap();
        assert_eq!(row, (1, 7));
        let error = bring_up_to_date(&mut connection, &path, &[first]).unwrap_err();
        assert!(matches!(error, StoreError::Newer { version: 2, known: 1, .. }), "{error}");
    }

    #[test]
    fn a_migration_that_fails_leaves_the_version_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let first = "CREATE TABLE a (x INTEGER);";
        let mut connection = Connection::open(&path).unwrap();
        bring_up_to_date(&mut connection, &path, &[first]).unwrap();
        let broken = "CREATE TABLE b (x INTEGER); CREATE TABLE a (x INTEGER);";
        bring_up_to_date(&mut connection, &path, &[first, broken]).unwrap_err();
        assert_eq!(version(&connection, &path, &[first]).unwrap(), 1);
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 1);
    }
}
