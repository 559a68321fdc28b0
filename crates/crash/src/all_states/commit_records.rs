//! When the commit record of each transaction of a recorded stretch had reached the disk.
//!
//! 1. The segments of WAL that were there before the load, and over them every page that the disk
//!    was asked to write, are laid out in a folder.
//! 2. `pg_waldump` tells the commit records in it, with their transaction ids. A server that
//!    recovers from all writes tells which transaction inserted which token.
//! 3. A record has reached the disk with the first write that holds the last of its bytes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use pgdyno_connect::control::error_text;
use pgdyno_emulated_disk::states::State;
use pgdyno_exec::program::ask_tool;
use pgdyno_model::ledger::Token;

use super::judge_state::Judge;
use super::wal_pages::{WalPages, WalPart};
use crate::wal_watcher::parse_lsn;
use pgdyno_provision::BenchError;
use pgdyno_provision::provisioner::DATABASE;

/// The longest that pg_waldump may take.
const LIMIT: Duration = Duration::from_secs(120);

/// The writes with which commit records had reached the disk, by token; or why they are not known.
pub(super) type CommitWrites = Result<BTreeMap<Token, u64>, String>;

/// Finds the write with which the commit record of each transaction had reached the disk. `folder`
/// is made and removed.
///
/// # Errors
/// pgdyno itself cannot go on, or a signal asked to stop.
pub(super) fn commit_writes(
    judge: &mut Judge<'_, '_>,
    folder: &Path,
) -> Result<CommitWrites, BenchError> {
    let laid_out = copied_before(judge, folder)?.and_then(|()| read_records(judge, folder));
    let _ = fs::remove_dir_all(folder);
    let records = match laid_out {
        Ok(records) => records,
        Err(why) => return Ok(Err(why)),
    };
    let tokens = tokens(judge)?;
    Ok(tokens.map(|tokens| {
        let of_token = |(transaction, write)| Some((*tokens.get(&transaction)?, write));
        records.into_iter().filter_map(of_token).collect()
    }))
}

/// Copies the segments of WAL that were there before the load to `folder`.
fn copied_before(
    judge: &mut Judge<'_, '_>,
    folder: &Path,
) -> Result<Result<(), String>, BenchError> {
    let shown = judge.bed.show(&State::default(), judge.context.stop);
    judge.context.check_stop()?;
    if let Err(error) = shown {
        return Ok(Err(error.message()));
    }
    let copied = copy_segments(&judge.bed.cluster().data().join("pg_wal"), folder);
    judge.bed.cut_power(0.0)?;
    Ok(copied.map_err(|e| format!("the segments of WAL before the load: {e}")))
}

fn copy_segments(from: &Path, folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name().len() == 24 {
            fs::copy(entry.path(), folder.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Returns the commit records in the stretch: the transaction of each, and the write with which it
/// had reached the disk. Those that never did are not among them.
fn read_records(judge: &Judge<'_, '_>, folder: &Path) -> Result<Vec<(u32, u64)>, String> {
    let program = judge.subject.install.find_program("pg_waldump");
    let program = program.ok_or("this installation lacks pg_waldump")?;
    let said = |e: io::Error| e.to_string();
    let recording = judge.recording;
    let pages = WalPages::read(&recording.log, &recording.log_file).map_err(said)?;
    let Some(begin) = pages.begin() else { return Ok(Vec::new()) };
    let timeline = pages.lay_out(folder).map_err(said)?;
    let args = [
        format!("--path={}", folder.display()),
        format!("--start={:X}/{:X}", begin >> 32, begin & 0xffff_ffff),
        format!("--timeline={timeline}"),
        "--rmgr=Transaction".into(),
    ];
    // At the end of WAL it finds no record, and says so.
    let output = ask_tool(program, &args, LIMIT).map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let commits: Vec<(u32, WalPart)> = text.lines().filter_map(commit).collect();
    if commits.is_empty() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("pg_waldump finds no commit: {}", errors.trim()));
    }
    let mut records = Vec::new();
    for (transaction, part) in commits {
        records.extend(pages.written(part).map_err(said)?.map(|write| (transaction, write)));
    }
    Ok(records)
}

/// Reads a line of pg_waldump's such as `rmgr: Transaction len (rec/tot):     34/    34, tx:
/// 735, lsn: 0/014F0E50, prev 0/014F0E20, desc: COMMIT 2026-11-25 …`.
fn commit(line: &str) -> Option<(u32, WalPart)> {
    let after = |name: &str| line.split_once(name).map(|(_, rest)| rest.trim_start());
    if !after("desc: ")?.starts_with("COMMIT ") {
        return None;
    }
    let until = |rest: &str| rest.split(',').next().map(str::trim).map(str::to_owned);
    let lengths = until(after("len (rec/tot):")?)?;
    let length = lengths.split_once('/')?.1.trim().parse().ok()?;
    let transaction = until(after("tx:")?)?.parse().ok()?;
    let begin = parse_lsn(&until(after("lsn:")?)?)?;
    Some((transaction, WalPart { begin, length }))
}

/// Returns the token that each transaction inserted, by a server that recovers from all writes; or
/// why they cannot be read.
fn tokens(judge: &mut Judge<'_, '_>) -> Result<Result<BTreeMap<u32, Token>, String>, BenchError> {
    let all = State { newest: judge.recording.log.newest(), ..State::default() };
    let (stop, limit) = (judge.context.stop, judge.subject.options.recovery_limit.0);
    let shown = judge.bed.show(&all, stop).map_err(|e| e.message());
    judge.context.check_stop()?;
    let cluster = judge.bed.cluster();
    let read = shown.and_then(|()| {
        cluster.forget_postmaster().map_err(|e| e.to_string())?;
        cluster.start_within(limit, stop).map_err(|e| e.to_string())?;
        let mut client = cluster.control(DATABASE).map_err(|e| e.to_string())?;
        let sql = "SELECT xmin::text::int8, client, sequence FROM pgdyno_token";
        let rows = client.query(sql, &[]).map_err(|e| error_text(&e))?;
        let number = |of: i64| u64::try_from(of).unwrap_or_default();
        let tokens = rows.iter().map(|row| {
            let (transaction, client, sequence): (i64, i32, i64) =
                (row.get(0), row.get(1), row.get(2));
            let token = Token { client: client.unsigned_abs(), sequence: number(sequence) };
            (u32::try_from(transaction).unwrap_or_default(), token)
        });
        Ok(tokens.collect())
    });
    judge.context.check_stop()?;
    judge.bed.cut_power(0.0)?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_from_what_pg_waldump_prints_and_nothing_else_is() {
        let line = "rmgr: Transaction len (rec/tot):     34/    46, tx:        735, lsn: \
                    2/014F0E50, prev 2/014F0E20, desc: COMMIT 2026-11-25 10:00:00.000000 UTC";
        let part = WalPart { begin: 0x2_014F_0E50, length: 46 };
        assert_eq!(commit(line), Some((735, part)));
        for other in ["COMMIT_PREPARED gid x", "ABORT 2026-11-25", "COMMIT"] {
            let line = line.replace("COMMIT 2026-11-25 10:00:00.000000 UTC", other);
            assert_eq!(commit(&line), None, "{line}");
        }
    }
}
