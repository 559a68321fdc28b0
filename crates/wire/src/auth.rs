//! Authentication: cleartext, MD5, SCRAM-SHA-256 and SCRAM-SHA-256-PLUS. No I/O.
//!
//! Create an [`AuthExchange`], give it a policy and a channel binding, and pass every
//! authentication message of the server to [`AuthExchange::answer`]. Send what it appends, until it
//! returns [`AuthProgress::Accepted`].
//!
//! ```
//! use pgdyno_wire::auth::{AuthExchange, AuthProgress};
//! use pgdyno_wire::backend::Authentication;
//!
//! let mut exchange = AuthExchange::new("me", Some("secret"));
//! let mut out = Vec::new();
//! exchange.answer(Authentication::Md5Password([1, 2, 3, 4]), &mut out)?;
//! assert!(out.starts_with(b"p\0\0\0\x28md5"));
//! assert_eq!(exchange.answer(Authentication::Ok, &mut out)?, AuthProgress::Accepted);
//! # Ok::<(), pgdyno_wire::auth::AuthError>(())
//! ```

use pgdyno_model::target::{AuthMethod, RequireAuth};
use pgdyno_model::{Advice, FailureKind};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use thiserror::Error;

use crate::backend::{Authentication, Mechanisms};
use crate::{WireError, frontend};

/// Iterations of SCRAM's hash that are done for a server at most.
///
/// PostgreSQL's default is 4,096. Iterations cost time before the server has proved its identity.
pub const MAX_ITERATIONS: u32 = 100_000;

/// Why authentication fails.
#[derive(Debug, Error)]
pub enum AuthError {
    /// The server asks for a password and there is none.
    #[error("the server wants a password ({method}), and none is given")]
    NoPassword {
        /// Method that the server asked for.
        method: &'static str,
    },
    /// The server asks for a method that is not supported.
    #[error("the server wants {method}, which is not supported")]
    Unsupported {
        /// Method that the server asked for.
        method: String,
    },
    /// The server sent a SASL message out of order.
    #[error("the server sent a SASL message out of turn")]
    OutOfTurn,
    /// The server demands too many iterations of SCRAM's hash.
    #[error(
        "the server demands {demanded} iterations of SCRAM's hash; at most \
         {MAX_ITERATIONS} are done"
    )]
    Iterations {
        /// Iterations that the server demanded.
        demanded: String,
    },
    /// Channel binding is required and impossible.
    #[error("channel binding is required, and {0}")]
    NoChannelBinding(&'static str),
    /// A SCRAM message is wrong, as from a server that does not know the password.
    #[error("the SCRAM exchange failed: {0}")]
    Scram(std::io::Error),
    /// The server asks for a method that `require_auth` does not allow. The text is libpq's.
    #[error("authentication method requirement \"{required}\" failed: {found}")]
    Requirement {
        /// Value of `require_auth`.
        required: String,
        /// The server's action instead.
        found: &'static str,
    },
    /// The password would be sent in clear text over the network.
    #[error("the server wants the password in clear text, and the connection is not encrypted")]
    InClear,
    /// A message cannot be written.
    #[error(transparent)]
    Wire(#[from] WireError),
}

impl Advice for AuthError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::NoPassword { .. } => "give a password",
            Self::Iterations { .. } => {
                "set the role's password again with a lower scram_iterations at the server"
            }
            Self::NoChannelBinding(_) => {
                "it needs TLS, SCRAM and a server that offers SCRAM-SHA-256-PLUS; or use \
                 channel_binding=prefer"
            }
            Self::Requirement { .. } => {
                "change the server's pg_hba.conf, or name its method in require_auth"
            }
            Self::InClear => {
                "use sslmode=require, or scram-sha-256 in the server's pg_hba.conf; \
                 require_auth=password sends it all the same"
            }
            Self::Unsupported { .. } | Self::OutOfTurn | Self::Scram(_) | Self::Wire(_) => {
                return None;
            }
        };
        Some(help.to_owned())
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Server
    }
}

/// Which authentication methods are allowed; checks each request before it is answered.
#[derive(Clone, Debug, Default)]
pub struct AuthPolicy {
    required: RequireAuth,
    /// Whether others can read the connection's bytes.
    is_public: bool,
    /// Whether authentication is complete, on both sides for SCRAM.
    finished: bool,
}

impl AuthPolicy {
    /// Creates a policy for a connection.
    ///
    /// `is_encrypted` is also true for a connection that stays on this machine.
    pub fn new(required: RequireAuth, is_encrypted: bool) -> Self {
        Self { required, is_public: !is_encrypted, finished: false }
    }

    /// Checks a message of the server.
    ///
    /// # Errors
    /// [`AuthError::Requirement`], [`AuthError::InClear`], [`AuthError::Iterations`].
    pub fn check(&mut self, said: &Authentication<'_>) -> Result<(), AuthError> {
        let (method, found) = match said {
            Authentication::Ok if self.finished => return Ok(()),
            Authentication::Ok => (AuthMethod::None, "server did not complete authentication"),
            Authentication::CleartextPassword => {
                (AuthMethod::Password, "server requested a cleartext password")
            }
            Authentication::Md5Password(_) => {
                (AuthMethod::Md5, "server requested a hashed password")
            }
            Authentication::Sasl(_)
            | Authentication::SaslContinue(_)
            | Authentication::SaslFinal(_) => {
                (AuthMethod::ScramSha256, "server requested SASL authentication")
            }
            Authentication::Other(7 | 8) => {
                (AuthMethod::Gss, "server requested GSSAPI authentication")
            }
            Authentication::Other(9) => (AuthMethod::Sspi, "server requested SSPI authentication"),
            Authentication::Other(_) => return Ok(()),
        };
        if !self.required.accepts(method) {
            return Err(AuthError::Requirement {
                required: self.required.as_str().to_owned(),
                found,
            });
        }
        if method == AuthMethod::Password && self.is_public && !self.required.names(method) {
            return Err(AuthError::InClear);
        }
        if let Authentication::SaslContinue(step) = said {
            check_iterations(step)?;
        }
        self.finished |= matches!(method, AuthMethod::Password | AuthMethod::Md5)
            || matches!(said, Authentication::SaslFinal(_));
        Ok(())
    }
}

/// Channel binding: whether SCRAM is tied to its TLS connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ScramBinding {
    /// No channel binding: there is no TLS, or it is disabled.
    #[default]
    None,
    /// Channel binding if the server offers it, with these bytes of `tls-server-end-point`.
    Offered(Vec<u8>),
    /// Channel binding or nothing, with these bytes.
    Required(Vec<u8>),
    /// Channel binding is required and impossible, for this reason.
    Missing(&'static str),
}

impl ScramBinding {
    fn is_required(&self) -> bool {
        matches!(self, Self::Required(_) | Self::Missing(_))
    }
}

/// Authentication from the server's first request to its acceptance.
pub struct AuthExchange<'a> {
    user: &'a str,
    password: Option<&'a str>,
    policy: AuthPolicy,
    binding: ScramBinding,
    scram: Option<ScramSha256>,
    /// Whether SCRAM uses channel binding.
    bound: bool,
    proven: bool,
}

/// Progress of an authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthProgress {
    /// The server sends further messages.
    Continues,
    /// The server has accepted the client.
    Accepted,
}

impl<'a> AuthExchange<'a> {
    /// Creates an exchange for `user`, who may have a password.
    pub fn new(user: &'a str, password: Option<&'a str>) -> Self {
        let (policy, binding) = (AuthPolicy::default(), ScramBinding::None);
        Self { user, password, policy, binding, scram: None, bound: false, proven: false }
    }

    /// Allows only methods that `policy` allows.
    #[must_use]
    pub fn with_policy(self, policy: AuthPolicy) -> Self {
        Self { policy, ..self }
    }

    /// Sets the channel binding.
    #[must_use]
    pub fn with_binding(self, binding: ScramBinding) -> Self {
        Self { binding, ..self }
    }

    fn password(&self, method: &'static str) -> Result<&'a str, AuthError> {
        self.password.ok_or(AuthError::NoPassword { method })
    }

    /// Appends the answer to a message of the server.
    ///
    /// # Errors
    /// No password, a method that is not supported or not allowed, or a failed exchange.
    pub fn answer(
        &mut self,
        said: Authentication<'_>,
        out: &mut Vec<u8>,
    ) -> Result<AuthProgress, AuthError> {
        self.policy.check(&said)?;
        match said {
            // A server that began SCRAM must prove that it knows the password before it accepts.
            Authentication::Ok if self.scram.is_some() && !self.proven => {
                return Err(AuthError::OutOfTurn);
            }
            Authentication::Ok if self.binding.is_required() && !self.bound => {
                return Err(AuthError::NoChannelBinding("the server lets in without it"));
            }
            Authentication::Ok => return Ok(AuthProgress::Accepted),
            Authentication::CleartextPassword | Authentication::Md5Password(_)
                if self.binding.is_required() =>
            {
                return Err(AuthError::NoChannelBinding(
                    "the server wants the password in another way",
                ));
            }
            Authentication::CleartextPassword => {
                frontend::password(out, self.password("password")?.as_bytes())?;
            }
            Authentication::Md5Password(salt) => {
                let hash = md5_hash(self.user.as_bytes(), self.password("md5")?.as_bytes(), salt);
                frontend::password(out, hash.as_bytes())?;
            }
            Authentication::Sasl(mechanisms) => self.begin_scram(mechanisms, out)?,
            Authentication::SaslContinue(step) => {
                let scram = self.scram.as_mut().ok_or(AuthError::OutOfTurn)?;
                scram.update(step).map_err(AuthError::Scram)?;
                frontend::sasl_response(out, scram.message())?;
            }
            Authentication::SaslFinal(step) => {
                let scram = self.scram.as_mut().ok_or(AuthError::OutOfTurn)?;
                scram.finish(step).map_err(AuthError::Scram)?;
                self.proven = true;
            }
            Authentication::Other(number) => {
                let method = match number {
                    2 => "Kerberos V5".to_owned(),
                    7 | 8 => "GSSAPI".to_owned(),
                    9 => "SSPI".to_owned(),
                    other => format!("authentication method {other}"),
                };
                return Err(AuthError::Unsupported { method });
            }
        }
        Ok(AuthProgress::Continues)
    }

    /// Chooses a SASL mechanism of the server's `mechanisms` and appends the first step.
    fn begin_scram(
        &mut self,
        mechanisms: Mechanisms<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), AuthError> {
        let offers = |name: &str| mechanisms.names().any(|offered| offered == name.as_bytes());
        let (mechanism, binding) = match &self.binding {
            ScramBinding::Missing(why) => return Err(AuthError::NoChannelBinding(why)),
            ScramBinding::Offered(end) | ScramBinding::Required(end)
                if offers(SCRAM_SHA_256_PLUS) =>
            {
                self.bound = true;
                (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(end.clone()))
            }
            ScramBinding::Required(_) => {
                return Err(AuthError::NoChannelBinding("the server does not offer it"));
            }
            // This tells a server that did offer it that somebody between took the offer
            // away.
            ScramBinding::Offered(_) if offers(SCRAM_SHA_256) => {
                (SCRAM_SHA_256, ChannelBinding::unrequested())
            }
            ScramBinding::None if offers(SCRAM_SHA_256) => {
                (SCRAM_SHA_256, ChannelBinding::unsupported())
            }
            ScramBinding::Offered(_) | ScramBinding::None => {
                let names: Vec<_> = mechanisms.names().map(String::from_utf8_lossy).collect();
                return Err(AuthError::Unsupported {
                    method: format!("SASL {}", names.join(", ")),
                });
            }
        };
        let password = self.password(mechanism)?;
        let scram = ScramSha256::new(password.as_bytes(), binding);
        frontend::sasl_initial(out, mechanism, scram.message())?;
        self.scram = Some(scram);
        Ok(())
    }
}

/// Checks the number of iterations in a server's first SCRAM message.
///
/// A message that cannot be read is refused by the exchange itself.
fn check_iterations(step: &[u8]) -> Result<(), AuthError> {
    let demanded = step.split(|byte| *byte == b',').find_map(|field| field.strip_prefix(b"i="));
    let Some(digits) = demanded.filter(|d| !d.is_empty() && d.iter().all(u8::is_ascii_digit))
    else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(digits);
    match text.parse::<u32>() {
        Ok(count) if count <= MAX_ITERATIONS => Ok(()),
        _ => {
            let shown: String = text.chars().take(20).collect();
            Err(AuthError::Iterations { demanded: shown })
        }
    }
}
