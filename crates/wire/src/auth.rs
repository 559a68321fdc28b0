//! Proofs of identity: cleartext, MD5, SCRAM-SHA-256. No I/O: the caller carries the messages.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use thiserror::Error;

use crate::backend::Authentication;
use crate::{WireError, frontend};

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
    /// A SASL step that does not fit, such as a server that does not know the password itself.
    #[error("the SCRAM exchange failed: {0}")]
    Scram(std::io::Error),
    /// A message that cannot be written.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// One exchange, from the server's first demand to its acceptance.
pub struct Exchange<'a> {
    user: &'a str,
    password: Option<&'a str>,
    scram: Option<ScramSha256>,
    proven: bool,
}

/// Whether the exchange has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More is to come from the server.
    Continues,
    /// The server lets in.
    Accepted,
}

impl<'a> Exchange<'a> {
    /// An exchange as `user`, who may have a password.
    #[must_use]
    pub fn new(user: &'a str, password: Option<&'a str>) -> Self {
        Self { user, password, scram: None, proven: false }
    }

    fn password(&self, method: &'static str) -> Result<&'a str, AuthError> {
        self.password.ok_or(AuthError::NoPassword { method })
    }

    /// Appends the answer to what the server said.
    ///
    /// # Errors
    /// No password where one is wanted, a method not spoken here, or a failed exchange.
    pub fn answer(&mut self, said: Authentication<'_>, out: &mut Vec<u8>) -> Result<Progress, AuthError> {
        match said {
            // A server that began SCRAM must have shown that it knows the password before it lets in.
            Authentication::Ok if self.scram.is_some() && !self.proven => return Err(AuthError::OutOfTurn),
            Authentication::Ok => return Ok(Progress::Accepted),
            Authentication::CleartextPassword => {
                frontend::password(out, self.password("password")?.as_bytes())?;
            }
            Authentication::Md5Password(salt) => {
                let hash = md5_hash(self.user.as_bytes(), self.password("md5")?.as_bytes(), salt);
                frontend::password(out, hash.as_bytes())?;
            }
            Authentication::Sasl(mechanisms) => {
                if !mechanisms.names().any(|name| name == SCRAM_SHA_256.as_bytes()) {
                    let names: Vec<_> = mechanisms.names().map(String::from_utf8_lossy).collect();
                    return Err(AuthError::Unsupported { method: format!("SASL {}", names.join(", ")) });
                }
                let password = self.password(SCRAM_SHA_256)?;
                let scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
                frontend::sasl_initial(out, SCRAM_SHA_256, scram.message())?;
                self.scram = Some(scram);
            }
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
        Ok(Progress::Continues)
    }
}
