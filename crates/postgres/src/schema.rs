//! Objects that pgdyno creates in a database that it does not own: marked there, recorded in the
//! journal, and dropped one by one.
//!
//! The journal has an entry for the [`RecordedSchema`] before any object exists. Each object bears
//! the entry's id in its comment ([`mark`]), from the transaction on that creates it
//! ([`mark_new_objects`]). [`drop_marked`] drops the objects with that id and nothing else, without
//! CASCADE. Objects of others stay, and so do objects that others' depend on; both are reported.

use std::fmt::Display;

use pgdyno_connect::control::{Client, ControlError};
pub use pgdyno_exec::journal::RecordedSchema;
use pgdyno_exec::journal::{Journal, MadeId, OwnedResource};
use pgdyno_exec::process::is_gone;
use pgdyno_model::target::Secret;
use postgres_protocol::escape::escape_literal;

use super::external::{ExternalServer, without_password};
use super::server_wide::ServerWideError;

/// The beginning of the comment on everything that pgdyno creates on a server.
pub const MARK: &str = "made by pgdyno";

/// Drops the objects marked with `id` in the recorded database, to which the environment or
/// `.pgpass` may have the password.
///
/// # Errors
/// [`ServerWideError::Unreachable`], or the server's.
pub(crate) fn drop_by_dsn(
    recorded: &RecordedSchema,
    id: &MadeId,
) -> Result<Dropped, ServerWideError> {
    let server = ExternalServer::connect(&Secret::new(recorded.dsn.clone()))
        .map_err(|e| ServerWideError::Unreachable(Box::new(e)))?;
    Ok(drop_marked(&mut server.control()?, id)?)
}

/// The result of dropping marked objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Objects that were dropped by name (count). Objects that belong to them went with them.
    pub objects: usize,
    /// Objects that stay, and why, one line each.
    pub left: Vec<String>,
}

/// Returns the comment that marks objects of the journal's entry `id`.
pub fn mark(id: &impl Display) -> String {
    format!("{MARK} {id}")
}

/// An object by its identifiers on the server.
struct Object {
    class: u32,
    oid: u32,
    kind: String,
    identity: String,
}

impl Object {
    /// Returns the word of SQL for this kind of object.
    fn kind_in_sql(&self) -> &str {
        match self.kind.as_str() {
            "statistics object" => "statistics",
            "composite type" => "type",
            kind => kind,
        }
    }

    /// Drops the object if it is still the one that was found. A table is locked and checked again
    /// first, so that nobody swaps it. Returns whether it was dropped.
    fn drop(&self, client: &mut Client) -> Result<bool, tokio_postgres::Error> {
        const SAME: &str = "SELECT identity = $3 FROM pg_catalog.pg_identify_object($1, $2, 0)";
        let (kind, identity) = (self.kind_in_sql(), &self.identity);
        let mut transaction = client.transaction()?;
        if kind == "table" {
            transaction
                .batch_execute(&format!("LOCK TABLE ONLY {identity} IN ACCESS EXCLUSIVE MODE"))?;
        }
        let row = transaction.query_opt(SAME, &[&self.class, &self.oid, identity])?;
        let is_same: Option<bool> = row.map(|row| row.try_get(0)).transpose()?.flatten();
        if is_same != Some(true) {
            return Ok(false);
        }
        transaction.batch_execute(&format!("DROP {kind} {identity} RESTRICT"))?;
        transaction.commit()?;
        Ok(true)
    }
}

/// Drops the objects marked with `id` one by one, the schema last. The result names those that
/// cannot be dropped, with the server's reason.
///
/// # Errors
/// [`ControlError::Query`]: the marked objects cannot be listed.
pub fn drop_marked(client: &mut Client, id: &MadeId) -> Result<Dropped, ControlError> {
    let failed = |e: tokio_postgres::Error| ControlError::query("look for what pgdyno made", &e);
    // A locked table is reported instead of waited for, and no standby is.
    client
        .batch_execute("SET lock_timeout = '10s'; SET synchronous_commit = local")
        .map_err(failed)?;
    let mut dropped = Dropped::default();
    let mut fruitless = 0;
    loop {
        let before = dropped.objects;
        dropped.left.clear();
        // Dropping an object can free those that it depends on, hence further passes.
        for object in marked(client, id).map_err(failed)? {
            match object.drop(client) {
                Ok(true) => dropped.objects += 1,
                Ok(false) => {}
                Err(e) => dropped.left.push(reason(&object, &e)),
            }
        }
        fruitless = if dropped.objects > before { 0 } else { fruitless + 1 };
        // A commit that was waited for in vain may have come through meanwhile.
        if dropped.left.is_empty() || fruitless > 1 {
            return Ok(dropped);
        }
    }
}

/// Drops objects of dead processes in the database of `client`, which `dsn` leads to, by the
/// journal. Returns one line for each entry.
///
/// The caller must hold the lock on `schema`, so that no living process uses it.
///
/// # Errors
/// The journal, or the server.
pub fn drop_leftovers(
    client: &mut Client,
    dsn: &Secret,
    schema: &str,
    journal: &Journal,
) -> Result<Vec<String>, ServerWideError> {
    let mut told = Vec::new();
    for entry in journal.entries()? {
        let OwnedResource::ServerSchema { path, recorded } = &entry.made else { continue };
        let is_left = is_gone(&entry.owner);
        if !is_left && recorded.schema != schema {
            continue;
        }
        let dropped = drop_marked(client, &entry.id)?;
        let is_place = is_left && without_password(dsn.reveal()).as_ref() == Some(&recorded.dsn);
        let is_here = dropped.objects > 0 || is_place;
        if dropped.objects > 0 {
            told.push(format!("dropped what a pgdyno that was killed left in {}", path.display()));
        }
        if is_here && dropped.left.is_empty() {
            journal.done(&entry.id)?;
        }
        told.extend(dropped.left);
    }
    Ok(told)
}

/// Returns why `object` stays, without the server's hint to use CASCADE.
fn reason(object: &Object, error: &tokio_postgres::Error) -> String {
    let name = format!("{} {}", object.kind, object.identity);
    match error.as_db_error() {
        Some(db) => {
            let detail = db
                .detail()
                .map(|detail| format!(" ({})", detail.replace('\n', ", ")))
                .unwrap_or_default();
            format!("{name} stays: {}{detail}", db.message())
        }
        None => format!("{name} stays: {}", pgdyno_connect::control::error_text(error)),
    }
}

/// Returns the objects marked with `id` in this database, schemas last.
fn marked(client: &mut Client, id: &MadeId) -> Result<Vec<Object>, tokio_postgres::Error> {
    const ASKED: &str = "SELECT d.classoid, d.objoid, i.type, i.identity \
        FROM pg_catalog.pg_description AS d, \
        LATERAL pg_catalog.pg_identify_object(d.classoid, d.objoid, 0) AS i \
        WHERE d.objsubid = 0 AND (d.description = $1 \
        OR pg_catalog.starts_with(d.description, $1 || ':')) \
        AND i.identity IS NOT NULL ORDER BY i.type = 'schema', d.objoid DESC";
    let rows = client.query(ASKED, &[&mark(id)])?;
    let object = |row: &tokio_postgres::Row| {
        Ok(Object {
            class: row.try_get(0)?,
            oid: row.try_get(1)?,
            kind: row.try_get(2)?,
            identity: row.try_get(3)?,
        })
    };
    rows.iter().map(object).collect()
}

/// Objects of a schema, without those that belong to another object of it.
const IN_SCHEMA: &str = "SELECT d.classid, d.objid FROM pg_catalog.pg_depend AS d \
    JOIN pg_catalog.pg_namespace AS n ON n.oid = d.refobjid \
    WHERE d.refclassid = 'pg_catalog.pg_namespace'::regclass AND d.deptype = 'n' \
    AND n.nspname = $1";

/// Returns the objects of `schema`. In a transaction with isolation level REPEATABLE READ, objects
/// that others create meanwhile are not among them.
///
/// # Errors
/// The server's.
pub fn objects_in(
    transaction: &mut Client,
    schema: &str,
) -> Result<Vec<(u32, u32)>, tokio_postgres::Error> {
    let rows = transaction.query(IN_SCHEMA, &[&schema])?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// Puts `comment` on the objects of `schema` that are not among `before`.
///
/// # Errors
/// The server's.
pub fn mark_new_objects(
    transaction: &mut Client,
    schema: &str,
    before: &[(u32, u32)],
    comment: &str,
) -> Result<(), tokio_postgres::Error> {
    const ASKED: &str = "SELECT type, identity FROM pg_catalog.pg_identify_object($1, $2, 0)";
    for (class, oid) in objects_in(transaction, schema)? {
        if before.contains(&(class, oid)) {
            continue;
        }
        let row = transaction.query_one(ASKED, &[&class, &oid])?;
        let object = Object { class, oid, kind: row.try_get(0)?, identity: row.try_get(1)? };
        let (kind, comment) = (object.kind_in_sql(), escape_literal(comment));
        transaction
            .batch_execute(&format!("COMMENT ON {kind} {} IS {comment}", object.identity))?;
    }
    Ok(())
}

/// Returns roles without superuser's rights that may create objects in `schema`, if the session is
/// a superuser's. Such roles could make the session run their code. Empty if the session is not a
/// superuser's.
///
/// # Errors
/// The server's.
pub fn writers(client: &mut Client, schema: &str) -> Result<Vec<String>, tokio_postgres::Error> {
    const ASKED: &str = "SELECT r.rolname::text FROM pg_catalog.pg_roles AS r, \
        pg_catalog.pg_namespace AS n \
        WHERE n.nspname = $1 AND NOT r.rolsuper AND NOT pg_catalog.starts_with(r.rolname, 'pg_') \
        AND pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE') \
        AND (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) ORDER BY 1";
    let rows = client.query(ASKED, &[&schema])?;
    rows.iter().map(|row| row.try_get(0)).collect()
}
