//! `[size.NAME]`: other values for keys of the same file, under a name.

use pgdyno_text::nearest::nearest;
use serde::Deserialize;

use super::error::FileError;
use super::overrides::Override;
use super::source::Source;

/// A size that a file describes.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// The name, as `--size` has it.
    pub name: String,
    /// The size in a few words.
    pub about: String,
    /// The keys that the size sets.
    pub overrides: Vec<Override>,
}

/// One table; the keys of `set` are spelled as `--set` has them.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct SizeTable {
    /// The size in a few words.
    about: String,
    /// Keys as `--set` spells them, in quotes, and their values.
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, serde_json::Value>"))]
    #[serde(default)]
    set: toml::Table,
}

/// The sizes only: the rest of the file is read elsewhere.
#[derive(Deserialize)]
struct Sizes {
    #[serde(default)]
    size: toml::Table,
}

/// Returns the sizes that `source` describes, in the order of the file.
///
/// # Errors
/// One of them is not as it should be.
pub fn sizes(source: &Source) -> Result<Vec<Size>, FileError> {
    let sizes: Sizes = toml::from_str(&source.text).map_err(|e| FileError::in_file(source, &e))?;
    let size = |(name, table): (String, toml::Value)| {
        let wrong =
            |e: toml::de::Error| FileError::in_override(&format!("[size.{name}]"), e.message());
        let SizeTable { about, set } = table.try_into().map_err(wrong)?;
        let set = set.iter().map(|(key, value)| Override::parse(&format!("{key}={value}")));
        Ok(Size { name, about, overrides: set.collect::<Result<_, _>>()? })
    };
    sizes.size.into_iter().map(size).collect()
}

/// Returns the size of `source` that is called `name`.
///
/// # Errors
/// There is none of that name.
pub fn size(source: &Source, name: &str) -> Result<Size, FileError> {
    let sizes = sizes(source)?;
    if let Some(found) = sizes.iter().find(|size| size.name == name) {
        return Ok(found.clone());
    }
    let known: Vec<&str> = sizes.iter().map(|size| size.name.as_str()).collect();
    let help = match nearest(name, &known).as_slice() {
        [] => format!("it has none: a table `[size.{name}]` with `about` and `set` makes one"),
        sizes => format!("its sizes are {}", sizes.join(", ")),
    };
    let what = format!("{} has no size `{name}`", source.shown);
    Err(FileError::Refused { what, help: Some(help) })
}

#[cfg(test)]
mod tests {
    use pgdyno_model::Advice;

    use super::*;
    use crate::file::parse;

    fn source(text: &str) -> Source {
        Source { name: "try".into(), shown: "try".into(), text: text.into(), base: "/".into() }
    }

    #[test]
    fn a_size_sets_what_it_names_and_a_later_word_counts_more() {
        let file = source(
            "[workload]\nscale = 1\n[load]\nduration = \"5s\"\n[size.quick]\nabout = \"as it is\"\n\
             [size.large]\n\
             about = \"more\"\n[size.large.set]\n\"workload.scale\" = 30\n\
             \"load.transactions\" = 7\n\
             \"factors.commit\" = { on = { synchronous_commit = \"on\" }, off = { \
             synchronous_commit = \"off\" } }\n",
        );
        let mut large = size(&file, "large").unwrap().overrides;
        let experiment = parse(&file, &large).unwrap();
        assert_eq!(experiment.workload.scale.get(), 30);
        assert_eq!(experiment.factors[0].levels.len(), 2);
        large.push(Override::parse("workload.scale=31").unwrap());
        assert_eq!(parse(&file, &large).unwrap().workload.scale.get(), 31);
        // What the store keeps of them means the same again.
        for one in &large {
            assert_eq!(Override::parse(&one.given).unwrap(), *one);
        }
        let none = size(&file, "larg").unwrap_err();
        assert_eq!(none.to_string(), "try has no size `larg`");
        assert_eq!(none.help().unwrap(), "its sizes are large, quick");
    }

    #[test]
    fn a_size_that_is_not_right_is_named() {
        let wrong = source("[size.large]\nsets = 1\n");
        let error = sizes(&wrong).unwrap_err().to_string();
        assert!(error.contains("[size.large]") && error.contains("sets"), "{error}");
        assert!(parse(&wrong, &[]).is_err());
        let none = size(&source(""), "large").unwrap_err();
        assert!(none.help().unwrap().contains("[size.large]"), "{:?}", none.help());
    }
}
