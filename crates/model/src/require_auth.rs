//! By which methods a client lets a server ask for proof of identity; libpq's `require_auth`.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use thiserror::Error;

/// A method by which a server lets a client in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum AuthMethod {
    /// The password itself.
    Password,
    /// The password's MD5 hash, salted.
    Md5,
    /// GSSAPI.
    Gss,
    /// SSPI.
    Sspi,
    /// SCRAM-SHA-256, bound to TLS or not.
    #[strum(serialize = "scram-sha-256")]
    ScramSha256,
    /// An OAuth bearer token.
    Oauth,
    /// None: the server lets in without any proof.
    None,
}

impl AuthMethod {
    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The methods that are accepted. The default accepts every method, and names none.
///
/// ```
/// # use pgdyno_model::require_auth::{AuthMethod, RequireAuth};
/// let only: RequireAuth = "scram-sha-256".parse().unwrap();
/// assert!(only.accepts(AuthMethod::ScramSha256) && !only.accepts(AuthMethod::None));
/// let but: RequireAuth = "!password,!md5".parse().unwrap();
/// assert!(but.accepts(AuthMethod::None) && !but.names(AuthMethod::Gss));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RequireAuth {
    text: String,
    refused: u8,
    /// Accepted, and by name.
    named: u8,
}

/// A list of methods that cannot be read; in libpq's words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequireAuthError {
    /// A method that nobody knows.
    #[error("invalid require_auth value: \"{0}\"")]
    Unknown(String),
    /// A method without `!` after one with it.
    #[error("require_auth method \"{0}\" cannot be mixed with negative methods")]
    Positive(String),
    /// A method with `!` after one without it.
    #[error("negative require_auth method \"{0}\" cannot be mixed with non-negative methods")]
    Negative(String),
    /// A method that is there twice.
    #[error("require_auth method \"{0}\" is specified more than once")]
    Twice(String),
}

impl RequireAuth {
    /// Whether `method` is accepted.
    pub fn accepts(&self, method: AuthMethod) -> bool {
        self.refused & method.bit() == 0
    }

    /// Whether `method` is accepted and asked for by its name.
    pub fn names(&self, method: AuthMethod) -> bool {
        self.named & method.bit() != 0
    }

    /// The list as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl TryFrom<String> for RequireAuth {
    type Error = RequireAuthError;

    fn try_from(text: String) -> Result<Self, RequireAuthError> {
        text.parse()
    }
}

impl From<RequireAuth> for String {
    fn from(list: RequireAuth) -> Self {
        list.text
    }
}

impl std::str::FromStr for RequireAuth {
    type Err = RequireAuthError;

    /// Reads a list with commas; a `!` before every method means all but these.
    fn from_str(text: &str) -> Result<Self, RequireAuthError> {
        let is_negative = text.starts_with('!');
        let mut listed = 0;
        for word in text.split(',').filter(|_| !text.is_empty()) {
            let name = match (word.strip_prefix('!'), is_negative) {
                (Some(name), true) => name,
                (None, false) => word,
                (Some(_), false) => return Err(RequireAuthError::Negative(word.to_owned())),
                (None, true) => return Err(RequireAuthError::Positive(word.to_owned())),
            };
            let method = name.parse::<AuthMethod>();
            let bit = method.map_err(|_| RequireAuthError::Unknown(word.to_owned()))?.bit();
            if listed & bit != 0 {
                return Err(RequireAuthError::Twice(word.to_owned()));
            }
            listed |= bit;
        }
        let (refused, named) = match (text.is_empty(), is_negative) {
            (true, _) => (0, 0),
            (_, true) => (listed, 0),
            (_, false) => (!listed, listed),
        };
        Ok(Self { text: text.to_owned(), refused, named })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(text: &str) -> Vec<&'static str> {
        let list: RequireAuth = text.parse().unwrap();
        AuthMethod::VARIANTS.iter().filter(|m| list.accepts(**m)).map(Into::into).collect()
    }

    #[test]
    fn a_list_accepts_what_it_names_or_all_but_that() {
        assert_eq!(accepted("").len(), 7);
        assert_eq!(accepted("md5,scram-sha-256"), ["md5", "scram-sha-256"]);
        assert_eq!(accepted("none"), ["none"]);
        assert_eq!(accepted("!none,!gss,!sspi,!oauth"), ["password", "md5", "scram-sha-256"]);
        assert!("password".parse::<RequireAuth>().unwrap().names(AuthMethod::Password));
        assert!(!"!md5".parse::<RequireAuth>().unwrap().names(AuthMethod::Password));
        assert!(!RequireAuth::default().names(AuthMethod::Password));
    }

    #[test]
    fn a_list_that_libpq_refuses_is_refused() {
        use RequireAuthError as E;
        for (text, error) in [
            ("scram", E::Unknown("scram".into())),
            ("md5, password", E::Unknown(" password".into())),
            ("md5,", E::Unknown(String::new())),
            ("md5,!none", E::Negative("!none".into())),
            ("!md5,none", E::Positive("none".into())),
            ("md5,md5", E::Twice("md5".into())),
        ] {
            assert_eq!(text.parse::<RequireAuth>(), Err(error), "{text}");
        }
    }
}
