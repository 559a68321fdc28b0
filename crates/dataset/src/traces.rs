//! What loads leave in a database: comments that say who made a table, and a table of pgdyno's own
//! for what is loaded already, which goes at the end.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pgdyno_host::postgres::ControlClient;
use pgdyno_host::postgres::schema::MARK;
use postgres_protocol::escape::escape_literal;

use crate::{DatasetError, Filling};

/// The table that names the pieces that are loaded.
pub(crate) const PROGRESS: &str = "pgdyno_load";

/// What becomes of tables that are there before the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// They stay, and the load is refused; one of the same data that was begun and not ended goes
    /// on.
    Keep,
    /// Those that pgdyno made are dropped; if there are others, they stay and the load is refused.
    ReplaceOurs,
}

/// How a load begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// Nothing is there.
    Fresh,
    /// It was begun before: these pieces are loaded.
    GoOn(BTreeSet<String>),
}

/// The comment on the tables of `filling`.
pub(crate) fn comment(filling: &Filling<'_>) -> String {
    format!("{}: {}", filling.mark, filling.identity())
}

/// What the progress table's comment says: also what the pieces are cut by.
fn progress_comment(filling: &Filling<'_>) -> String {
    format!("{}, chunks of {} rows", comment(filling), filling.chunk)
}

/// SQL that makes the progress table.
pub(crate) fn make_progress(filling: &Filling<'_>) -> String {
    let comment = escape_literal(&progress_comment(filling));
    let table = filling.table(PROGRESS);
    format!("CREATE TABLE {table} (piece text PRIMARY KEY); COMMENT ON TABLE {table} IS {comment}")
}

/// SQL that notes, in the transaction that loads it, that `piece` is loaded.
pub(crate) fn note(filling: &Filling<'_>, piece: &str) -> String {
    format!("INSERT INTO {} VALUES ({})", filling.table(PROGRESS), escape_literal(piece))
}

/// The comment on table `name`; none if there is no such table.
fn comment_on(
    client: &mut ControlClient,
    filling: &Filling<'_>,
    name: &str,
) -> Result<Option<String>, DatasetError> {
    const ASKED: &str = "SELECT coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '') \
        FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass($1)";
    let found = client
        .query_opt(ASKED, &[&filling.table(name)])
        .map_err(|e| DatasetError::sql(filling, &format!("looking for table {name}"), &e))?;
    Ok(found.map(|row| row.get(0)))
}

/// How long the server may take to notice that another load's session is gone.
const LETTING_GO: Duration = Duration::from_secs(1);

/// Looks at what is there, drops what may be dropped, and tells how to begin.
pub(crate) fn begin(
    client: &mut ControlClient,
    filling: &Filling<'_>,
) -> Result<Beginning, DatasetError> {
    let failed = |doing: &str, e: &postgres::Error| DatasetError::sql(filling, doing, e);
    let asked = "SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtext('pgdyno load'))";
    let begun = Instant::now();
    // Behind a pooler nobody would hold it; there the second to make the tables is refused.
    while !client.is_pooled()
        && !client.query_one(asked, &[]).map_err(|e| failed("locking", &e))?.get::<_, bool>(0)
    {
        // One that has just ended has it until the server notices.
        if begun.elapsed() > LETTING_GO {
            return Err(DatasetError::Busy { data: filling.identity() });
        }
        std::thread::sleep(LETTING_GO / 50);
    }
    let unfinished = comment_on(client, filling, PROGRESS)?;
    if let Some(found) = &unfinished {
        if !found.starts_with(MARK) {
            return Err(exists(PROGRESS, client, filling, false)?);
        }
        if *found == progress_comment(filling) && filling.existing == Existing::Keep {
            let asked = format!("SELECT piece FROM {}", filling.table(PROGRESS));
            let done =
                client.query(&asked, &[]).map_err(|e| failed("asking what is loaded", &e))?;
            return Ok(Beginning::GoOn(done.iter().map(|row| row.get(0)).collect()));
        }
        if filling.existing == Existing::Keep {
            let found = found.trim_start_matches(MARK).trim_start_matches(": ").to_owned();
            return Err(DatasetError::Unfinished { data: filling.identity(), found });
        }
    }
    let mut drop = Vec::new();
    for name in filling.data.table_names() {
        let Some(comment) = comment_on(client, filling, name)? else { continue };
        let ours = comment.starts_with(MARK);
        if !ours || filling.existing == Existing::Keep {
            return Err(exists(name, client, filling, ours)?);
        }
        drop.push(format!("DROP TABLE {} RESTRICT", filling.table(name)));
    }
    if unfinished.is_some() {
        // Partitions not attached yet, and what they are made like, are named in it.
        for (parent, child) in children(client, filling)? {
            let (child, like) = (filling.table(&child), filling.table(&like(&parent)));
            drop.push(format!("DROP TABLE IF EXISTS {child}, {like} RESTRICT"));
        }
        for table in filling.data.tables.iter().filter(|t| t.partition_by.is_some()) {
            drop.push(format!(
                "DROP TABLE IF EXISTS {} RESTRICT",
                filling.table(&like(&table.name))
            ));
        }
        drop.push(format!("DROP TABLE {} RESTRICT", filling.table(PROGRESS)));
    }
    if !drop.is_empty() {
        // Several statements in one message are one transaction.
        client
            .batch_execute(&drop.join("; "))
            .map_err(|e| failed("dropping pgdyno's tables of an earlier load", &e))?;
    }
    Ok(Beginning::Fresh)
}

/// The table that the partitions of `parent` are made like, while they are not all attached.
pub(crate) fn like(parent: &str) -> String {
    format!("pgdyno_like_{parent}")
}

/// Partition number `number` of `parent`.
pub(crate) fn child(parent: &str, number: u32) -> String {
    format!("{parent}_{number}")
}

/// Parents and the partitions of theirs that the progress table names.
fn children(
    client: &mut ControlClient,
    filling: &Filling<'_>,
) -> Result<Vec<(String, String)>, DatasetError> {
    let asked = format!("SELECT piece FROM {}", filling.table(PROGRESS));
    let failed = |e: postgres::Error| DatasetError::sql(filling, "asking what is loaded", &e);
    let pieces = client.query(&asked, &[]).map_err(failed)?;
    let parts = |piece: String| {
        let (parent, number) = piece.split_once(" partition ")?;
        Some((parent.to_owned(), child(parent, number.parse().ok()?)))
    };
    Ok(pieces.iter().filter_map(|row| parts(row.get(0))).collect())
}

/// What is known of a table that is there and should not be.
fn exists(
    name: &str,
    client: &mut ControlClient,
    filling: &Filling<'_>,
    ours: bool,
) -> Result<DatasetError, DatasetError> {
    const ASKED: &str = "SELECT pg_catalog.string_agg(attname || ' ' || pg_catalog.format_type(atttypid, atttypmod), ', ' ORDER BY attnum), \
        (SELECT pg_catalog.pg_size_pretty(pg_catalog.pg_total_relation_size($1::text::regclass))) \
        FROM pg_catalog.pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped";
    let row = client
        .query_one(ASKED, &[&filling.table(name)])
        .map_err(|e| DatasetError::sql(filling, &format!("looking at table {name}"), &e))?;
    let (columns, size): (Option<String>, String) = (row.get(0), row.get(1));
    let whose = if ours { "made by pgdyno" } else { "not made by pgdyno" };
    let found = format!("{whose}, with {size} and the columns {}", columns.unwrap_or_default());
    Ok(DatasetError::Exists { table: name.to_owned(), found, ours })
}
