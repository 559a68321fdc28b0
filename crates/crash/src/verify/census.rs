//! All databases of a cluster: the objects that each has, and whether it is whole.

use std::collections::BTreeMap;

use pgdyno_connect::control::Client;
use pgdyno_durability::{Objects, Observed, Unseen};
use pgdyno_postgres::Cluster;

use super::session::{PLAIN, connection_failed, unseen};
use super::structure;
use pgdyno_provision::provisioner::DATABASE;

/// The databases that can be connected to.
const DATABASES: &str =
    "SELECT datname::text FROM pg_catalog.pg_database WHERE datallowconn ORDER BY 1";

/// The objects of a database that initdb did not make, one a line. An index that a load was
/// building is left out, and so is what is temporary.
const MADE: &str = "WITH relation AS (SELECT * FROM pg_catalog.pg_class \
        WHERE oid >= 16384 AND relpersistence <> 't' AND relname NOT LIKE 'pgdyno\\_aim%') \
    SELECT format('relation %s: %s, %s, %s columns', oid::regclass, relkind, relpersistence, \
        relnatts) FROM relation WHERE relkind <> 'i' \
    UNION ALL SELECT format('column %s.%s: %s, %s, %s', attrelid::regclass, attname, \
        format_type(atttypid, atttypmod), attnotnull, atthasdef) FROM pg_catalog.pg_attribute \
        JOIN relation ON relation.oid = attrelid \
        WHERE attnum > 0 AND NOT attisdropped AND relkind <> 'i' \
    UNION ALL SELECT format('default of %s: %s', adrelid::regclass, pg_get_expr(adbin, adrelid)) \
        FROM pg_catalog.pg_attrdef WHERE oid >= 16384 \
    UNION ALL SELECT format('%s, valid: %s, unique: %s', pg_get_indexdef(indexrelid), indisvalid, \
        indisunique) \
        FROM pg_catalog.pg_index JOIN relation ON relation.oid = indexrelid \
        WHERE relation.relkind = 'i' \
    UNION ALL SELECT format('constraint %s of %s: %s', conname, conrelid::regclass, \
        pg_get_constraintdef(oid)) \
        FROM pg_catalog.pg_constraint WHERE oid >= 16384 \
    UNION ALL SELECT format('function %s: %s', oid::regprocedure, md5(prosrc)) \
        FROM pg_catalog.pg_proc WHERE oid >= 16384 \
    UNION ALL SELECT format('trigger %s of %s', tgname, tgrelid::regclass) \
        FROM pg_catalog.pg_trigger WHERE oid >= 16384 \
    UNION ALL SELECT format('type %s', oid::regtype) FROM pg_catalog.pg_type \
        WHERE oid >= 16384 AND typtype <> 'c' AND typcategory <> 'A' \
    UNION ALL SELECT format('schema %s', nspname) FROM pg_catalog.pg_namespace \
        WHERE nspname !~ '^pg_(toast_)?temp_' \
    UNION ALL SELECT format('extension %s %s', extname, extversion) FROM pg_catalog.pg_extension \
    UNION ALL SELECT format('database %s', datname) FROM pg_catalog.pg_database \
    UNION ALL SELECT format('role %s, superuser: %s', rolname, rolsuper) FROM pg_catalog.pg_roles \
    UNION ALL SELECT format('tablespace %s', spcname) FROM pg_catalog.pg_tablespace";

/// Catalogs, and the column by which a row of initdb's is known.
const CATALOGS: [(&str, &str); 12] = [
    ("pg_proc", "oid"),
    ("pg_type", "oid"),
    ("pg_attribute", "attrelid"),
    ("pg_index", "indexrelid"),
    ("pg_aggregate", "aggfnoid"),
    ("pg_operator", "oid"),
    ("pg_opclass", "oid"),
    ("pg_amop", "oid"),
    ("pg_amproc", "oid"),
    ("pg_cast", "oid"),
    ("pg_am", "oid"),
    ("pg_language", "oid"),
];

/// Query that counts initdb's relations. Their hash leaves out the columns that vacuum changes.
const RELATIONS: &str = "SELECT format('relations that initdb made: %s, sum of hashes %s', \
    count(*), sum(hashtextextended(concat_ws(' ', oid, relname, relkind, relnatts), 0)::numeric)) \
    FROM pg_catalog.pg_class WHERE oid < 16384";

/// Counts rows that initdb made, and adds up hashes of them: thousands of names would tell no more.
fn counted_catalog(catalog: &str, known_by: &str) -> String {
    format!(
        "SELECT format('rows of {catalog} that initdb made: %s, sum of hashes %s', count(*), \
         sum(hashtextextended(c::text, 0)::numeric)) FROM pg_catalog.{catalog} c \
         WHERE {known_by}::oid < 16384"
    )
}

fn connect(cluster: &Cluster, database: &str) -> Observed<Client> {
    let mut client = cluster.control(database).map_err(|e| connection_failed(&e))?;
    client.batch_execute(PLAIN).map_err(|e| unseen(&e))?;
    Ok(client)
}

fn databases(cluster: &Cluster) -> Observed<Vec<String>> {
    let rows = connect(cluster, DATABASE)?.query(DATABASES, &[]).map_err(|e| unseen(&e))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Returns the objects of all databases of `cluster`, each with its definition.
pub(crate) fn objects(cluster: &Cluster) -> Observed<BTreeMap<String, Observed<Objects>>> {
    let counted = CATALOGS.map(|(catalog, known_by)| counted_catalog(catalog, known_by));
    let all = [MADE, RELATIONS].into_iter().chain(counted.iter().map(String::as_str));
    let sql = all.collect::<Vec<_>>().join(" UNION ALL ");
    let of = |database: &str| {
        let rows = connect(cluster, database)?.query(&sql, &[]).map_err(|e| unseen(&e))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    };
    let all = databases(cluster)?;
    Ok(all.into_iter().map(|database| (database.clone(), of(&database))).collect())
}

/// Returns the objects of all databases of `cluster`, each of which can be read.
pub(crate) fn baseline(cluster: &Cluster) -> Observed<BTreeMap<String, Objects>> {
    objects(cluster)?.into_iter().map(|(database, of)| Ok((database, of?))).collect()
}

/// Returns the complaints about the databases beside the one that holds the load: each is connected
/// to, and its tables and B-trees are checked by amcheck.
pub(super) fn complaints(cluster: &Cluster) -> Observed<Vec<String>> {
    let mut complaints = Vec::new();
    let mut not_asked = None;
    for database in databases(cluster)?.iter().filter(|name| *name != DATABASE) {
        let mut tell = |what: &str| complaints.push(format!("database {database}: {what}"));
        let client = connect(cluster, database);
        match client.and_then(|mut client| structure::at_once(&mut client)) {
            Ok(found) => found.iter().for_each(|what| tell(what)),
            Err(Unseen::Damaged(what)) => tell(&what),
            Err(unseen @ Unseen::NotApplicable(_)) => not_asked = Some(unseen),
            // What was found before is a finding, whatever keeps the rest from being looked at.
            Err(other) if complaints.is_empty() => return Err(other),
            Err(_) => break,
        }
    }
    match not_asked {
        Some(unseen) if complaints.is_empty() => Err(unseen),
        _ => Ok(complaints),
    }
}
