//! Proofs of identity: cleartext, MD5, SCRAM-SHA-256, SCRAM-SHA-256-PLUS. No I/O: the caller
//! carries the messages.

use pgdyno_model::target::{AuthMethod, RequireAuth};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use thiserror::Error;

use crate::backend::{Authentication, Mechanisms};
use crate::{WireError, frontend};

/// The most iterations of SCRAM's hash that are done for a server: PostgreSQL's default is 4,096,
/// and each costs time before the server has shown that it is one to trust.
pub const MAX_ITERATIONS: u32 = 100_000;

// facade: removed at integration
#[doc(hidden)]
pub use {
    AuthExchange as Exchange, AuthPolicy as Gate, AuthProgress as Progress, ScramBinding as Binding,
};

/// Why the server's demand cannot be met.
#[derive(Debug, Error)]
pub enum AuthError {
    /// A password is wanted and none was given.
    #[error("the server wants a password ({method}), and none is given")]
    NoPassword {
        /// The method it named.
        method: &'static str,
    },
    /// A method that is not spoken here.
    #[error("the server wants {method}, which is not supported")]
    Unsupported {
        /// The method it named.
        method: String,
    },
    /// A SASL step out of turn.
    #[error("the server sent a SASL message out of turn")]
    OutOfTurn,
    /// SCRAM with more work than is reasonable.
    #[error(
        "the server demands {demanded} iterations of SCRAM's hash; at most {MAX_ITERATIONS} are done"
    )]
    Iterations {
        /// How many it demanded.
        demanded: String,
    },
    /// The exchange is to be tied to TLS, and cannot be.
    #[error("channel binding is required, and {0}")]
    NoChannelBinding(&'static str),
    /// A SASL step that does not fit, such as a server that does not know the password itself.
    #[error("the SCRAM exchange failed: {0}")]
    Scram(std::io::Error),
    /// A method that `require_auth` does not name; in libpq's words.
    #[error("authentication method requirement \"{required}\" failed: {found}")]
    Requirement {
        /// What is required.
        required: String,
        /// What the server did.
        found: &'static str,
    },
    /// The password would go as it is, where others can read it.
    #[error("the server wants the password in clear text, and the connection is not encrypted")]
    InClear,
    /// A message that cannot be written.
    #[error(transparent)]
    Wire(#[from] WireError),
}

impl AuthError {
    /// What can be done about it.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::NoPassword { .. } => Some("give a password"),
            Self::Iterations { .. } => {
                Some("set the role's password again with a lower scram_iterations at the server")
            }
            Self::NoChannelBinding(_) => Some(
                "it needs TLS, SCRAM and a server that offers SCRAM-SHA-256-PLUS; or use channel_binding=prefer",
            ),
            Self::Requirement { .. } => {
                Some("change the server's pg_hba.conf, or name its method in require_auth")
            }
            Self::InClear => Some(
                "use sslmode=require, or scram-sha-256 in the server's pg_hba.conf; \
                 require_auth=password sends it all the same",
            ),
            Self::Unsupported { .. } | Self::OutOfTurn | Self::Scram(_) | Self::Wire(_) => None,
        }
    }
}

/// Which demands of a server's are met: it sees each before anything is answered.
#[derive(Clone, Debug, Default)]
pub struct AuthPolicy {
    required: RequireAuth,
    /// Whether others can read what is sent.
    is_public: bool,
    /// Whether the client has given its proof, and SCRAM's server its own.
    finished: bool,
}

impl AuthPolicy {
    /// A policy for a connection that `is_encrypted`, or stays on this machine.
    #[must_use]
    pub fn new(required: RequireAuth, is_encrypted: bool) -> Self {
        Self { required, is_public: !is_encrypted, finished: false }
    }

    /// Checks what the server says.
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

/// Whether SCRAM is tied to the TLS connection that it runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ScramBinding {
    /// It is not: there is no TLS, or it is not wanted.
    #[default]
    None,
    /// It is if the server offers it, by these bytes of `tls-server-end-point`.
    Offered(Vec<u8>),
    /// It must be.
    Required(Vec<u8>),
    /// It must be, and cannot, for this reason.
    Missing(&'static str),
}

impl ScramBinding {
    fn is_required(&self) -> bool {
        matches!(self, Self::Required(_) | Self::Missing(_))
    }
}

/// One exchange, from the server's first demand to its acceptance.
pub struct AuthExchange<'a> {
    user: &'a str,
    password: Option<&'a str>,
    policy: AuthPolicy,
    binding: ScramBinding,
    scram: Option<ScramSha256>,
    /// Whether SCRAM was tied to the connection.
    bound: bool,
    proven: bool,
}

/// Whether the exchange has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthProgress {
    /// More is to come from the server.
    Continues,
    /// The server lets in.
    Accepted,
}

impl<'a> AuthExchange<'a> {
    /// An exchange as `user`, who may have a password.
    #[must_use]
    pub fn new(user: &'a str, password: Option<&'a str>) -> Self {
        let (policy, binding) = (AuthPolicy::default(), ScramBinding::None);
        Self { user, password, policy, binding, scram: None, bound: false, proven: false }
    }

    /// The same, meeting only demands that `policy` lets through.
    #[must_use]
    pub fn with_policy(self, policy: AuthPolicy) -> Self {
        Self { policy, ..self }
    }

    /// The same, tied to the connection as `binding` says.
    #[must_use]
    pub fn with_binding(self, binding: ScramBinding) -> Self {
        Self { binding, ..self }
    }

    // facade: removed at integration
    #[doc(hidden)]
    #[must_use]
    pub fn behind(self, policy: AuthPolicy) -> Self {
        self.with_policy(policy)
    }

    // facade: removed at integration
    #[doc(hidden)]
    #[must_use]
    pub fn bound(self, binding: ScramBinding) -> Self {
        self.with_binding(binding)
    }

    fn password(&self, method: &'static str) -> Result<&'a str, AuthError> {
        self.password.ok_or(AuthError::NoPassword { method })
    }

    /// Appends the answer to what the server said.
    ///
    /// # Errors
    /// No password where one is wanted, a method not spoken here, or a failed exchange.
    pub fn answer(
        &mut self,
        said: Authentication<'_>,
        out: &mut Vec<u8>,
    ) -> Result<AuthProgress, AuthError> {
        self.policy.check(&said)?;
        match said {
            // A server that began SCRAM must have shown that it knows the password before it lets
            // in.
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

/// Whether a server's first SCRAM message demands a number of iterations that is reasonable. One
/// that cannot be read is for the exchange itself to refuse.
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
