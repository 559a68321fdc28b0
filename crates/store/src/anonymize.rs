//! Takes what identifies a machine out of the copy of a record.

use rusqlite::{Connection, params};
use serde_json::Value;

use super::seal;
use super::write::Failure;

/// Whether a copy of records still tells which machine they are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Records stay as they are.
    Kept,
    /// The machine's name and id, its boot's id, the kernel's command line, and the serial numbers
    /// and world-wide names of disks are left out.
    Removed,
}

/// Tables with documents on a machine and its storage.
const TABLES: [&str; 3] = ["session", "probe_record", "crash_record"];

/// Leaves out of `record` what identifies its machine, and seals the rows anew. `to` is in a
/// transaction in which rows may be changed.
pub(super) fn anonymize(to: &Connection, record: &str) -> Result<(), Failure> {
    to.execute("UPDATE session SET owner_boot_id = '' WHERE run = ?", [record])?;
    for table in TABLES {
        let rows = format!("SELECT rowid, host, storage FROM {table} WHERE run = ?1 OR id = ?1");
        let rows: Vec<(i64, String, String)> = to
            .prepare(&rows)?
            .query_map([record], |row| row.try_into())?
            .collect::<rusqlite::Result<_>>()?;
        let update = format!("UPDATE {table} SET host = ?, storage = ? WHERE rowid = ?");
        for (row, host, storage) in rows {
            let host = without(&host, &["name", "id", "cmdline"])?;
            let storage = without(&storage, &["serial", "serial_number", "wwn"])?;
            to.execute(&update, params![host, storage, row])?;
        }
    }
    Ok(seal::renew(to, record)?)
}

/// A JSON document without the values of `keys`, wherever they stand.
fn without(document: &str, keys: &[&str]) -> rusqlite::Result<String> {
    fn remove(value: &mut Value, keys: &[&str]) {
        match value {
            Value::Array(all) => all.iter_mut().for_each(|value| remove(value, keys)),
            Value::Object(all) => {
                all.retain(|key, _| !keys.contains(&key.as_str()));
                all.values_mut().for_each(|value| remove(value, keys));
            }
            _ => {}
        }
    }
    let unread = |e| rusqlite::Error::ToSqlConversionFailure(Box::new(e));
    let mut value = serde_json::from_str(document).map_err(unread)?;
    remove(&mut value, keys);
    serde_json::to_string(&value).map_err(unread)
}
