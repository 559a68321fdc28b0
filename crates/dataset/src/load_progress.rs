//! The progress of a load, kept in the database itself.
//!
//! Comments on tables say that pgdyno made them and with which data. The table `pgdyno_load` names
//! the pieces that are complete; it is dropped when the load ends.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pgdyno_connect::control::ControlClient;
use pgdyno_postgres::schema::MARK;
use postgres_protocol::escape::escape_literal;

use crate::bulk_load::{BulkLoad, Existing};
use crate::error::DatasetError;

/// The table that names the complete pieces.
pub(crate) const PROGRESS: &str = "pgdyno_load";

/// How a load begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// No table exists.
    Fresh,
    /// An earlier load was interrupted; these pieces are complete.
    GoOn(BTreeSet<String>),
}

/// Returns the comment on the tables of `load`.
pub(crate) fn comment(load: &BulkLoad<'_>) -> String {
    format!("{}: {}", load.mark, load.identity())
}

/// Returns the comment on the progress table. It names the size of chunks, on which pieces depend.
fn progress_comment(load: &BulkLoad<'_>) -> String {
    format!("{}, chunks of {} rows", comment(load), load.chunk)
}

/// Returns SQL that makes the progress table.
pub(crate) fn make_progress(load: &BulkLoad<'_>) -> String {
    let comment = escape_literal(&progress_comment(load));
    let table = load.table(PROGRESS);
    format!("CREATE TABLE {table} (piece text PRIMARY KEY); COMMENT ON TABLE {table} IS {comment}")
}

/// Returns SQL that marks `piece` as complete, for the transaction that loads it.
pub(crate) fn note(load: &BulkLoad<'_>, piece: &str) -> String {
    format!("INSERT INTO {} VALUES ({})", load.table(PROGRESS), escape_literal(piece))
}

/// Returns the comment on table `name`; none if there is no such table.
fn comment_on(
    client: &mut ControlClient,
    load: &BulkLoad<'_>,
    name: &str,
) -> Result<Option<String>, DatasetError> {
    const ASKED: &str = "SELECT coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '') \
        FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass($1)";
    let found = client
        .query_opt(ASKED, &[&load.table(name)])
        .map_err(|e| DatasetError::sql(load, &format!("looking for table {name}"), &e))?;
    Ok(found.map(|row| row.get(0)))
}

/// Time that the server may take to release the lock of a session that has ended.
const LETTING_GO: Duration = Duration::from_secs(1);

/// Takes the lock that lets one load at a time into the database.
fn lock(client: &mut ControlClient, load: &BulkLoad<'_>) -> Result<(), DatasetError> {
    let asked = "SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtext('pgdyno load'))";
    let begun = Instant::now();
    // Behind a pooler nobody would hold it; there the second to make the tables is refused.
    while !client.is_pooled()
        && !client
            .query_one(asked, &[])
            .map_err(|e| DatasetError::sql(load, "locking", &e))?
            .get::<_, bool>(0)
    {
        // A session that has just ended holds it until the server notices.
        if begun.elapsed() > LETTING_GO {
            return Err(DatasetError::refused(
                format!(
                    "load {}: another pgdyno is loading into this database at this moment",
                    load.identity()
                ),
                "wait for it",
            ));
        }
        std::thread::sleep(LETTING_GO / 50);
    }
    Ok(())
}

/// Decides how to begin, and drops tables of earlier loads where the caller allows it.
pub(crate) fn begin(
    client: &mut ControlClient,
    load: &BulkLoad<'_>,
) -> Result<Beginning, DatasetError> {
    let failed = |doing: &str, e: &tokio_postgres::Error| DatasetError::sql(load, doing, e);
    lock(client, load)?;
    let unfinished = comment_on(client, load, PROGRESS)?;
    if let Some(found) = &unfinished {
        if !found.starts_with(MARK) {
            return Err(exists(PROGRESS, client, load, false)?);
        }
        if *found == progress_comment(load) && load.existing == Existing::Keep {
            return Ok(Beginning::GoOn(complete_pieces(client, load)?));
        }
        if load.existing == Existing::Keep {
            let found = found.trim_start_matches(MARK).trim_start_matches(": ");
            return Err(DatasetError::refused(
                format!(
                    "load {}: the load of {found} was begun here and not ended",
                    load.identity()
                ),
                "end that one with the options it was begun with; or `pgdyno load --replace` drops \
                 what it made",
            ));
        }
    }
    let mut made = Vec::new();
    for name in load.data.table_names() {
        let Some(comment) = comment_on(client, load, name)? else { continue };
        let ours = comment.starts_with(MARK);
        if !ours || load.existing == Existing::Keep {
            return Err(exists(name, client, load, ours)?);
        }
        made.push(load.table(name));
    }
    // Together, because one may be a partition of another, or refer to it.
    let mut drop = Vec::new();
    if !made.is_empty() {
        drop.push(format!("DROP TABLE {} RESTRICT", made.join(", ")));
    }
    if unfinished.is_some() {
        // Partitions not attached yet, and what they are made like, are named in it.
        for piece in complete_pieces(client, load)? {
            let Some((parent, number)) = piece.split_once(" partition ") else { continue };
            let Ok(number) = number.parse() else { continue };
            let (child, like) = (load.table(&child(parent, number)), load.table(&like(parent)));
            drop.push(format!("DROP TABLE IF EXISTS {child}, {like} RESTRICT"));
        }
        for table in load.data.tables.iter().filter(|t| t.partition_by.is_some()) {
            drop.push(format!("DROP TABLE IF EXISTS {} RESTRICT", load.table(&like(&table.name))));
        }
        drop.push(format!("DROP TABLE {} RESTRICT", load.table(PROGRESS)));
    }
    if !drop.is_empty() {
        // Several statements in one message are one transaction.
        client
            .batch_execute(&drop.join("; "))
            .map_err(|e| failed("dropping pgdyno's tables of an earlier load", &e))?;
    }
    Ok(Beginning::Fresh)
}

/// Returns the name of the template of `parent`'s partitions, which exists until all are attached.
pub(crate) fn like(parent: &str) -> String {
    format!("pgdyno_like_{parent}")
}

/// Returns the name of partition `number` of `parent`.
pub(crate) fn child(parent: &str, number: u32) -> String {
    format!("{parent}_{number}")
}

/// Returns the names of the complete pieces.
fn complete_pieces(
    client: &mut ControlClient,
    load: &BulkLoad<'_>,
) -> Result<BTreeSet<String>, DatasetError> {
    let asked = format!("SELECT piece FROM {}", load.table(PROGRESS));
    let pieces = client
        .query(&asked, &[])
        .map_err(|e| DatasetError::sql(load, "asking what is loaded", &e))?;
    Ok(pieces.iter().map(|row| row.get(0)).collect())
}

/// Returns the error for a table that exists and should not.
fn exists(
    name: &str,
    client: &mut ControlClient,
    load: &BulkLoad<'_>,
    ours: bool,
) -> Result<DatasetError, DatasetError> {
    const ASKED: &str = "SELECT pg_catalog.string_agg(attname || ' ' || \
        pg_catalog.format_type(atttypid, atttypmod), ', ' ORDER BY attnum), \
        (SELECT pg_catalog.pg_size_pretty(pg_catalog.pg_total_relation_size($1::text::regclass))) \
        FROM pg_catalog.pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 \
        AND NOT attisdropped";
    let row = client
        .query_one(ASKED, &[&load.table(name)])
        .map_err(|e| DatasetError::sql(load, &format!("looking at table {name}"), &e))?;
    let (columns, size): (Option<String>, String) = (row.get(0), row.get(1));
    let (whose, help) = match ours {
        true => (
            "made by pgdyno",
            "`pgdyno load --replace` drops tables that pgdyno made, and only those; or name \
             another database",
        ),
        false => (
            "not made by pgdyno",
            "pgdyno drops no table that it did not make: name another database, or another \
             search_path in the DSN",
        ),
    };
    let columns = columns.unwrap_or_default();
    let found = format!("it is there already, {whose}, with {size} and the columns {columns}");
    Ok(DatasetError::refused(format!("make table `{name}`: {found}"), help))
}
