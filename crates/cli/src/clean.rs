//! `pgdyno clean` and `pgdyno filesystems`.

use std::sync::atomic::AtomicBool;

use pgdyno_lab::Bytes;
use pgdyno_lab::clean::{self as lab, Cleaned};

use crate::Done;
use crate::args::Clean;
use crate::output::{Failure, print, print_line};

pub(crate) fn clean(options: &Clean, stop: &AtomicBool) -> Result<Done, Failure> {
    const NOTHING: &str = "nothing is left behind";
    if options.templates {
        let told = lab::templates(!options.dry_run)?;
        if told.is_empty() {
            print("no loaded cluster is kept");
        }
        told.iter().for_each(|line| print_line(line));
        return Ok(Done::Whole);
    }
    if options.crashes {
        let Cleaned { told, left } = lab::crashes(!options.dry_run);
        if told.is_empty() {
            print("nothing of a failed crash test is kept");
        }
        told.iter().for_each(|line| print_line(line));
        return finished(left);
    }
    if options.dry_run {
        let found = lab::find(&options.directories)?;
        if found.is_empty() {
            print(NOTHING);
        }
        found.iter().for_each(|line| print_line(line));
        tell_of_crashes();
        return Ok(Done::Whole);
    }
    let cleaned = lab::clean(&options.directories, stop)?;
    if cleaned.told.is_empty() {
        print(NOTHING);
    }
    cleaned.told.iter().for_each(|line| print_line(line));
    tell_of_crashes();
    finished(cleaned.left)
}

/// Says what room is taken by what failed crash tests left: nothing else takes it back.
fn tell_of_crashes() {
    let kept = lab::kept_crashes();
    if !kept.is_empty() {
        let bytes = Bytes(kept.iter().map(|kept| kept.bytes).sum());
        print(&format!(
            "kept: what {} failed crash tests left takes {bytes}; `pgdyno clean --crashes` removes it",
            kept.len()
        ));
    }
}

fn finished(left: bool) -> Result<Done, Failure> {
    if left {
        return Err(Failure::new("not everything could be removed; what is left is listed above"));
    }
    Ok(Done::Whole)
}

pub(crate) fn filesystems() -> Done {
    for known in lab::filesystems() {
        match known.missing {
            None => print(&format!("{:<10} can be made here", known.name)),
            Some((what, help)) => {
                let help = help.map_or_else(String::new, |help| format!("; {help}"));
                print(&format!("{:<10} {what}{help}", known.name));
            }
        }
    }
    Done::Whole
}
