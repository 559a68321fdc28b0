//! Values in files of `/proc` and `/sys`.

/// Returns the value of `name : value` in a file of `/proc`.
pub(crate) fn value_of(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Returns a value of `/proc/meminfo`, in bytes.
pub fn kilobytes(meminfo: &str, name: &str) -> Option<u64> {
    let value: u64 = value_of(meminfo, name)?.strip_suffix("kB")?.trim().parse().ok()?;
    value.checked_mul(1024)
}
