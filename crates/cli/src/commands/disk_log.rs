//! `pgdyno disk-log`: prints the log of an emulated disk, or makes an image of a state.

use std::collections::HashSet;
use std::fs::File;
use std::path::PathBuf;

use clap::Args;
use pgdyno_lab::{Content, DataPlace, DiskEvent, DiskLog, EventKind, LogError, LoggedPage};
use pgdyno_text::format;

use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;
use crate::state_options::StateOptions;

#[derive(Args, Debug)]
#[command(mut_group("StateOptions", |state| state.requires("image")))]
pub(crate) struct DiskLogArgs {
    /// The log: `disk-log` among the files that a failed `crash --exhaustive` keeps
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print the summary only
    #[arg(long)]
    summary: bool,
    /// Make this file, which must not exist, the disk as the log has it: to be mounted and looked
    /// at. Prints nothing
    #[arg(long, value_name = "IMAGE", conflicts_with = "summary")]
    image: Option<PathBuf>,
    /// The image that the log began with [default: `image-0` in the folder of the log]
    #[arg(long, value_name = "IMAGE", requires = "image")]
    over: Option<PathBuf>,
    #[command(flatten)]
    state: StateOptions,
}

/// Prints the summary and the events of a log, or makes an image.
///
/// # Errors
/// The file is no log, a damaged one, or one of another version of the format; the image cannot be
/// made.
pub(crate) fn run(options: &DiskLogArgs) -> Result<ExitStatus, CommandError> {
    let log = DiskLog::read(&options.file)?;
    if let Some(image) = &options.image {
        let state = options.state.state(log.newest());
        let beside = || options.file.with_file_name("image-0");
        let base = options.over.clone().unwrap_or_else(beside);
        state.write_image(&options.file, &base, image)?;
        return Ok(ExitStatus::Success);
    }
    print(&summary(&log));
    if !options.summary {
        let begin = log.events.first().map(|event| event.at).unwrap_or_default();
        let unread = |source| LogError::Io { what: "read", path: options.file.clone(), source };
        let file = File::open(&options.file).map_err(unread)?;
        for event in &log.events {
            let ms = event.at.since(begin).as_secs_f64() * 1e3;
            let pages = log.pages(event.number, &file).map_err(unread)?;
            let pages: String = pages.iter().map(render_page).collect();
            print(&format!("{:>10} {ms:>12.3} ms  {}{pages}\n", event.number, render_event(event)));
        }
    }
    Ok(ExitStatus::Success)
}

fn summary(log: &DiskLog) -> String {
    let (mut writes, mut discards, mut flushes, mut lies, mut lost) = (0, 0, 0, 0, 0);
    let (mut written, mut stored, mut known) = (0, 0, HashSet::new());
    for event in &log.events {
        match &event.kind {
            EventKind::Write { length, data: DataPlace::Stored { at, .. }, .. } => {
                writes += 1;
                written += length;
                stored += if known.insert(*at) { *length } else { 0 };
            }
            EventKind::Write { .. } => discards += 1,
            EventKind::Flush { is_done: true, .. } => flushes += 1,
            EventKind::Flush { .. } => lies += 1,
            EventKind::Lost { .. } => lost += 1,
        }
    }
    let count = |value: u64| format::count(value);
    format!(
        "a disk of {} bytes: {} events\n  writes: {} ({} bytes, {} of them stored once)\n  \
         discards: {}\n  flushes: {}, and {} acknowledged and not done\n  \
         writes lost at power cuts: {}\n",
        count(log.size),
        count(log.events.len() as u64),
        count(writes),
        count(written),
        count(stored),
        count(discards),
        count(flushes),
        count(lies),
        count(lost),
    )
}

fn render_event(event: &DiskEvent) -> String {
    match &event.kind {
        EventKind::Write { offset, length, data: DataPlace::Stored { hash, .. } } => {
            format!("write    {length} bytes at {offset}, data {hash}")
        }
        EventKind::Write { offset, length, data: DataPlace::Zeros } => {
            format!("discard  {length} bytes at {offset}")
        }
        EventKind::Flush { covers, is_done } => {
            let lie = if *is_done { "" } else { ", acknowledged and not done" };
            format!("flush    covers {covers}{lie}")
        }
        EventKind::Lost { write, kept } => format!("lost     {write}, but for {kept} bytes"),
    }
}

/// Names a page of PostgreSQL's.
fn render_page(page: &LoggedPage) -> String {
    let kind = match page.content {
        Content::DataPage => "data page",
        Content::WalPage => "WAL page",
    };
    let (high, low) = (page.position >> 32, page.position & 0xffff_ffff);
    format!("; {kind} at {}, LSN {high:X}/{low:X}", page.offset)
}
