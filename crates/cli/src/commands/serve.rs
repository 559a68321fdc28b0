//! `pgdyno serve`: the store in a browser.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::shared_options::StoreOption;

/// Port where none is named.
const PORT: u16 = 8088;

#[derive(Args, Debug)]
#[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "a build without the server refuses"))]
pub(crate) struct ServeArgs {
    /// Listen on ADDRESS: an IP address, a port, or both. Port 0 takes a free one. Beyond this
    /// machine visitors need a token, which is printed [default: 127.0.0.1:8088]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Demand the token in FILE of every visitor, also on this machine
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Answer to NAME as the host in a URL. IP addresses and `localhost` need not be named. May be
    /// repeated
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// Be under PATH of a proxy, as `/pgdyno`. The proxy may pass the path on or take it off
    #[arg(long, value_name = "PATH", default_value = "")]
    pub(crate) base_path: String,
    /// Let visitors ask a run to stop after the trial in progress
    #[arg(long)]
    pub(crate) allow_control: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Reads an IP address, a port, or both.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        return Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    }
    let ip = text.trim_matches(['[', ']']).parse::<IpAddr>();
    ip.map(|ip| SocketAddr::new(ip, PORT))
        .map_err(|_| "not an IP address, a port, or both (`192.0.2.1:8088`, `[::1]:0`)".to_owned())
}

/// Serves the store until a signal comes.
#[cfg(feature = "serve")]
pub(crate) fn run(options: &ServeArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    use pgdyno_web::{AccessOptions, Ready};

    use crate::output::{hint, print_line};

    let store = options.store.path();
    let asked = pgdyno_web::Options {
        store: store.clone(),
        listen: options.listen.unwrap_or(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT)),
        access: AccessOptions {
            token_file: options.token_file.clone(),
            hosts: options.hosts.clone(),
        },
        allow_control: options.allow_control,
        base_path: options.base_path.parse().map_err(|error: pgdyno_web::BasePathError| {
            CommandError::with_source("cannot take `--base-path`", error)
                .with_help("name the path at which visitors find the proxy's pages")
        })?,
    };
    let on_ready = |Ready { url, cache }: Ready| {
        print_line(&format!("serving {} at {url}", store.display()));
        if let Some(reason) = cache {
            hint(&format!(
                "headlines are kept in memory only: {}",
                crate::error::render_chain(&reason)
            ));
        }
        hint("Ctrl-C ends it");
    };
    pgdyno_web::serve(&asked, context.stop(), on_ready)?;
    Ok(ExitStatus::Success)
}

/// Tells that this build cannot serve.
#[cfg(not(feature = "serve"))]
pub(crate) fn run(_: &ServeArgs, _: &Context) -> Result<ExitStatus, CommandError> {
    Err(CommandError::without_server())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_lack_its_port_or_its_ip() {
        let read = |text| address(text).map(|address| address.to_string());
        assert_eq!(read("192.0.2.1:80").as_deref(), Ok("192.0.2.1:80"));
        assert_eq!(read("9000").as_deref(), Ok("127.0.0.1:9000"));
        assert_eq!(read(":0").as_deref(), Ok("127.0.0.1:0"));
        assert_eq!(read("0.0.0.0").as_deref(), Ok("0.0.0.0:8088"));
        assert_eq!(read("::1").as_deref(), Ok("[::1]:8088"));
        assert_eq!(read("[::1]:0").as_deref(), Ok("[::1]:0"));
        assert!(address("example.org:80").is_err() && address("70000").is_err());
    }
}
