//! Files of a log, put in order and read.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::builder::Builder;
use super::{ReadOptions, Recording};
use crate::error::RecordingError;
use crate::log::{LogError, LogReader};

/// Bytes read at once.
const BUFFER: usize = 1 << 20;

/// Reads the log in `paths`. `-` alone is standard input.
pub(super) fn read(paths: &[PathBuf], options: &ReadOptions) -> Result<Recording, RecordingError> {
    if let [only] = paths
        && only.as_os_str() == "-"
    {
        return read_source(Path::new("standard input"), io::stdin().lock(), options);
    }
    let mut builder = Builder::new(options);
    for path in in_order(paths, options)? {
        read_file(&path, open(&path)?, &mut builder)?;
    }
    builder.finish()
}

/// Reads the log in `source`, which errors call `path`.
pub(super) fn read_source(
    path: &Path,
    source: impl BufRead,
    options: &ReadOptions,
) -> Result<Recording, RecordingError> {
    let mut builder = Builder::new(options);
    read_file(path, LogReader::new(source), &mut builder)?;
    builder.finish()
}

fn open(path: &Path) -> Result<LogReader<BufReader<File>>, RecordingError> {
    let file = File::open(path).map_err(|error| failed(path, 0, error.into()))?;
    Ok(LogReader::new(BufReader::with_capacity(BUFFER, file)))
}

/// Returns `paths` by the time of their first record, without empty files.
fn in_order(paths: &[PathBuf], options: &ReadOptions) -> Result<Vec<PathBuf>, RecordingError> {
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let mut reader = open(path)?;
        match reader.next_record() {
            Ok(Some(record)) => files.push((record.time.micros, path.clone())),
            Ok(None) => {}
            Err(LogError::Cut) if options.allow_cut => {}
            Err(error) => return Err(failed(path, reader.line(), error)),
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

fn read_file<R: BufRead>(
    path: &Path,
    mut reader: LogReader<R>,
    builder: &mut Builder<'_>,
) -> Result<(), RecordingError> {
    loop {
        match reader.next_record() {
            Ok(Some(record)) => builder.add(&record, path)?,
            Ok(None) => return Ok(()),
            Err(LogError::Cut) if builder.allows_cut() => {
                builder.note_cut();
                return Ok(());
            }
            Err(error) => return Err(failed(path, reader.line(), error)),
        }
    }
}

fn failed(path: &Path, line: u64, cause: LogError) -> RecordingError {
    RecordingError::Read { path: path.to_owned(), line, cause }
}
