//! `[answer]`: how the experiment's question is answered.

use pgdyno_model::{Answer, AnswerKind};
use serde::Deserialize;
use toml::Spanned;

use super::error::Complaint;

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerTable {
    /// The kind of answer in the first sentences.
    kind: AnswerKind,
    /// For `kind = "effect"`: the level whose effect is asked for. By default the last of the
    /// first factor.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    level: Option<Spanned<String>>,
    /// For `kind = "effect"`: the level that it is compared to. By default the first of the
    /// factor.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    against: Option<Spanned<String>>,
    /// For `kind = "effect"`: its name in the sentence.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    words: Option<Spanned<String>>,
}

impl AnswerTable {
    /// The answer that is asked for. A level that no treatment has is no mistake here: `--set
    /// factors.…` may have left it out, and the report says so.
    pub(super) fn into_answer(self) -> Result<Answer, Complaint> {
        let only_of_effects =
            [&self.level, &self.against, &self.words].into_iter().flatten().next();
        if let Some(key) = only_of_effects.filter(|_| self.kind != AnswerKind::Effect) {
            return Err(Complaint::new(
                "`level`, `against` and `words` belong to `kind = \"effect\"`",
            )
            .with_help("leave them out, or ask for the effect of a level")
            .at(key.span()));
        }
        Ok(Answer {
            kind: self.kind,
            level: self.level.map(Spanned::into_inner),
            against: self.against.map(Spanned::into_inner),
            words: self.words.map(Spanned::into_inner),
        })
    }
}
