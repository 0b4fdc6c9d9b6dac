//! The Parquet files of a sealed capture: their columns (zstd, delta encoding for what grows), written and read in batches.
use crate::error::{Error, Result};
use crate::files::{EVENTS_FILE, SAMPLES_FILE, open_file};
use crate::manifest::{Sealed, Sum};
use crate::record::{Record, Stream};
use crate::sample::Sample;
use arrow_array::builder::{UInt16Builder, UInt32Builder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use ebpf_probes::Header;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zerocopy::IntoBytes;

const BATCH_ROWS: usize = 8192;
const GROUP_ROWS: usize = 1 << 18;
const WORDS: [&str; 4] = ["w0", "w1", "w2", "w3"];
const SAMPLE_U64: [&str; 8] =
    ["begin_wr_id", "end_wr_id", "post_begin_ns", "post_end_ns", "arm_ns", "wait_begin_ns", "wait_end_ns", "done_ns"];
const SAMPLE_U32: [&str; 2] = ["qpn", "round"];
const SAMPLE_U16: [&str; 4] = ["worker", "status", "waits", "empty_wakeups"];

/// Writes the samples to the new file `path`, and sums what it wrote.
pub(crate) fn write_samples(path: &Path, samples: Stream<Sample>) -> Result<Sum> {
    write(path, samples, &sample_schema(), &SAMPLE_U64, sample_batch)
}

/// Writes the events to the new file `path`, and sums what it wrote.
pub(crate) fn write_records(path: &Path, records: Stream<Record>) -> Result<Sum> {
    write(path, records, &event_schema(), &["ts_ns"], record_batch)
}

fn write<T: IntoBytes + zerocopy::Immutable>(
    path: &Path,
    items: Stream<T>,
    schema: &Arc<Schema>,
    delta: &[&str],
    batch: fn(&Arc<Schema>, &[T]) -> std::result::Result<RecordBatch, arrow_schema::ArrowError>,
) -> Result<Sum> {
    let file = File::create(path).map_err(Error::io("create", path))?;
    let mut properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).set_max_row_group_row_count(Some(GROUP_ROWS));
    for column in delta {
        let column = ColumnPath::from(*column);
        properties =
            properties.set_column_dictionary_enabled(column.clone(), false).set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    let failed = || Error::parquet("write", path);
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties.build())).map_err(failed())?;
    let mut sum = Sum::default();
    let mut rows = Vec::with_capacity(BATCH_ROWS);
    let flush = |rows: &mut Vec<T>, writer: &mut ArrowWriter<File>| -> Result<()> {
        let made = batch(schema, rows).map_err(|e| failed()(e.into()))?;
        rows.clear();
        writer.write(&made).map_err(failed())
    };
    for item in items {
        let item = item?;
        sum.add(item.as_bytes());
        rows.push(item);
        if rows.len() == BATCH_ROWS {
            flush(&mut rows, &mut writer)?;
        }
    }
    if !rows.is_empty() {
        flush(&mut rows, &mut writer)?;
    }
    let file = writer.into_inner().map_err(failed())?;
    file.sync_all().map_err(Error::io("flush", path))?;
    Ok(sum)
}

fn sample_schema() -> Arc<Schema> {
    let wide = SAMPLE_U64.iter().map(|name| Field::new(*name, DataType::UInt64, false));
    let middle = SAMPLE_U32.iter().map(|name| Field::new(*name, DataType::UInt32, false));
    let small = SAMPLE_U16.iter().map(|name| Field::new(*name, DataType::UInt16, false));
    Arc::new(Schema::new(wide.chain(middle).chain(small).collect::<Vec<_>>()))
}

fn event_schema() -> Arc<Schema> {
    let mut fields = vec![
        Field::new("ts_ns", DataType::UInt64, false),
        Field::new("kind", DataType::UInt16, false),
        Field::new("cpu", DataType::UInt32, false),
        Field::new("pid", DataType::UInt32, false),
        Field::new("tgid", DataType::UInt32, false),
    ];
    fields.extend(WORDS.iter().map(|name| Field::new(*name, DataType::UInt64, true)));
    Arc::new(Schema::new(fields))
}

fn u64s<T>(rows: &[T], get: impl Fn(&T) -> Option<u64>) -> ArrayRef {
    let mut builder = UInt64Builder::with_capacity(rows.len());
    rows.iter().for_each(|row| builder.append_option(get(row)));
    Arc::new(builder.finish())
}

fn u32s<T>(rows: &[T], get: impl Fn(&T) -> u32) -> ArrayRef {
    let mut builder = UInt32Builder::with_capacity(rows.len());
    rows.iter().for_each(|row| builder.append_value(get(row)));
    Arc::new(builder.finish())
}

fn u16s<T>(rows: &[T], get: impl Fn(&T) -> u16) -> ArrayRef {
    let mut builder = UInt16Builder::with_capacity(rows.len());
    rows.iter().for_each(|row| builder.append_value(get(row)));
    Arc::new(builder.finish())
}

fn sample_batch(schema: &Arc<Schema>, rows: &[Sample]) -> std::result::Result<RecordBatch, arrow_schema::ArrowError> {
    let columns = vec![
        u64s(rows, |s| Some(s.begin_wr_id)),
        u64s(rows, |s| Some(s.end_wr_id)),
        u64s(rows, |s| Some(s.post_begin_ns)),
        u64s(rows, |s| Some(s.post_end_ns)),
        u64s(rows, |s| Some(s.arm_ns)),
        u64s(rows, |s| Some(s.wait_begin_ns)),
        u64s(rows, |s| Some(s.wait_end_ns)),
        u64s(rows, |s| Some(s.done_ns)),
        u32s(rows, |s| s.qpn),
        u32s(rows, |s| s.round),
        u16s(rows, |s| s.worker),
        u16s(rows, |s| s.status),
        u16s(rows, |s| s.waits),
        u16s(rows, |s| s.empty_wakeups),
    ];
    RecordBatch::try_new(schema.clone(), columns)
}

fn record_batch(schema: &Arc<Schema>, rows: &[Record]) -> std::result::Result<RecordBatch, arrow_schema::ArrowError> {
    let mut columns = vec![
        u64s(rows, |r| Some(r.header.ts_ns)),
        u16s(rows, |r| r.header.kind),
        u32s(rows, |r| r.header.cpu),
        u32s(rows, |r| r.header.pid),
        u32s(rows, |r| r.header.tgid),
    ];
    columns.extend((0..WORDS.len()).map(|w| u64s(rows, |r| (w < r.used_words()).then_some(r.words[w]))));
    RecordBatch::try_new(schema.clone(), columns)
}

/// The sealed samples of `dir`, by time. Where `sealed` tells what the file holds, the last item is an error when it holds something else.
///
/// # Errors
/// [`Error::Io`], [`Error::Parquet`]; [`Error::Damaged`] when a column is missing.
pub(crate) fn read_samples(dir: &Path, sealed: Option<Sealed>) -> Result<Stream<Sample>> {
    let path = dir.join(SAMPLES_FILE);
    Ok(summed(read_samples_from(&path)?, path, sealed.map(|it| it.samples)))
}

/// The sealed events of `dir`, by time.
///
/// # Errors
/// As [`read_samples`].
pub(crate) fn read_records(dir: &Path, sealed: Option<Sealed>) -> Result<Stream<Record>> {
    let path = dir.join(EVENTS_FILE);
    Ok(summed(read_records_from(&path)?, path, sealed.map(|it| it.events)))
}

/// The same items, and an error at their end when their sum is not the expected one.
fn summed<T: IntoBytes + zerocopy::Immutable + 'static>(items: Stream<T>, path: PathBuf, expected: Option<Sum>) -> Stream<T> {
    let Some(expected) = expected else { return items };
    let mut items = items;
    let mut sum = Sum::default();
    let mut is_over = false;
    Box::new(std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        match items.next() {
            Some(Ok(item)) => {
                sum.add(item.as_bytes());
                Some(Ok(item))
            }
            None if sum != expected => {
                is_over = true;
                Some(Err(Error::damaged(&path, mismatch(sum, expected))))
            }
            other => other,
        }
    }))
}

fn mismatch(found: Sum, expected: Sum) -> String {
    let (rows, crc) = (found.rows, found.crc32c);
    format!("damaged: {rows} rows with checksum {crc:08x}; it was sealed with {} rows and {:08x}", expected.rows, expected.crc32c)
}

pub(crate) fn read_samples_from(path: &Path) -> Result<Stream<Sample>> {
    let batches = reader(path, &SAMPLE_U64.iter().chain(&SAMPLE_U32).chain(&SAMPLE_U16).copied().collect::<Vec<_>>())?;
    rows(path, batches, |batch| {
        let wide = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>().cloned();
        let middle = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<UInt32Type>().cloned();
        let small = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<UInt16Type>().cloned();
        let [begin, end, post_begin, post_end, arm, wait_begin, wait_end, done] = SAMPLE_U64.map(wide);
        let (begin, end, post_begin, post_end) = (begin?, end?, post_begin?, post_end?);
        let (arm, wait_begin, wait_end, done) = (arm?, wait_begin?, wait_end?, done?);
        let [qpn, round] = SAMPLE_U32.map(middle);
        let (qpn, round) = (qpn?, round?);
        let [worker, status, waits, empty] = SAMPLE_U16.map(small);
        let (worker, status, waits, empty) = (worker?, status?, waits?, empty?);
        let sample = |i| Sample {
            begin_wr_id: begin.value(i),
            end_wr_id: end.value(i),
            post_begin_ns: post_begin.value(i),
            post_end_ns: post_end.value(i),
            arm_ns: arm.value(i),
            wait_begin_ns: wait_begin.value(i),
            wait_end_ns: wait_end.value(i),
            done_ns: done.value(i),
            qpn: qpn.value(i),
            round: round.value(i),
            worker: worker.value(i),
            status: status.value(i),
            waits: waits.value(i),
            empty_wakeups: empty.value(i),
            reserved: [0; 2],
        };
        Some((0..batch.num_rows()).map(sample).collect())
    })
}

pub(crate) fn read_records_from(path: &Path) -> Result<Stream<Record>> {
    let batches = reader(path, &["ts_ns", "kind", "cpu", "pid", "tgid", "w0", "w1", "w2", "w3"])?;
    rows(path, batches, |batch| {
        let wide = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>().cloned();
        let middle = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<UInt32Type>().cloned();
        let (ts, cpu, pid, tgid) = (wide("ts_ns")?, middle("cpu")?, middle("pid")?, middle("tgid")?);
        let kind = batch.column_by_name("kind")?.as_primitive_opt::<UInt16Type>()?.clone();
        let [w0, w1, w2, w3] = WORDS.map(wide);
        let words = [w0?, w1?, w2?, w3?];
        let record = |i| {
            let used = words.iter().filter(|word| word.is_valid(i)).count();
            let size = (size_of::<Header>() + used * 8) as u16;
            Record {
                header: Header { kind: kind.value(i), size, cpu: cpu.value(i), ts_ns: ts.value(i), pid: pid.value(i), tgid: tgid.value(i) },
                words: std::array::from_fn(|w| if words[w].is_valid(i) { words[w].value(i) } else { 0 }),
            }
        };
        Some((0..batch.num_rows()).map(record).collect())
    })
}

fn reader(path: &Path, columns: &[&str]) -> Result<ParquetRecordBatchReader> {
    let file = open_file(path)?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(Error::parquet("read", path))?;
    if let Some(missing) = columns.iter().find(|name| builder.schema().column_with_name(name).is_none()) {
        return Err(Error::damaged(path, format!("the column {missing} is missing")));
    }
    builder.with_batch_size(BATCH_ROWS).build().map_err(Error::parquet("read", path))
}

fn rows<T: 'static>(path: &Path, batches: ParquetRecordBatchReader, convert: fn(&RecordBatch) -> Option<Vec<T>>) -> Result<Stream<T>> {
    let path = path.to_path_buf();
    Ok(Box::new(batches.flat_map(move |batch| {
        let converted = batch
            .map_err(|error| Error::parquet("read", &path)(error.into()))
            .and_then(|batch| convert(&batch).ok_or_else(|| Error::damaged(&path, "a column has another type than this version writes")));
        match converted {
            Ok(rows) => rows.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        }
    })))
}
