//! Power loss without device-mapper: a filesystem is shut down without its journal being flushed,
//! and mounted again.

use std::fs::File;
use std::path::PathBuf;

use pgdyno_exec::Step;
use pgdyno_exec::image::LoopDevice;
use pgdyno_exec::mount::Mount;
use pgdyno_exec::mountinfo::mounted_at;

use super::error::{CUTTABLE, FaultError};
use crate::MountedStack;

/// Switch that cuts the power of one made filesystem. [`MountedStack::mount`] brings it back.
#[derive(Clone, Debug)]
pub struct PowerSwitch {
    storage: String,
    mount: Mount,
    image: PathBuf,
}

impl PowerSwitch {
    /// Returns the switch of `stack`'s filesystem, one of [`CUTTABLE`] over a loop device over a
    /// file of pgdyno's own.
    ///
    /// # Errors
    /// [`FaultError::NotOurs`]: it is something else.
    pub fn find(stack: &MountedStack) -> Result<Self, FaultError> {
        let plan = stack.stack();
        let storage = plan.name().to_owned();
        let refused = |found: String| FaultError::NotOurs { storage: storage.clone(), found };
        if !plan.is_made() {
            return Err(refused(format!(
                "{} is a directory on a filesystem that others use too",
                plan.path().display()
            )));
        }
        let steps = plan.steps();
        let loops: Vec<LoopDevice> = steps
            .iter()
            .filter_map(|step| {
                if let Step::AttachLoop(device) = step { Some(device.clone()) } else { None }
            })
            .collect();
        let mount = steps
            .into_iter()
            .find_map(|step| match step {
                Step::Mount(mount) if mount.target == plan.path() => Some(mount),
                _ => None,
            })
            .ok_or_else(|| refused("it is not mounted as other filesystems are".into()))?;
        let [device] = loops.as_slice() else {
            return Err(refused(format!(
                "it lies on {} files of pgdyno's own, not on one",
                loops.len()
            )));
        };
        if !CUTTABLE.contains(&mount.filesystem.as_str()) {
            return Err(refused(format!("{} cannot be shut down", mount.filesystem)));
        }
        let switch = Self { storage, mount, image: device.image.clone() };
        switch.check()?;
        Ok(switch)
    }

    /// Checks that the filesystem of [`Self::find`] is still mounted, over a loop device over its
    /// file.
    fn check(&self) -> Result<(), FaultError> {
        let refused = |found: String| FaultError::NotOurs { storage: self.storage.clone(), found };
        let target = &self.mount.target;
        let mounted =
            mounted_at(target).map_err(|e| FaultError::io("read the mounts for", target, e))?;
        let mounted = mounted
            .ok_or_else(|| refused(format!("nothing is mounted at {}", target.display())))?;
        if mounted.loop_file().as_ref() != Some(&self.image) {
            return Err(refused(format!(
                "at {} is {} on {}, not pgdyno's loop device over {}",
                target.display(),
                mounted.filesystem,
                mounted.source,
                self.image.display()
            )));
        }
        Ok(())
    }

    /// Cuts the power: data that have not reached the loop device's file never will. Every access
    /// fails from now on.
    ///
    /// # Errors
    /// [`FaultError`]: the filesystem is not, or no longer, the one of [`PowerSwitch::find`], or it
    /// refuses.
    pub fn cut(&self) -> Result<(), FaultError> {
        self.check()?;
        let path = &self.mount.target;
        let directory = File::open(path).map_err(|e| FaultError::io("open", path, e))?;
        pgdyno_ioctl::shut_down_without_flushing(&directory).map_err(|source| FaultError::Refused {
            storage: self.storage.clone(),
            filesystem: self.mount.filesystem.clone(),
            source,
        })
    }
}
