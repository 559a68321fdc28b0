//! The path under which a proxy offers the server.

use std::fmt;
use std::str::FromStr;

use axum::http::Uri;

/// Path under which a proxy offers the server, such as `/pgdyno`; empty where the server has a host
/// of its own.
///
/// Requests may come with it, or without it where the proxy takes it off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasePath(String);

/// No path under which a server could be offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no path such as `/pgdyno`: letters, digits, `-`, `_` and `.`, each part behind a `/`"
)]
pub struct BasePathError(String);

impl FromStr for BasePath {
    type Err = BasePathError;

    fn from_str(text: &str) -> Result<Self, BasePathError> {
        let path = text.trim_end_matches('/');
        let is_part = |part: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            part.chars().all(is_plain) && !part.trim_matches('.').is_empty()
        };
        let is_path = |rest: &str| rest.split('/').all(is_part);
        match path.strip_prefix('/') {
            None if path.is_empty() => Ok(Self::default()),
            Some(rest) if is_path(rest) => Ok(Self(path.to_owned())),
            _ => Err(BasePathError(text.to_owned())),
        }
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl BasePath {
    /// Takes the path off the beginning of a request's.
    pub(crate) fn take_off(&self, uri: &mut Uri) {
        let Some(rest) = uri.path().strip_prefix(&self.0) else { return };
        if self.0.is_empty() || !(rest.is_empty() || rest.starts_with('/')) {
            return;
        }
        let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = format!("/{}{query}", rest.trim_start_matches('/')).parse().ok();
        if let Ok(without) = Uri::from_parts(parts) {
            *uri = without;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_off_where_it_stands_whole() {
        let base: BasePath = "/lab/pgdyno/".parse().unwrap();
        let without = |path: &str| {
            let mut uri: Uri = path.parse().unwrap();
            base.take_off(&mut uri);
            uri.to_string()
        };
        assert_eq!(without("/lab/pgdyno/api/runs?x=1"), "/api/runs?x=1");
        assert_eq!(without("/lab/pgdyno"), "/");
        assert_eq!(without("/lab/pgdyno?token=x"), "/?token=x");
        assert_eq!(without("/lab/pgdynos/api"), "/lab/pgdynos/api");
        assert_eq!(without("/api/runs"), "/api/runs");
        assert_eq!(without("/lab/pgdyno//evil.example/"), "/evil.example/");
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["pgdyno", "/a//b", "/a/../b", "/a?b", "/a\"b", "/a b", "//a"] {
            assert!(text.parse::<BasePath>().is_err(), "{text}");
        }
        assert_eq!("/".parse(), Ok(BasePath::default()));
    }
}
