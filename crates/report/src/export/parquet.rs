//! Tables as Parquet, without compression.

use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::ExportError;
use super::table::{Column, Kind, TableName, TableSink, Value};

/// Rows that are held in memory and written together.
const ROWS: usize = 65_536;

/// A table in one file.
pub(super) struct ParquetFile {
    writer: SerializedFileWriter<BufWriter<File>>,
    kinds: Vec<Kind>,
    /// Cells that are not written yet, by column.
    cells: Vec<Vec<Value>>,
}

impl ParquetFile {
    /// Begins `file` with the schema of `columns`.
    pub(super) fn new(
        file: File,
        table: TableName,
        columns: &[Column],
    ) -> Result<Self, ExportError> {
        let field = |column: &Column| {
            let (physical, logical) = match column.kind {
                Kind::Integer => (Physical::INT64, None),
                Kind::Real => (Physical::DOUBLE, None),
                Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            };
            Type::primitive_type_builder(&column.name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical)
                .build()
                .map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder(table.into()).with_fields(fields).build()?;
        let properties = Arc::new(WriterProperties::builder().build());
        Ok(Self {
            writer: SerializedFileWriter::new(BufWriter::new(file), Arc::new(schema), properties)?,
            kinds: columns.iter().map(|column| column.kind).collect(),
            cells: vec![Vec::new(); columns.len()],
        })
    }

    fn write_rows(&mut self) -> Result<(), ExportError> {
        if self.cells.first().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for (kind, cells) in self.kinds.iter().zip(&mut self.cells) {
            let cells = std::mem::take(cells);
            match kind {
                Kind::Integer => write::<Int64Type>(&mut group, cells, |value| match value {
                    Value::Integer(number) => Some(number),
                    _ => None,
                })?,
                Kind::Real => write::<DoubleType>(&mut group, cells, |value| match value {
                    Value::Real(number) => Some(number),
                    _ => None,
                })?,
                Kind::Text => write::<ByteArrayType>(&mut group, cells, |value| match value {
                    Value::Text(text) => Some(ByteArray::from(text.into_bytes())),
                    _ => None,
                })?,
            }
        }
        group.close()?;
        Ok(())
    }
}

fn write<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, BufWriter<File>>,
    cells: Vec<Value>,
    read: impl Fn(Value) -> Option<T::T>,
) -> Result<(), ExportError> {
    let values: Vec<Option<T::T>> = cells.into_iter().map(read).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(&values, Some(&levels), None)?;
        column.close()?;
    }
    Ok(())
}

impl TableSink for ParquetFile {
    fn row(&mut self, row: &[Value]) -> Result<(), ExportError> {
        for (cells, value) in self.cells.iter_mut().zip(row) {
            cells.push(value.clone());
        }
        if self.cells.first().is_some_and(|cells| cells.len() >= ROWS) {
            self.write_rows()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), ExportError> {
        self.write_rows()?;
        self.writer.close()?;
        Ok(())
    }
}
