//! What performs the undo steps of storages.

use std::path::Path;

use crate::causes::with_causes;
use crate::device::claim::Labelled;
use crate::device::held;
use crate::image::LoopDevice;
use crate::mount::Mount;
use crate::pool::Pool;
use crate::service::stop_serving;
use crate::setting as knob;
use crate::step::{Step, StepError, io_error};
use crate::tool as program;
use crate::undo::Undo;

/// The undo step that does what `step` does; none for a step that makes something, or that has an
/// entry of its own.
pub fn from_step(step: &Step) -> Option<Undo> {
    Some(match step {
        Step::Unmount(Mount { filesystem, source, target, .. }) => Undo::Unmount {
            target: target.clone(),
            filesystem: filesystem.clone(),
            source: source.clone(),
        },
        Step::DetachLoop(LoopDevice { image, link, .. }) => {
            Undo::DetachLoop { image: image.clone(), link: link.clone() }
        }
        Step::StopDisk(service) => Undo::StopDisk { directory: service.directory.clone() },
        Step::DestroyPool(Pool { name }) => Undo::DestroyPool { name: name.clone() },
        Step::EraseLabelled(Labelled { device, looked_at, label }) => {
            let (device, label, looked_at) = (device.clone(), label.clone(), looked_at.clone());
            Undo::EraseLabelled { device, label, looked_at }
        }
        Step::Undo(undo) => undo.clone(),
        _ => return None,
    })
}

/// Takes down a stack but for its directories. Programs may fail, since what they are to remove may
/// never have been made; that nothing holds the devices any more is what counts.
///
/// # Errors
/// What is still there, and what the programs said.
pub fn take_down(steps: &[Undo]) -> Result<(), String> {
    let mut complaints = Vec::new();
    for step in steps {
        let Err(why) = perform(step) else { continue };
        if matches!(step, Undo::StopArray { .. } | Undo::RemoveVolumeGroup { .. }) {
            complaints.push(with_causes(&why));
            continue;
        }
        complaints.insert(0, with_causes(&why));
        return Err(complaints.join("; before that: "));
    }
    Ok(())
}

/// Performs one undo step.
///
/// # Errors
/// What could not be undone, and why.
pub fn perform(undo: &Undo) -> Result<(), StepError> {
    match undo {
        Undo::Unmount { target, filesystem, source } => {
            let (filesystem, source, target) = (filesystem.clone(), source.clone(), target.clone());
            Ok(Mount { filesystem, source, target, options: Vec::new() }.unmount()?)
        }
        Undo::DetachLoop { image, link } => {
            let (image, link) = (image.clone(), link.clone());
            LoopDevice { image, link, sector_size: None, direct_io: false }.detach()
        }
        Undo::StopDisk { directory } => stop_serving(directory),
        Undo::StopArray { name } => {
            let array = Path::new("/dev/md").join(checked(name)?);
            program::output("mdadm", &["--stop".as_ref(), array.as_os_str()]).map(drop)
        }
        Undo::RemoveVolumeGroup { name, members, looked_at } => {
            let of_this_boot: Vec<_> =
                looked_at.iter().filter(|d| d.is_of_this_boot()).cloned().collect();
            let _held = held::hold(&of_this_boot)?;
            let removed = program::output("vgremove", &["--force", "--yes", checked(name)?]);
            // Members that no group holds any more still bear its label.
            let unlabelled = program::output("pvremove", members);
            removed.and(unlabelled).map(drop)
        }
        Undo::DestroyPool { name } => Pool { name: checked(name)?.to_owned() }.destroy(),
        Undo::EraseLabelled { device, label, looked_at } => {
            let (device, label, looked_at) = (device.clone(), label.clone(), looked_at.clone());
            Labelled { device, looked_at, label }.erase()
        }
        Undo::WriteKernelFiles { .. } | Undo::SetDriveCache { .. } | Undo::RunHook { .. } => {
            knob::put_back(undo).map(drop)
        }
    }
}

/// Puts a setting back. What somebody else has set to another value meanwhile is left as it is:
/// told as `Ok(Some)`.
///
/// # Errors
/// What could not be put back, and why.
pub fn put_back(undo: &Undo) -> Result<Option<String>, String> {
    knob::put_back(undo).map_err(|e| with_causes(&e))
}

/// A name as pgdyno gives them, which no program takes for an option or a path.
fn checked(name: &str) -> Result<&str, StepError> {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if is_plain {
        return Ok(name);
    }
    let found =
        std::io::Error::other("it is no name of an array, volume group or pool of pgdyno's");
    Err(io_error("take down", Path::new(name), found))
}
