//! Parts that a build may leave out.

use std::fmt::Write as _;
use std::sync::LazyLock;

/// A part that a build may leave out.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// The feature of the crate that builds it.
    pub(crate) feature: &'static str,
    is_built: bool,
}

const PARTS: [Part; 4] = [
    Part { name: "`pgdyno capture`", feature: "capture", is_built: cfg!(feature = "capture") },
    Part { name: "`pgdyno serve`", feature: "serve", is_built: cfg!(feature = "serve") },
    Part {
        name: "the emulated disk",
        feature: "emulated-disk",
        is_built: cfg!(feature = "emulated-disk"),
    },
    Part {
        name: "`pgdyno export --format parquet`",
        feature: "parquet",
        is_built: cfg!(feature = "parquet"),
    },
];

/// The version, and which parts this build has.
pub(crate) static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut text = env!("CARGO_PKG_VERSION").to_owned();
    for Part { name, feature, is_built } in PARTS {
        let _ = match is_built {
            true => write!(text, "\nwith {name}"),
            false => write!(text, "\nwithout {name} (feature `{feature}`)"),
        };
    }
    text
});

/// Returns the parts that this build lacks.
pub(crate) fn missing_parts() -> impl Iterator<Item = Part> {
    PARTS.into_iter().filter(|part| !part.is_built)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_tells_of_each_part_and_how_to_get_those_that_are_left_out() {
        assert_eq!(LONG_VERSION.lines().count(), 1 + PARTS.len());
        for Part { name, feature, is_built } in PARTS {
            let line = LONG_VERSION.lines().find(|line| line.contains(name)).unwrap();
            assert_eq!(line.starts_with("with "), is_built, "{line}");
            assert_eq!(line.contains(feature) && line.contains("feature"), !is_built, "{line}");
        }
    }
}
