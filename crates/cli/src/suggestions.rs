//! Values that shells complete for an argument that takes any text.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};

/// Takes any text, and has shells complete the values that the function returns. The argument needs
/// `hide_possible_values`: the help would take them for all that there are.
#[derive(Clone)]
pub(crate) struct Suggestions(pub(crate) fn() -> Vec<String>);

/// Suggests the name of the newest run.
pub(crate) const RUNS: Suggestions = Suggestions(|| vec!["latest".to_owned()]);

impl TypedValueParser for Suggestions {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        // clap keeps static strings only.
        Some(Box::new((self.0)().into_iter().map(|value| PossibleValue::new(&*value.leak()))))
    }
}
