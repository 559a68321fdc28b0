//! Executing undo steps.

use std::io;
use std::path::Path;

use super::Effect;
use crate::device::held;
use crate::device::label::erase_labelled;
use crate::error::{StepError, io_error};
use crate::image::detach_loops;
use crate::mount::unmount;
use crate::pool::destroy_pool;
use crate::service::stop_serving;
use crate::setting;
use crate::tool::run_tool;
use crate::undo::Undo;

/// Executes one undo step.
pub(super) fn execute(undo: &Undo) -> Result<Effect, StepError> {
    match undo {
        Undo::Unmount { target, filesystem, source } => unmount(target, filesystem, source)?,
        Undo::DetachLoop { image, link } => detach_loops(image, link)?,
        Undo::StopDisk { directory } => stop_serving(directory)?,
        Undo::StopArray { name } => {
            let array = Path::new("/dev/md").join(checked(name)?);
            run_tool("mdadm", &["--stop".as_ref(), array.as_os_str()])?;
        }
        Undo::RemoveVolumeGroup { name, members, looked_at } => {
            let of_this_boot: Vec<_> =
                looked_at.iter().filter(|d| d.is_of_this_boot()).cloned().collect();
            let _held = held::hold(&of_this_boot)?;
            let removed = run_tool("vgremove", &["--force", "--yes", checked(name)?]);
            // Members that no group holds any more still bear its label.
            let unlabelled = run_tool("pvremove", members);
            removed.and(unlabelled)?;
        }
        Undo::DestroyPool { name } => destroy_pool(checked(name)?)?,
        Undo::EraseLabelled { device, label, looked_at } => {
            erase_labelled(device, label, looked_at.as_ref())?;
        }
        Undo::WriteKernelFiles { .. }
        | Undo::SetDriveCache { .. }
        | Undo::SetRaidCache { .. }
        | Undo::RunHook { .. } => {
            return Ok(
                setting::put_back(undo)?.map_or(Effect::Done, |found| Effect::LeftAlone { found })
            );
        }
    }
    Ok(Effect::Done)
}

/// Returns a name as pgdyno gives them, which no program takes for an option or a path.
fn checked(name: &str) -> Result<&str, StepError> {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if is_plain {
        return Ok(name);
    }
    let found = io::Error::other("it is no name of an array, volume group or pool of pgdyno's");
    Err(io_error("take down", Path::new(name), found))
}
