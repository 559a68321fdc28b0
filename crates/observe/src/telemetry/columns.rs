//! Columns that appear once their source has something to count.

use std::collections::HashMap;

use pgdyno_model::telemetry::{Column, Kind};

use super::probe::{Probe, ProbeError, column};

/// The columns of a table so far. A value that was always 0 has no column, so that tables hold what
/// happened and not what could have.
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

/// A probe whose columns appear with their first value.
struct GrowingColumns<F> {
    columns: Columns,
    read: F,
}

/// Creates a probe. `read` sets the values of a sample; those that it does not set are 0.
pub(super) fn growing_columns<F>(read: F) -> Option<Box<dyn Probe>>
where
    F: FnMut(&mut Row<'_>) -> Result<(), ProbeError> + Send + 'static,
{
    Some(Box::new(GrowingColumns { columns: Columns::default(), read }))
}

impl<F> Probe for GrowingColumns<F>
where
    F: FnMut(&mut Row<'_>) -> Result<(), ProbeError> + Send,
{
    fn columns(&self) -> &[Column] {
        self.columns.all()
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let mut row = self.columns.row();
        (self.read)(&mut row)?;
        Ok(row.values())
    }
}

impl Columns {
    pub(super) fn all(&self) -> &[Column] {
        &self.columns
    }

    /// Begins a sample whose unset values are 0.
    pub(super) fn row(&mut self) -> Row<'_> {
        let values = vec![Some(0.0); self.columns.len()];
        Row { of: self, values }
    }

    /// Begins a sample whose unset values are unknown.
    pub(super) fn row_unknown(&mut self) -> Row<'_> {
        let values = vec![None; self.columns.len()];
        Row { of: self, values }
    }
}

impl Row<'_> {
    /// Sets a value. Adds the column if there is none and the value is not 0.
    pub(super) fn set(&mut self, name: &str, unit: &str, kind: Kind, value: f64) {
        let place = match self.of.places.get(name) {
            Some(place) => *place,
            None if value == 0.0 => return,
            None => {
                self.of.columns.push(column(name, unit, kind));
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
