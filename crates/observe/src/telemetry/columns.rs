//! Columns that appear when their source first has something to count.

use std::collections::HashMap;

use pgdyno_model::telemetry::{Column, Kind};

/// A table's columns as they are found, and one sample's values for them. What is 0 and was never
/// anything else has no column, so that tables hold what happened and not what could have.
#[derive(Default)]
pub(super) struct Columns {
    columns: Vec<Column>,
    places: HashMap<String, usize>,
}

/// One sample of [`Columns`].
pub(super) struct Row<'a> {
    of: &'a mut Columns,
    values: Vec<Option<f64>>,
}

impl Columns {
    pub(super) fn all(&self) -> &[Column] {
        &self.columns
    }

    /// A sample in which what is not set is 0.
    pub(super) fn row(&mut self) -> Row<'_> {
        let values = vec![Some(0.0); self.columns.len()];
        Row { of: self, values }
    }

    /// A sample in which what is not set is not known.
    pub(super) fn row_unknown(&mut self) -> Row<'_> {
        let values = vec![None; self.columns.len()];
        Row { of: self, values }
    }
}

impl Row<'_> {
    /// Sets a value; a column that is not there yet is made if the value is not 0.
    pub(super) fn set(&mut self, name: &str, unit: &str, kind: Kind, value: f64) {
        let place = match self.of.places.get(name) {
            Some(place) => *place,
            None if value == 0.0 => return,
            None => {
                self.of.columns.push(super::probe::column(name, unit, kind));
                self.of.places.insert(name.to_owned(), self.values.len());
                self.values.push(None);
                self.values.len() - 1
            }
        };
        self.values[place] = Some(value);
    }

    pub(super) fn values(self) -> Vec<Option<f64>> {
        self.values
    }
}
