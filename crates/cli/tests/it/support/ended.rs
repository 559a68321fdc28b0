//! How a program ended, and what is asserted of it: its exit status with [`Ended::exits`], then its
//! words with [`Ended::says`] and [`Ended::prints`].

use std::process::{Child, Output};

use serde_json::Value;

pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    /// Which of several cases it is, for messages.
    pub(super) what: String,
}

pub fn ended(output: Output) -> Ended {
    Ended {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        what: String::new(),
    }
}

/// Waits for the end of a child whose output is piped.
pub fn finish(child: Child) -> Ended {
    ended(child.wait_with_output().unwrap())
}

impl Ended {
    /// Says which of several cases it is.
    pub fn with_case(self, what: impl std::fmt::Display) -> Self {
        Self { what: format!("{what}: "), ..self }
    }

    /// Asserts the exit status.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}{}", self.what, self.out, self.err);
        self
    }

    /// Asserts that it failed with status 1, and that all of `words` are in standard error.
    #[track_caller]
    pub fn fails(self, words: &[&str]) -> Self {
        let ended = self.exits(1);
        for word in words {
            ended.says(word);
        }
        ended
    }

    /// Asserts that `words` are in standard error.
    #[track_caller]
    pub fn says(&self, words: impl AsRef<str>) -> &Self {
        let words = words.as_ref();
        assert!(self.err.contains(words), "{}no `{words}` in {}", self.what, self.err);
        self
    }

    /// Asserts that `words` are in standard output.
    #[track_caller]
    pub fn prints(&self, words: impl AsRef<str>) -> &Self {
        let words = words.as_ref();
        assert!(self.out.contains(words), "{}no `{words}` in {}", self.what, self.out);
        self
    }

    /// The document in standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}{}", self.out, self.err))
    }

    /// The document in the page in standard output.
    pub fn page(&self) -> Value {
        let (_, data) = self.out.split_once("id=\"pgdyno-data\">").unwrap();
        serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
    }
}
