//! Skipped tests.

use std::io::{Write as _, stderr};

/// Says that the test named `test` is skipped, and why.
///
/// The test runner keeps what passing tests print through `eprintln!`; this is written past it.
pub fn skip(test: &str, why: &str) {
    let _ = writeln!(stderr(), "\nskipped: {test}: {why}");
}

/// Returns whether the process is root. Otherwise says that the test named `test` is skipped
/// because of `why`.
pub fn is_root(test: &str, why: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(test, why);
    }
    is_root
}

/// Returns the name of the function that this stands in, without its path.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        $crate::caller(std::any::type_name_of_val(&here))
    }};
}

/// Ends the test that this stands in unless `check`, called with the test's name, holds. `check`
/// says that the test is skipped.
#[macro_export]
macro_rules! needs {
    ($check:path $(, $argument:expr)* $(,)?) => {
        if !$check($crate::test_name!() $(, $argument)*) {
            return;
        }
    };
}

/// Returns the function in whose path `inner` is a function of its own: `b` of `a::b::here`.
#[doc(hidden)]
pub fn caller(inner: &'static str) -> &'static str {
    let outer = inner.rsplit("::").skip(1).find(|part| *part != "{{closure}}");
    outer.unwrap_or(inner)
}
