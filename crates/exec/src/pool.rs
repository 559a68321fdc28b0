//! Pools of ZFS, as far as they are taken down.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::step::StepError;
use crate::tool;

/// How long the destruction of a pool waits for those who still use it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A pool that pgdyno made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Its name, which holds the journal's id.
    pub name: String,
}

impl Pool {
    /// Destroys it, if it is there.
    ///
    /// # Errors
    /// [`StepError`]: it stays in use, or OpenZFS does not answer. A zfs-fuse that does not answer
    /// holds no pools.
    pub fn destroy(&self) -> Result<(), StepError> {
        let pools = match tool::output("zpool", &["list", "-H", "-o", "name"]) {
            Ok(pools) => pools,
            Err(_) if !is_in_kernel() => return Ok(()),
            Err(e) => return Err(e),
        };
        if !pools.lines().any(|name| name == self.name) {
            return Ok(());
        }
        let until = Instant::now() + PATIENCE;
        loop {
            match tool::output("zpool", &["destroy", &self.name]) {
                Ok(_) => return Ok(()),
                Err(e) if Instant::now() >= until => return Err(e),
                Err(_) => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run, if there is such a pool: zpool destroy {}", self.name)
    }
}

/// Whether the kernel has the module of OpenZFS loaded.
#[must_use]
pub fn is_in_kernel() -> bool {
    Path::new("/sys/module/zfs").exists()
}
