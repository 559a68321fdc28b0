//! Tables as the server's catalogue and statistics describe them.

/// Kind of a column's type, for what fills it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// With its largest value.
    Integer(u64),
    Numeric,
    Float,
    /// With the most characters that it holds.
    Text(Option<u32>),
    Boolean,
    Date,
    Timestamp,
    Json,
    Uuid,
    Bytes,
    /// Type of PostgreSQL's own without a generator.
    Other,
    /// Type that the database defines.
    Foreign,
}

impl Family {
    /// Returns the family of the type with `oid` and its modifier.
    pub(crate) fn new(oid: i64, modifier: i32, is_own: bool) -> Self {
        match oid {
            _ if is_own => Self::Foreign,
            20 => Self::Integer(i64::MAX as u64),
            21 => Self::Integer(i16::MAX as u64),
            23 => Self::Integer(i32::MAX as u64),
            1700 => Self::Numeric,
            700 | 701 => Self::Float,
            25 | 1042 | 1043 => {
                Self::Text(u32::try_from(modifier - 4).ok().filter(|_| modifier > 4))
            }
            16 => Self::Boolean,
            1082 => Self::Date,
            1114 | 1184 => Self::Timestamp,
            114 | 3802 => Self::Json,
            2950 => Self::Uuid,
            17 => Self::Bytes,
            _ => Self::Other,
        }
    }
}

/// Statistics of a column, none of whose values is among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ColumnStatistics {
    /// Whether the server has any.
    pub(crate) is_known: bool,
    /// Share of nulls (0 to 1).
    pub(crate) nulls: f64,
    /// Mean width (bytes).
    pub(crate) width: u32,
    /// Distinct values (count).
    pub(crate) distinct: u64,
    /// Shares of the most common values, most frequent first (0 to 1).
    pub(crate) frequencies: Vec<f64>,
    /// Correlation of values and physical order (-1 to 1).
    pub(crate) correlation: f64,
    /// First days of the months that hold a time column's first and last values.
    pub(crate) months: Option<(String, String)>,
    /// Time between the two (s).
    pub(crate) span_s: i64,
}

/// Column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) family: Family,
    /// Type, as SQL spells it.
    pub(crate) spelled: String,
    /// Digits after the point of a numeric.
    pub(crate) scale: u8,
    /// Digits before the point of a numeric, where its type bounds them.
    pub(crate) whole_digits: Option<u32>,
    pub(crate) is_not_null: bool,
    /// Whether a sequence gives its values.
    pub(crate) is_serial: bool,
    /// Default, as SQL spells it.
    pub(crate) default: Option<String>,
    pub(crate) is_generated: bool,
    pub(crate) statistics: ColumnStatistics,
}

/// Index of a table.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) is_primary: bool,
    pub(crate) is_unique: bool,
    /// Whether it has a predicate or expressions, which may hold values.
    pub(crate) has_expressions: bool,
    /// `CREATE INDEX …`, or `ALTER TABLE … ADD CONSTRAINT …`, without schema.
    pub(crate) definition: String,
}

/// Foreign key of a table.
#[derive(Clone, Debug)]
pub(crate) struct ForeignKey {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) parent: String,
    pub(crate) parent_columns: Vec<String>,
    pub(crate) definition: String,
}

/// Table of the schema.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// Rows, as the last ANALYZE counted them.
    pub(crate) rows: u64,
    /// Size with indexes (bytes).
    pub(crate) bytes: u64,
    /// Storage parameters, such as `fillfactor=90`.
    pub(crate) options: Vec<String>,
    pub(crate) is_unlogged: bool,
    pub(crate) columns: Vec<Column>,
    pub(crate) indexes: Vec<Index>,
    pub(crate) foreign_keys: Vec<ForeignKey>,
    /// Checks and triggers, by name.
    pub(crate) left_out: Vec<String>,
    /// Reason for which the table cannot be captured.
    pub(crate) obstacle: Option<crate::document::Obstacle>,
}

impl Table {
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a table without columns.
    pub(crate) fn table(name: &str, rows: u64) -> Table {
        Table {
            name: name.into(),
            rows,
            bytes: 0,
            options: Vec::new(),
            is_unlogged: false,
            columns: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            left_out: Vec::new(),
            obstacle: None,
        }
    }

    /// Returns a column without nulls, 9 bytes wide.
    pub(crate) fn column(name: &str, family: Family) -> Column {
        let statistics =
            ColumnStatistics { is_known: true, width: 9, ..ColumnStatistics::default() };
        Column {
            name: name.into(),
            family,
            spelled: "integer".into(),
            scale: 0,
            whole_digits: None,
            is_not_null: true,
            is_serial: false,
            default: None,
            is_generated: false,
            statistics,
        }
    }
}
