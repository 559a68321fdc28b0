//! Parameters of kernel modules: files below `/sys/module`.
//!
//! A parameter holds for the whole host and takes effect at once. The kernel shows booleans as `Y`
//! and `N`, whatever was written.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::SettingError;

/// Where the kernel shows its modules.
const MODULES: &str = "/sys/module";

/// Returns the file of `parameter` of the kernel module `module`.
pub fn file(module: &str, parameter: &str) -> PathBuf {
    Path::new(MODULES).join(module).join("parameters").join(parameter)
}

/// Tells whether `name` may be the name of a module or a parameter: no path, nothing hidden.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Checks that the kernel has the parameter and that it can be set while the module is loaded.
///
/// # Errors
/// [`SettingError::NoModule`], [`SettingError::NoParameter`] or [`SettingError::ReadOnly`].
pub fn check(module: &str, parameter: &str) -> Result<(), SettingError> {
    check_in(Path::new(MODULES), module, parameter)
}

fn check_in(modules: &Path, module: &str, parameter: &str) -> Result<(), SettingError> {
    use std::os::unix::fs::PermissionsExt as _;
    let (module, parameter) = (module.to_owned(), parameter.to_owned());
    let folder = modules.join(&module);
    if !folder.is_dir() {
        return Err(SettingError::NoModule { module, parameter, folder });
    }
    let file = folder.join("parameters").join(&parameter);
    match fs::metadata(&file) {
        Err(_) => Err(SettingError::NoParameter { module, parameter, file }),
        // Root may open any file: the mode tells what the module takes.
        Ok(found) if found.permissions().mode() & 0o222 == 0 => {
            Err(SettingError::ReadOnly { module, parameter, file })
        }
        Ok(_) => Ok(()),
    }
}

/// Returns `asked` as the kernel shows it beside `shown`: a boolean as `Y` or `N`.
pub(super) fn as_shown(asked: &str, shown: &str) -> String {
    let is_boolean = matches!(shown, "Y" | "N");
    match asked.to_ascii_lowercase().as_str() {
        "1" | "y" | "yes" | "on" | "true" if is_boolean => "Y".to_owned(),
        "0" | "n" | "no" | "off" | "false" if is_boolean => "N".to_owned(),
        _ => asked.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_missing_module_a_missing_parameter_and_one_that_cannot_be_set_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let parameters = folder.path().join("zfs/parameters");
        fs::create_dir_all(&parameters).unwrap();
        for (name, mode) in [("zfs_arc_max", 0o644), ("zvol_major", 0o444)] {
            fs::write(parameters.join(name), "0\n").unwrap();
            fs::set_permissions(parameters.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let check = |module, parameter| check_in(folder.path(), module, parameter);
        assert!(check("zfs", "zfs_arc_max").is_ok());
        assert!(matches!(check("xfs", "a"), Err(SettingError::NoModule { .. })));
        assert!(matches!(check("zfs", "zfs_arc_mux"), Err(SettingError::NoParameter { .. })));
        assert!(matches!(check("zfs", "zvol_major"), Err(SettingError::ReadOnly { .. })));
    }

    #[test]
    fn a_name_is_no_path() {
        assert!(is_name("zfs_arc_max") && is_name("kvm_intel"));
        for none in ["", ".", "..", "../kernel", "a/b", "a b", "a\n"] {
            assert!(!is_name(none), "{none:?}");
        }
        assert_eq!(file("zfs", "zfs_arc_max"), Path::new("/sys/module/zfs/parameters/zfs_arc_max"));
    }

    #[test]
    fn booleans_are_compared_as_the_kernel_shows_them() {
        for (asked, was, shown) in
            [("1", "N", "Y"), ("off", "Y", "N"), ("1", "0", "1"), ("8G", "N", "8G")]
        {
            assert_eq!(as_shown(asked, was), shown);
        }
    }
}
