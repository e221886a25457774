//! Rows of a sweep as Parquet: blocks are collected into row groups, and a file is readable once it is finished.

use ::parquet::basic::{Compression, ConvertedType, Encoding, Repetition, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnPath, Type};
use rackmath::table::{Block, Column, Kind, NO_COUNT};
use std::io::Write;
use std::sync::Arc;

/// Rows of a row group, unless the table ends before.
const GROUP: usize = 131_072;

pub struct ParquetRows<W: Write + Send> {
    file: SerializedFileWriter<W>,
    words: Vec<ByteArray>,
    waiting: Vec<Block>,
    rows: usize,
}

impl<W: Write + Send> ParquetRows<W> {
    /// Begins a file; `words` are what the numbers of word columns stand for.
    pub fn new(out: W, columns: &[(String, Kind)], words: &[String]) -> Result<Self, ParquetError> {
        let field = |(name, kind): &(String, Kind)| {
            let (physical, logical) = match kind {
                Kind::Count => (Physical::INT64, ConvertedType::NONE),
                Kind::Amount => (Physical::DOUBLE, ConvertedType::NONE),
                Kind::Word | Kind::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
                Kind::Flag => (Physical::BOOLEAN, ConvertedType::NONE),
            };
            let one = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
            one.with_converted_type(logical).build().map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(Type::group_type_builder("rows").with_fields(fields).build()?);
        let index = ColumnPath::from("index");
        let how = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by("rackmath".into())
            // Numbers that follow each other are kept as differences.
            .set_column_dictionary_enabled(index.clone(), false)
            .set_column_encoding(index, Encoding::DELTA_BINARY_PACKED);
        Ok(Self {
            file: SerializedFileWriter::new(out, schema, Arc::new(how.build()))?,
            words: words.iter().map(|w| ByteArray::from(w.as_str())).collect(),
            waiting: Vec::new(),
            rows: 0,
        })
    }

    pub fn add(&mut self, block: Block) -> Result<(), ParquetError> {
        self.rows += block.rows;
        self.waiting.push(block);
        if self.rows >= GROUP { self.flush() } else { Ok(()) }
    }

    pub fn finish(mut self) -> Result<(), ParquetError> {
        self.flush()?;
        self.file.close().map(|_| ())
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let blocks = std::mem::take(&mut self.waiting);
        if std::mem::take(&mut self.rows) == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        let mut at = 0;
        while let Some(mut column) = group.next_column()? {
            for block in &blocks {
                let levels = levels(&block.columns[at]);
                let there = |all: usize| (0..all).filter(|row| levels[*row] == 1);
                let levels = Some(levels.as_slice());
                match &block.columns[at] {
                    Column::Counts(all) => {
                        let all: Vec<i64> = there(all.len()).map(|row| all[row]).collect();
                        column.typed::<Int64Type>().write_batch(&all, levels, None)?
                    }
                    Column::Amounts(all) => {
                        let all: Vec<f64> = there(all.len()).map(|row| all[row]).collect();
                        column.typed::<DoubleType>().write_batch(&all, levels, None)?
                    }
                    Column::Flags(all) => {
                        let all: Vec<bool> = all.iter().flatten().copied().collect();
                        column.typed::<BoolType>().write_batch(&all, levels, None)?
                    }
                    Column::Words(all) => {
                        let all: Vec<ByteArray> = all.iter().map(|w| self.words[*w as usize].clone()).collect();
                        column.typed::<ByteArrayType>().write_batch(&all, levels, None)?
                    }
                    Column::Texts(all) => {
                        let all: Vec<ByteArray> =
                            there(all.len()).map(|row| ByteArray::from(all[row].as_str())).collect();
                        column.typed::<ByteArrayType>().write_batch(&all, levels, None)?
                    }
                };
            }
            column.close()?;
            at += 1;
        }
        group.close().map(|_| ())
    }
}

/// One for each row with a value, zero for the others.
fn levels(column: &Column) -> Vec<i16> {
    let of = i16::from;
    match column {
        Column::Counts(all) => all.iter().map(|n| of(*n != NO_COUNT)).collect(),
        Column::Amounts(all) => all.iter().map(|x| of(!x.is_nan())).collect(),
        Column::Words(all) => vec![1; all.len()],
        Column::Texts(all) => all.iter().map(|text| of(!text.is_empty())).collect(),
        Column::Flags(all) => all.iter().map(|yes| of(yes.is_some())).collect(),
    }
}
