//! Results that `\gset` and `\aset` store in variables.

use std::collections::HashMap;

use crate::script::{Slot, Store, VariableValue, is_variable_name};

/// Why a result cannot be stored.
pub(super) struct StoreError {
    /// Query of the command that had the result, from 0.
    pub(super) query: usize,
    /// Column's name that no variable can have, if that is the reason.
    pub(super) name: Option<String>,
    /// pgbench's message.
    pub(super) message: String,
}

/// Result of one query: its columns, number of rows and last row.
#[derive(Debug, Default)]
struct QueryResult {
    columns: Vec<Vec<u8>>,
    rows: u64,
    last: Vec<Option<Vec<u8>>>,
}

/// Results of a command's queries.
#[derive(Debug, Default)]
pub(super) struct QueryResults {
    results: Vec<QueryResult>,
    open: bool,
}

impl QueryResults {
    pub(super) fn clear(&mut self) {
        self.results.clear();
        self.open = false;
    }

    pub(super) fn columns(&mut self, columns: Vec<Vec<u8>>) {
        self.results.push(QueryResult { columns, ..QueryResult::default() });
        self.open = true;
    }

    pub(super) fn row(&mut self, row: Vec<Option<Vec<u8>>>) {
        if let Some(answer) = self.results.last_mut() {
            answer.rows += 1;
            answer.last = row;
        }
    }

    pub(super) fn complete(&mut self) {
        // A command that returns no rows has a result without columns.
        if !std::mem::replace(&mut self.open, false) {
            self.results.push(QueryResult::default());
        }
    }

    /// Stores the results as `store` says. Columns that no script names are dropped.
    pub(super) fn store(
        &self,
        store: &Store,
        slots: &HashMap<String, Slot>,
        variables: &mut [Option<VariableValue>],
    ) -> Result<(), StoreError> {
        let first = if store.each { 0 } else { self.results.len().saturating_sub(1) };
        let chosen = &self.results[first..];
        if !store.each {
            let rows = chosen.first().map_or(0, |answer| answer.rows);
            if rows != 1 {
                return Err(StoreError {
                    query: first,
                    name: None,
                    message: format!("expected one row, got {rows}"),
                });
            }
        }
        for (query, answer) in (first..).zip(chosen).filter(|(_, answer)| answer.rows > 0) {
            for (column, value) in answer.columns.iter().zip(&answer.last) {
                let name = format!("{}{}", store.prefix, String::from_utf8_lossy(column));
                if !is_variable_name(&name) {
                    let message = format!("error storing into variable {name}");
                    return Err(StoreError { query, name: Some(name), message });
                }
                if let Some(slot) = slots.get(&name) {
                    // NULL is the empty text, as for psql.
                    let text = value.clone().unwrap_or_default();
                    variables[slot.index()] = Some(VariableValue::Text(text.into()));
                }
            }
        }
        Ok(())
    }
}
