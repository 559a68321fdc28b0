//! `workload.toml` and `experiment.toml` of a captured workload.

use std::fmt::Write as _;

use pgdyno_text::format;
use toml::Value;

use crate::document::Captured;
use crate::folder::ScriptFile;
use crate::script::FilledTable;
use crate::toml_column::toml_column;

/// Returns the text of `workload.toml`.
pub(crate) fn workload(
    captured: &Captured,
    tables: &[&FilledTable],
    scripts: &[ScriptFile],
) -> String {
    let description = format!(
        "{} and {} of a server's schema {}. All values are made up.",
        format::counted(captured.statements.len() as u64, "statement"),
        format::counted(tables.len() as u64, "table"),
        captured.table_schema
    );
    let bytes: u64 = captured.tables.iter().map(|table| table.bytes).sum();
    let mut text = format!(
        "description = {}\n\n[data]\nschema = \"schema.sql\"\nkeys = \"keys.sql\"\n\
         bytes_per_scale = {bytes}\n",
        Value::from(description)
    );
    for one in tables.iter().filter(|one| one.table.rows > 0) {
        let (name, rows) = (&one.table.name, one.table.rows);
        let columns =
            one.table.columns.iter().filter_map(|column| {
                toml_column(column, one.filled.columns.get(&column.name)?, rows)
            });
        let columns: String = columns.map(|column| format!("    {column},\n")).collect();
        // A table of nulls alone cannot be filled.
        if !columns.is_empty() {
            let _ = write!(
                text,
                "\n[[data.table]]\nname = \"{name}\"\nrows = {rows}\ncolumns = [\n{columns}]\n"
            );
        }
    }
    for script in scripts {
        let (name, weight) = (&script.name, script.weight);
        let _ = write!(text, "\n[[script]]\nfile = \"{name}\"\nweight = {weight}\n");
    }
    text
}

/// Returns the text of `experiment.toml`: the load at the original's rate.
pub(crate) fn experiment(captured: &Captured) -> String {
    let clients = captured.sessions.connected.round().max(1.0);
    let rate = captured.commits_per_s().max(0.1);
    format!(
        "# The captured load at the original's rate: {rate:.1} transactions a second.\n\
         # Run it from this folder. Without `rate`, no client waits for its next transaction.\n\n\
         [experiment]\nquestion = \"How is the captured load carried here?\"\nrepeats = 5\n\n\
         [factors]\nsynchronous_commit = [\"on\", \"off\"]\n\n\
         [workload]\nname = \"./\"\n\n\
         [load]\nclients = {clients}\nrate = {rate:.1}\nduration = \"60s\"\nwarm_up = \"10s\"\n\
         protocol = \"prepared\"\n"
    )
}
