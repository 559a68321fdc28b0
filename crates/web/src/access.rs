//! Who may ask: hosts, origins, and the token.
//!
//! - A page of another site cannot read or write: its requests have a foreign `Origin` or
//!   `Sec-Fetch-Site`. A name of its own that it points at this machine (DNS rebinding) is a
//!   foreign `Host`.
//! - Beyond this machine a token is needed. The first visit brings it in the URL and gets a cookie;
//!   the redirect takes it out of the URL. Programs send `Authorization: Bearer TOKEN`.

use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::ServeError;
use crate::base_path::BasePath;
use crate::response::{ApiError, html_error};

/// Most bytes of a token's file.
const TOKEN_MOST: u64 = 4096;

/// Fewest characters of a token.
const TOKEN_LEAST: usize = 16;

/// Who may ask.
#[derive(Clone, Debug, Default)]
pub struct AccessOptions {
    /// File with a token that every visitor needs; none to draw one where one is needed.
    pub token_file: Option<PathBuf>,
    /// Names by which the server may be called, beside those of this machine and IP addresses.
    pub hosts: Vec<String>,
}

/// Decides who may ask.
pub(crate) struct Access {
    token: Option<Token>,
    hosts: Vec<String>,
    /// Name of the cookie. Ports share cookies: the port makes it this server's own.
    cookie: String,
    /// Path under which visitors see the server.
    base: BasePath,
}

/// Secret that a visitor has to show. Without `Debug`, so that no log can hold it.
struct Token {
    text: String,
    /// Key of the comparison: what is compared tells nothing of the token.
    key: [u8; 32],
}

impl Access {
    /// Decides who may ask a server that listens on `address`, under the path `base`. Draws a token
    /// if others than this machine may reach it and there is no file with one.
    ///
    /// # Errors
    /// [`ServeError::TokenFile`], [`ServeError::Token`] or [`ServeError::Random`].
    pub(crate) fn new(
        options: &AccessOptions,
        address: SocketAddr,
        base: &BasePath,
    ) -> Result<Self, ServeError> {
        let text = match &options.token_file {
            Some(path) => Some(read_token(path)?),
            None if address.ip().is_loopback() => None,
            None => Some(hex(&random()?)),
        };
        let token = match text {
            Some(text) => Some(Token { text, key: random()? }),
            None => None,
        };
        let hosts = options.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let cookie = format!("pgdyno_{}", address.port());
        Ok(Self { token, hosts, cookie, base: base.clone() })
    }

    /// Returns the token that a first visit needs.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.text.as_str())
    }

    /// Refuses a host by whose name another site might reach this server.
    fn check_host(&self, request: &Request) -> Result<String, ApiError> {
        let named = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let host = named.and_then(|host| host.parse::<Authority>().ok());
        let Some(host) = host else {
            return Err(ApiError::new(
                StatusCode::BAD_REQUEST,
                "cannot answer: no valid `Host` was sent",
            ));
        };
        let name = host.host().trim_end_matches('.').to_ascii_lowercase();
        let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        if name == "localhost" || is_address || self.hosts.contains(&name) {
            return Ok(host.as_str().to_ascii_lowercase());
        }
        Err(ApiError::new(
            StatusCode::FORBIDDEN,
            format!("cannot answer as `{name}`: the server does not know that name as its own"),
        )
        .with_help(format!(
            "ask it by its IP address, or start it with `pgdyno serve --host {name}`"
        )))
    }

    /// Returns the token that a request brings: in a header, or as the cookie of an earlier visit.
    fn has_token(&self, token: &Token, headers: &HeaderMap) -> bool {
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        if bearer.and_then(|text| text.strip_prefix("Bearer ")).is_some_and(|t| token.is(t)) {
            return true;
        }
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|c| c.to_str().ok());
        cookies
            .flat_map(|text| text.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(name, value)| name == self.cookie && token.is(value))
    }
}

impl Token {
    /// Compares in a time that does not depend on where the two differ.
    fn is(&self, given: &str) -> bool {
        let mac = |text: &str| {
            // A key of any length is accepted.
            Hmac::<Sha256>::new_from_slice(&self.key).ok().map(|mac| mac.chain_update(text))
        };
        match (mac(&self.text), mac(given)) {
            (Some(known), Some(given)) => {
                known.verify_slice(&given.finalize().into_bytes()).is_ok()
            }
            _ => false,
        }
    }
}

/// Lets a request pass, or answers it here.
pub(crate) async fn check(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    let is_api = request.uri().path().starts_with("/api/");
    let refuse = |error: ApiError| {
        if is_api { error.into_response() } else { html_error(&error) }
    };
    let host = match access.check_host(&request) {
        Ok(host) => host,
        Err(error) => return refuse(error),
    };
    if let Err(error) = check_origin(request.method(), request.headers(), &host, is_api) {
        return refuse(error);
    }
    let Some(token) = &access.token else { return next.run(request).await };
    if let Some(rest) = visit(token, &request) {
        // `Strict` would keep the cookie from the page that a link of another site, a mail or a
        // chat leads to. What asks for data is refused there by its origin.
        let Access { cookie, base, .. } = &*access;
        let cookie = format!("{cookie}={}; Path={base}/; HttpOnly; SameSite=Lax", token.text);
        let headers = [(header::LOCATION, format!("{base}{rest}")), (header::SET_COOKIE, cookie)];
        return (StatusCode::SEE_OTHER, headers).into_response();
    }
    if access.has_token(token, request.headers()) {
        return next.run(request).await;
    }
    let has_query = request.uri().query().is_some_and(|query| query.contains("token="));
    let found = if has_query { "the token is wrong" } else { "the token is missing" };
    let error = ApiError::new(StatusCode::UNAUTHORIZED, format!("cannot answer: {found}"))
        .with_help(
            "open the URL that `pgdyno serve` printed; programs send `Authorization: Bearer TOKEN`",
        );
    refuse(error)
}

/// Refuses requests of pages of other sites.
///
/// Browsers say where a request comes from; programs do not, and have no cookies to abuse. A link
/// on another site may open a page of this server, and nothing else.
fn check_origin(
    method: &Method,
    headers: &HeaderMap,
    host: &str,
    is_api: bool,
) -> Result<(), ApiError> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("(unreadable)"));
    let refuse = |from: &str| {
        Err(ApiError::new(
            StatusCode::FORBIDDEN,
            format!("cannot answer a page of another site ({from})"),
        )
        .with_help(
            "where that is a proxy before this server: let it pass `Host` on (docs/serve.md)",
        ))
    };
    if let Some(origin) = text("origin") {
        let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if own.is_none_or(|own| !own.eq_ignore_ascii_case(host)) {
            return refuse(origin);
        }
    }
    let is_navigation = method == Method::GET && !is_api;
    match text("sec-fetch-site") {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) if is_navigation => Ok(()),
        Some(site) => refuse(site),
    }
}

/// Returns path and query without the token, if the query has the right one.
fn visit(token: &Token, request: &Request) -> Option<String> {
    if request.method() != Method::GET {
        return None;
    }
    let pairs: Vec<&str> = request.uri().query()?.split('&').collect();
    let is_token = |pair: &&str| pair.starts_with("token=");
    let given = pairs.iter().find(|pair| is_token(pair))?.strip_prefix("token=")?;
    if !token.is(given) {
        return None;
    }
    let rest: Vec<&str> = pairs.into_iter().filter(|pair| !is_token(pair)).collect();
    // Two slashes at the beginning would name another host.
    let path = format!("/{}", request.uri().path().trim_start_matches('/'));
    Some(if rest.is_empty() { path } else { format!("{path}?{}", rest.join("&")) })
}

/// Adds to every response what keeps browsers from doing more than the front end needs.
pub(crate) async fn add_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let policy = &pgdyno_report::front_end().policy;
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CONTENT_SECURITY_POLICY, policy.as_str()),
    ];
    let headers = response.headers_mut();
    for (name, value) in fixed {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(name, HeaderValue::from_static("same-origin"));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Reads a token from a file that nobody else may read.
fn read_token(path: &Path) -> Result<String, ServeError> {
    let unreadable = |source| ServeError::TokenFile { path: path.into(), source };
    let wrong = |found: String| ServeError::Token { path: path.into(), found };
    // A pipe without a writer would block.
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = File::options().read(true).custom_flags(nonblocking).open(path);
    let file = file.map_err(unreadable)?;
    let found = file.metadata().map_err(unreadable)?;
    let us = rustix::process::geteuid().as_raw();
    if found.uid() != us && found.uid() != 0 {
        return Err(wrong("it belongs to another account".to_owned()));
    }
    if found.mode() & 0o077 != 0 {
        return Err(wrong(format!(
            "other accounts may read it (mode {:03o})",
            found.mode() & 0o777
        )));
    }
    let mut text = String::new();
    file.take(TOKEN_MOST).read_to_string(&mut text).map_err(unreadable)?;
    let token = text.trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if token.len() < TOKEN_LEAST {
        return Err(wrong(format!("it has {} characters", token.len())));
    }
    if !token.chars().all(is_plain) {
        return Err(wrong("it has characters that a URL would change".to_owned()));
    }
    Ok(token.to_owned())
}

fn random() -> Result<[u8; 32], ServeError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(ServeError::Random)?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
