//! A workload that is loaded in no time.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Writes the workload tpcb-like with a hundredth of its accounts into a folder of `directory`, and
/// returns that folder. Loading all of them takes a third of the time of a short run.
pub fn small_workload(directory: &Path) -> PathBuf {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/tpcb-like");
    let small = directory.join("tpcb-small");
    fs::create_dir_all(&small).unwrap();
    for file in fs::read_dir(built_in).unwrap().map(|entry| entry.unwrap().path()) {
        let text = fs::read_to_string(&file).unwrap();
        let text = text.replace("100_000", "1_000").replace("100000", "1000");
        // At once, since other threads and programs may be reading it.
        let whole = tempfile::NamedTempFile::new_in(directory).unwrap();
        fs::write(whole.path(), text).unwrap();
        fs::set_permissions(whole.path(), fs::Permissions::from_mode(0o644)).unwrap();
        whole.persist(small.join(file.file_name().unwrap())).unwrap();
    }
    small
}
