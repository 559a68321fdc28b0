//! What pgdyno makes in a database that it does not own: marked there, journalled here, and dropped
//! object by object.
//!
//! The journal's id of a [`RecordedSchema`] is noted before anything is made. Each object then
//! bears it in its comment ([`mark`]), from the transaction on that makes it
//! ([`mark_new_objects`]). [`drop_marked`] drops what bears the id and nothing else, without
//! CASCADE: what others have put there, or what of theirs depends on it, stays, and is reported.

use std::fmt::Display;

use pgdyno_connect::control::Client;
use pgdyno_model::target::Secret;
use postgres_protocol::escape::escape_literal;

use super::external::{ExternalServer, without_password};
use super::server_wide::ServerWideError;
use pgdyno_connect::control::ControlError;
pub use pgdyno_exec::journal::RecordedSchema;
use pgdyno_exec::journal::{Journal, Made, MadeId};
use pgdyno_exec::process::is_alive;

/// How the comment on everything begins that pgdyno makes on a server.
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

/// What became of marked objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Objects that were dropped by name; what belongs to them went with them (count).
    pub objects: usize,
    /// What stays, and what stands in the way, in words.
    pub left: Vec<String>,
}

/// The mark of what the journal's entry `id` names.
#[must_use]
pub fn mark(id: &impl Display) -> String {
    format!("{MARK} {id}")
}

/// An object as the server names it.
struct Object {
    class: u32,
    oid: u32,
    kind: String,
    identity: String,
}

impl Object {
    /// What SQL calls the kind of object.
    fn kind_in_sql(&self) -> &str {
        match self.kind.as_str() {
            "statistics object" => "statistics",
            "composite type" => "type",
            kind => kind,
        }
    }

    /// Drops it if it still is what was found: a table is locked and looked at again first, so that
    /// nobody swaps it.
    fn drop(&self, client: &mut Client) -> Result<bool, postgres::Error> {
        const SAME: &str = "SELECT identity = $3 FROM pg_catalog.pg_identify_object($1, $2, 0)";
        let (kind, identity) = (self.kind_in_sql(), &self.identity);
        let mut transaction = client.transaction()?;
        if kind == "table" {
            transaction
                .batch_execute(&format!("LOCK TABLE ONLY {identity} IN ACCESS EXCLUSIVE MODE"))?;
        }
        let row = transaction.query_opt(SAME, &[&self.class, &self.oid, identity])?;
        if row.and_then(|row| row.get::<_, Option<bool>>(0)) != Some(true) {
            return Ok(false);
        }
        transaction.batch_execute(&format!("DROP {kind} {identity} RESTRICT"))?;
        transaction.commit()?;
        Ok(true)
    }
}

/// Drops what bears `id`, each object by itself, and the schema last. What cannot be dropped is
/// told with the server's reason.
///
/// # Errors
/// [`ControlError::Query`]: it cannot be seen what bears the mark.
pub fn drop_marked(client: &mut Client, id: &MadeId) -> Result<Dropped, ControlError> {
    let failed = |e: postgres::Error| ControlError::query("look for what pgdyno made", &e);
    // A table that somebody has locked is told of.
    client.batch_execute("SET lock_timeout = '10s'").map_err(failed)?;
    let mut dropped = Dropped::default();
    loop {
        let mut progress = false;
        dropped.left.clear();
        // What an object depends on can go once the object has: then they are gone through again.
        for object in marked(client, id).map_err(failed)? {
            match object.drop(client) {
                Ok(true) => {
                    dropped.objects += 1;
                    progress = true;
                }
                Ok(false) => {}
                Err(e) => dropped.left.push(reason(&object, &e)),
            }
        }
        if dropped.left.is_empty() || !progress {
            return Ok(dropped);
        }
    }
}

/// Drops what dead processes left in the database of `client`, which `dsn` leads to, by the
/// journal; a line for each. Whoever calls it holds the lock on `schema`, so that no living process
/// uses that one.
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
        let Made::ServerSchema { path, recorded } = &entry.made else { continue };
        let is_left = !is_alive(&entry.owner);
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

/// Why `object` stays; without the server's hint, which is to use CASCADE.
fn reason(object: &Object, error: &postgres::Error) -> String {
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

/// What bears `id` in this database: tables and the like before schemas.
fn marked(client: &mut Client, id: &MadeId) -> Result<Vec<Object>, postgres::Error> {
    const ASKED: &str = "SELECT d.classoid, d.objoid, i.type, i.identity FROM pg_catalog.pg_description AS d, \
        LATERAL pg_catalog.pg_identify_object(d.classoid, d.objoid, 0) AS i \
        WHERE d.objsubid = 0 AND (d.description = $1 OR pg_catalog.starts_with(d.description, $1 || ':')) \
        AND i.identity IS NOT NULL ORDER BY i.type = 'schema', d.objoid DESC";
    let rows = client.query(ASKED, &[&mark(id)])?;
    let object = |row: &postgres::Row| Object {
        class: row.get(0),
        oid: row.get(1),
        kind: row.get(2),
        identity: row.get(3),
    };
    Ok(rows.iter().map(object).collect())
}

/// Objects that lie in a schema: all but what belongs to one of them.
const IN_SCHEMA: &str = "SELECT d.classid, d.objid FROM pg_catalog.pg_depend AS d \
    JOIN pg_catalog.pg_namespace AS n ON n.oid = d.refobjid \
    WHERE d.refclassid = 'pg_catalog.pg_namespace'::regclass AND d.deptype = 'n' AND n.nspname = $1";

/// The objects that lie in `schema`. In a transaction of isolation level REPEATABLE READ, those
/// that others make meanwhile are not among them.
///
/// # Errors
/// The server's.
pub fn objects_in(
    transaction: &mut Client,
    schema: &str,
) -> Result<Vec<(u32, u32)>, postgres::Error> {
    let rows = transaction.query(IN_SCHEMA, &[&schema])?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Comments with `comment` on what lies in `schema` now and was not among `before`.
///
/// # Errors
/// The server's.
pub fn mark_new_objects(
    transaction: &mut Client,
    schema: &str,
    before: &[(u32, u32)],
    comment: &str,
) -> Result<(), postgres::Error> {
    const ASKED: &str = "SELECT type, identity FROM pg_catalog.pg_identify_object($1, $2, 0)";
    for (class, oid) in objects_in(transaction, schema)? {
        if before.contains(&(class, oid)) {
            continue;
        }
        let row = transaction.query_one(ASKED, &[&class, &oid])?;
        let object = Object { class, oid, kind: row.get(0), identity: row.get(1) };
        let (kind, comment) = (object.kind_in_sql(), escape_literal(comment));
        transaction
            .batch_execute(&format!("COMMENT ON {kind} {} IS {comment}", object.identity))?;
    }
    Ok(())
}

/// Roles without superuser's rights that may put objects into `schema`, where the session is a
/// superuser's: they could have it run what they like. None where the session is not a superuser's.
///
/// # Errors
/// The server's.
pub fn writers(client: &mut Client, schema: &str) -> Result<Vec<String>, postgres::Error> {
    const ASKED: &str = "SELECT r.rolname::text FROM pg_catalog.pg_roles AS r, pg_catalog.pg_namespace AS n \
        WHERE n.nspname = $1 AND NOT r.rolsuper AND NOT pg_catalog.starts_with(r.rolname, 'pg_') \
        AND pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE') \
        AND (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) ORDER BY 1";
    let rows = client.query(ASKED, &[&schema])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
