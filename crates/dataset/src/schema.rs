//! The tables of a load: made, placed on tablespaces, and refused where others may write.

use pgdyno_connect::control::{ControlClient, SEARCH_PATH, Transaction, path_of_schema};
use pgdyno_model::load_strategy::LoadStrategy;
use pgdyno_postgres::schema;
use postgres_protocol::escape::escape_literal;

use crate::bulk_load::BulkLoad;
use crate::error::DatasetError;
use crate::load_progress::{self, like};

/// Makes the tables and the progress table in one transaction.
pub(crate) fn make_tables(
    client: &mut ControlClient,
    load: &BulkLoad<'_>,
    strategies: &[LoadStrategy],
) -> Result<(), DatasetError> {
    let failed = |doing: &str, e: &tokio_postgres::Error| DatasetError::sql(load, doing, e);
    let mut transaction = client.transaction().map_err(|e| failed("making its tables", &e))?;
    let before =
        make_schema(&mut transaction, load).map_err(|e| failed("making its tables", &e))?;
    for (table, tablespace) in load.placed {
        let moving = format!("ALTER TABLE {} SET TABLESPACE {tablespace}", load.table(table));
        transaction.batch_execute(&moving).map_err(|e| failed(&moving, &e))?;
    }
    if !load.data.after_schema.is_empty() {
        execute_in_schema(&mut transaction, load, &load.data.after_schema)
            .map_err(|e| failed("running its `after_schema`", &e))?;
    }
    for (table, strategy) in load.data.tables.iter().zip(strategies) {
        if let (LoadStrategy::Partitions, Some(by)) = (strategy, &table.partition_by) {
            let (name, new_name) = (load.table(&table.name), like(&table.name));
            let like = load.table(&new_name);
            let sql = format!(
                "ALTER TABLE {name} RENAME TO {new_name}; \
                 CREATE TABLE {name} (LIKE {like} INCLUDING ALL) PARTITION BY RANGE ({by})"
            );
            transaction.batch_execute(&sql).map_err(|e| failed(&sql, &e))?;
        }
    }
    let comment = load_progress::comment(load);
    match before {
        Some(before) => schema::mark_new_objects(&mut transaction, load.schema, &before, &comment)
            .map_err(|e| failed("marking what it made", &e))?,
        None => {
            for name in load.data.table_names() {
                let (name, comment) = (load.table(name), escape_literal(&comment));
                let sql = format!("COMMENT ON TABLE {name} IS {comment}");
                transaction.batch_execute(&sql).map_err(|e| failed(&sql, &e))?;
            }
        }
    }
    let sql = load_progress::make_progress(load);
    transaction.batch_execute(&sql).map_err(|e| failed("making pgdyno's own table", &e))?;
    transaction.commit().map_err(|e| failed("making its tables", &e))
}

/// Makes the workload's tables in the load's schema.
///
/// If all that it makes is to be marked, returns the objects that the schema had before. The
/// transaction then has a snapshot that shows no other session's objects.
fn make_schema(
    transaction: &mut Transaction<'_>,
    load: &BulkLoad<'_>,
) -> Result<Option<Vec<(u32, u32)>>, tokio_postgres::Error> {
    let before = match load.mark {
        schema::MARK => None,
        _ => {
            transaction.batch_execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
            Some(schema::objects_in(transaction, load.schema)?)
        }
    };
    execute_in_schema(transaction, load, &load.data.schema)?;
    Ok(before)
}

/// Runs the workload's own `sql` in the load's schema.
fn execute_in_schema(
    transaction: &mut Transaction<'_>,
    load: &BulkLoad<'_>,
    sql: &str,
) -> Result<(), tokio_postgres::Error> {
    let path = path_of_schema(load.schema);
    let scale = load.scale;
    let settings = format!("SET LOCAL search_path = {path}; SET LOCAL pgdyno.scale = {scale}");
    transaction.batch_execute(&settings)?;
    transaction.batch_execute(sql)?;
    transaction.batch_execute(&format!("SET LOCAL search_path = {SEARCH_PATH}"))
}

/// Refuses a schema in which others could place code that a superuser's session then runs.
pub(crate) fn check_schema(
    client: &mut ControlClient,
    load: &BulkLoad<'_>,
) -> Result<(), DatasetError> {
    let failed = |e: tokio_postgres::Error| {
        DatasetError::sql(load, "asking who may write to its schema", &e)
    };
    let mut transaction = client.transaction().map_err(failed)?;
    let writers = schema::writers(&mut transaction, load.schema).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    match writers.is_empty() {
        true => Ok(()),
        false => {
            let (data, schema, writers) = (load.identity(), load.schema, writers.join(", "));
            Err(DatasetError::refused(
                format!(
                    "load {data} into schema {schema} as a superuser: {writers} may write to that \
                     schema"
                ),
                format!(
                    "what they put there would run with a superuser's rights: connect as another \
                     role, or name a schema of your own in the search_path, or REVOKE CREATE ON \
                     SCHEMA {schema}"
                ),
            ))
        }
    }
}

/// Moves the indexes of placed tables to their tablespaces.
///
/// The workload's own SQL makes indexes in the database's tablespace.
pub(crate) fn move_indexes(
    client: &mut ControlClient,
    load: &BulkLoad<'_>,
) -> Result<(), DatasetError> {
    const ASKED: &str = "SELECT indexrelid::regclass::text FROM pg_catalog.pg_index \
        WHERE indrelid = $1::text::regclass";
    for (table, tablespace) in load.placed {
        let doing = format!("moving the indexes of {table} to {tablespace}");
        let failed = |e: tokio_postgres::Error| DatasetError::sql(load, &doing, &e);
        for row in client.query(ASKED, &[&load.table(table)]).map_err(failed)? {
            let index: String = row.get(0);
            let sql = format!("ALTER INDEX {index} SET TABLESPACE {tablespace}");
            client.batch_execute(&sql).map_err(failed)?;
        }
    }
    Ok(())
}
