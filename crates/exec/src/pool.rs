//! Pools of ZFS, as far as they are taken down.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::StepError;
use crate::tool::run_tool;

/// How long the destruction of a pool waits for processes that still use it. On a busy machine,
/// zfs-fuse itself notices only seconds later that a filesystem was unmounted.
const PATIENCE: Duration = Duration::from_secs(20);

/// Destroys the pool `name`, if it is there.
///
/// # Errors
/// [`StepError`]: it stays in use, or OpenZFS does not answer. A zfs-fuse that does not answer
/// holds no pools.
pub fn destroy_pool(name: &str) -> Result<(), StepError> {
    let pools = match run_tool("zpool", &["list", "-H", "-o", "name"]) {
        Ok(pools) => pools,
        Err(_) if !is_in_kernel() => return Ok(()),
        Err(e) => return Err(e),
    };
    if !pools.lines().any(|found| found == name) {
        return Ok(());
    }
    let until = Instant::now() + PATIENCE;
    loop {
        match run_tool("zpool", &["destroy", name]) {
            Ok(_) => return Ok(()),
            Err(e) if Instant::now() >= until => return Err(e),
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// Tells whether the kernel has the module of OpenZFS loaded.
pub fn is_in_kernel() -> bool {
    Path::new("/sys/module/zfs").exists()
}
