//! Which generators offer a load, and which part each has.

use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use pgdyno_model::units::Span;
use thiserror::Error;

/// Start skew that a valid load may have unless told otherwise.
const MAX_START_SKEW: Duration = Duration::from_millis(10);
/// Workers that a number asks for, at most.
const MOST: u32 = 1_000;
/// Time in which workers have to join unless told otherwise.
const WAIT: Duration = Duration::from_secs(60);
/// Address for workers of a launcher, which tells them the port.
const ANY_ADDRESS: &str = "0.0.0.0:0";

/// Where a worker runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A process beside this one.
    Local,
    /// A host that the user's `ssh` reaches by this name.
    Ssh(String),
    /// Wherever somebody starts it: it joins.
    Join,
    /// A node that Slurm chooses: it joins.
    Slurm,
    /// A node that Ray chooses: it joins.
    Ray,
}

/// How workers join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// Address to listen on, `HOST:PORT`.
    pub listen: String,
    /// File to write the token to; none where a launcher hands it to workers.
    pub token: Option<PathBuf>,
    /// Time in which all workers have to join.
    pub wait: Duration,
}

/// One generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generator {
    /// Name in reports.
    pub name: String,
    /// Where its worker runs.
    pub place: Place,
    /// Part of the load, in proportion to the other generators' weights.
    pub weight: u32,
}

/// Limits beyond which a generator makes the load invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest skew of the start from the agreed instant, the clock's uncertainty included.
    pub max_start_skew: Duration,
    /// Whether a thread may be busy all the time.
    pub allow_saturated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_start_skew: MAX_START_SKEW, allow_saturated: false }
    }
}

/// The generators of a load.
///
/// ```
/// use pgdyno_generators::Generators;
///
/// let generators: Generators = "ssh:gen1,gen2*3".parse()?;
/// let (threads, shares) = generators.deal(40, 8)?;
/// assert_eq!((threads, shares), (8, vec![0..2, 2..8]));
/// # Ok::<(), pgdyno_generators::DealError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generators {
    /// One or more, in the order of their shares.
    pub list: Vec<Generator>,
    /// Limits of each generator.
    pub limits: Limits,
    /// How workers join; none where this process starts them.
    pub join: Option<Join>,
}

/// Why a load cannot be dealt to generators.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DealError {
    /// The launcher is unknown.
    #[error(
        "generators are given as `local:NUMBER`, `ssh:HOST,HOST*WEIGHT`, `slurm:NUMBER`, \
         `ray:workers=NUMBER` or `join:NUMBER,listen=HOST:PORT,token=FILE`, not `{0}`"
    )]
    Launcher(String),
    /// The number of workers is none or out of range.
    #[error("`{launcher}:{text}`: a number from 1 to {MOST} is expected")]
    Number {
        launcher: &'static str,
        /// Text in place of the number.
        text: String,
    },
    /// An option that the launcher does not have, or not with such a value.
    #[error(
        "`{0}`: `listen=HOST:PORT`, `wait=TIME` (such as 90s) or, with join, `token=FILE` is \
         expected"
    )]
    Option(String),
    /// An option of `join` that it needs.
    #[error("`join` needs `{0}`: join:2,listen=10.0.0.1:7433,token=FILE")]
    Missing(&'static str),
    /// No name of a host.
    #[error("`{0}` is no host for ssh")]
    Host(String),
    /// A weight that is no number above 0.
    #[error("`{0}`: a weight is a number from 1 to 1000")]
    Weight(String),
    /// A host is named twice.
    #[error("generator `{0}` is named twice; give it a weight instead: {0}*2")]
    Twice(String),
    /// Fewer clients than generators need.
    #[error("too few clients for {generators} generators of these weights: {clients}")]
    TooFewClients {
        /// Clients of the load.
        clients: u32,
        /// Generators.
        generators: usize,
    },
}

impl FromStr for Generators {
    type Err = DealError;

    fn from_str(text: &str) -> Result<Self, DealError> {
        let unknown = || DealError::Launcher(text.to_owned());
        let (launcher, rest) = text.split_once(':').ok_or_else(unknown)?;
        let mut join = None;
        let list = match launcher {
            "local" => numbered("local", rest, &Place::Local)?,
            "join" | "slurm" | "ray" => {
                let (number, options) = rest.split_once(',').unwrap_or((rest, ""));
                let (name, place, number) = match launcher {
                    "join" => ("join", Place::Join, number),
                    "slurm" => ("slurm", Place::Slurm, number),
                    _ => ("ray", Place::Ray, number.strip_prefix("workers=").unwrap_or(number)),
                };
                join = Some(read_join(&place, options)?);
                numbered(name, number, &place)?
            }
            "ssh" => rest.split(',').map(ssh).collect::<Result<Vec<_>, _>>()?,
            _ => return Err(unknown()),
        };
        for (index, generator) in list.iter().enumerate() {
            if list[..index].iter().any(|earlier| earlier.name == generator.name) {
                return Err(DealError::Twice(generator.name.clone()));
            }
        }
        Ok(Self { list, limits: Limits::default(), join })
    }
}

/// Returns as many generators as `text` says.
fn numbered(
    launcher: &'static str,
    text: &str,
    place: &Place,
) -> Result<Vec<Generator>, DealError> {
    let number = text.parse().ok().filter(|n| (1..=MOST).contains(n));
    let number = number.ok_or_else(|| DealError::Number { launcher, text: text.to_owned() })?;
    let name = |n| format!("{launcher}-{n}");
    Ok((1..=number).map(|n| Generator { name: name(n), place: place.clone(), weight: 1 }).collect())
}

/// Reads the options of workers that join; `join` alone needs some.
fn read_join(place: &Place, options: &str) -> Result<Join, DealError> {
    let is_launched = *place != Place::Join;
    let (mut listen, mut token, mut wait) = (None, None, WAIT);
    for option in options.split(',').filter(|option| !option.is_empty()) {
        let wrong = || DealError::Option(option.to_owned());
        let (name, value) = option.split_once('=').ok_or_else(wrong)?;
        match name {
            // With a port of the system's choice nobody would know where to join.
            "listen" => {
                let port = value.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
                port.filter(|port| *port != 0).ok_or_else(wrong)?;
                listen = Some(value.to_owned());
            }
            "token" if !value.is_empty() && !is_launched => token = Some(PathBuf::from(value)),
            "wait" => wait = value.parse::<Span>().map_err(|_| wrong())?.0,
            _ => return Err(wrong()),
        }
    }
    let listen = listen.or_else(|| is_launched.then(|| ANY_ADDRESS.to_owned()));
    let listen = listen.ok_or(DealError::Missing("listen=HOST:PORT"))?;
    match token {
        None if !is_launched => Err(DealError::Missing("token=FILE")),
        token => Ok(Join { listen, token, wait }),
    }
}

/// Reads `HOST` or `HOST*WEIGHT`.
fn ssh(text: &str) -> Result<Generator, DealError> {
    let (host, weight) = match text.split_once('*') {
        None => (text, 1),
        Some((host, weight)) => {
            let weight = weight.parse().ok().filter(|weight| (1..=1000).contains(weight));
            (host, weight.ok_or_else(|| DealError::Weight(text.to_owned()))?)
        }
    };
    let host = host_name(host)?;
    Ok(Generator { name: host.clone(), place: Place::Ssh(host), weight })
}

/// Returns `host` if `ssh` takes it for a host.
///
/// # Errors
/// [`DealError::Host`].
pub fn host_name(host: &str) -> Result<String, DealError> {
    // ssh would read a leading dash as an option.
    if host.is_empty() || host.starts_with('-') || host.contains(char::is_whitespace) {
        return Err(DealError::Host(host.to_owned()));
    }
    Ok(host.to_owned())
}

impl Generators {
    /// Deals the event loops of a load to the generators. Returns how many there are, and which
    /// each generator runs.
    ///
    /// There are at least as many as the weights need: two generators have two event loops, also
    /// where one was asked for. Clients and rate follow their event loops, as in one process.
    ///
    /// # Errors
    /// [`DealError::TooFewClients`].
    pub fn deal(&self, clients: u32, threads: u32) -> Result<(u32, Vec<Range<u32>>), DealError> {
        let divisor = self.list.iter().fold(0, |divisor, g| common_divisor(divisor, g.weight));
        let weights: Vec<u64> =
            self.list.iter().map(|g| u64::from(g.weight / divisor.max(1))).collect();
        let total: u64 = weights.iter().sum();
        let least = u32::try_from(total).unwrap_or(u32::MAX);
        let threads = threads.max(least).min(clients);
        let mut before = 0;
        let mut bounds = vec![0];
        for weight in weights {
            before += weight;
            // Rounded to the nearest.
            let bound = (2 * u64::from(threads) * before + total) / (2 * total);
            bounds.push(u32::try_from(bound).unwrap_or(threads));
        }
        let shares: Vec<Range<u32>> = bounds.windows(2).map(|pair| pair[0]..pair[1]).collect();
        if shares.iter().any(Range::is_empty) {
            return Err(DealError::TooFewClients { clients, generators: self.list.len() });
        }
        Ok((threads, shares))
    }
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn weighted(weights: &[u32]) -> Generators {
        let words: Vec<String> =
            weights.iter().enumerate().map(|(n, weight)| format!("h{n}*{weight}")).collect();
        format!("ssh:{}", words.join(",")).parse().unwrap()
    }

    #[test]
    fn launchers_hosts_and_weights_are_read() {
        let local: Generators = "local:2".parse().unwrap();
        assert_eq!(local.list[1].name, "local-2");
        let ssh: Generators = "ssh:ann@gen1,gen2*3".parse().unwrap();
        assert_eq!(ssh.list[0].place, Place::Ssh("ann@gen1".into()));
        assert_eq!((ssh.list[0].weight, ssh.list[1].weight), (1, 3));
        let error = |text: &str| text.parse::<Generators>().unwrap_err();
        assert!(matches!(error("gen1"), DealError::Launcher(_)));
        assert!(matches!(error("pigeon:1"), DealError::Launcher(_)));
        assert!(matches!(error("local:0"), DealError::Number { .. }));
        assert!(matches!(error("ssh:"), DealError::Host(_)));
        assert!(matches!(error("ssh:-oProxyCommand=x"), DealError::Host(_)));
        assert!(matches!(error("ssh:a*0"), DealError::Weight(_)));
        assert!(matches!(error("ssh:a,b,a"), DealError::Twice(_)));
    }

    #[test]
    fn joining_needs_an_address_and_a_file() {
        let all = "join:3,listen=[::1]:7433,token=/run/t,wait=5m";
        let generators: Generators = all.parse().unwrap();
        assert_eq!((generators.list.len(), &generators.list[2].place), (3, &Place::Join));
        let join = generators.join.unwrap();
        assert_eq!((&*join.listen, join.wait), ("[::1]:7433", Duration::from_secs(300)));
        let error = |text: &str| text.parse::<Generators>().unwrap_err();
        assert!(matches!(error("join:0,listen=a:1,token=t"), DealError::Number { .. }));
        assert!(matches!(error("join:2"), DealError::Missing("listen=HOST:PORT")));
        assert!(matches!(error("join:2,listen=a:1"), DealError::Missing("token=FILE")));
        for wrong in ["listen=a", "listen=a:0", "token=", "wait=5", "who=me", "x"] {
            assert!(matches!(error(&format!("join:2,{wrong}")), DealError::Option(_)), "{wrong}");
        }
    }

    #[test]
    fn workers_of_a_launcher_need_a_number_alone() {
        for (text, place) in [
            ("slurm:3", Place::Slurm),
            ("slurm:3,listen=10.0.0.1:7433,wait=5m", Place::Slurm),
            ("ray:workers=3", Place::Ray),
            ("ray:3", Place::Ray),
        ] {
            let generators: Generators = text.parse().unwrap();
            assert_eq!((generators.list.len(), &generators.list[2].place), (3, &place), "{text}");
            assert_eq!(generators.join.unwrap().token, None);
        }
        let error = |text: &str| text.parse::<Generators>().unwrap_err();
        assert!(matches!(error("slurm:"), DealError::Number { launcher: "slurm", .. }));
        assert!(matches!(error("ray:workers=0"), DealError::Number { launcher: "ray", .. }));
        // They are handed the token.
        assert!(matches!(error("slurm:2,token=t"), DealError::Option(_)));
    }

    #[test]
    fn event_loops_follow_weights() {
        assert_eq!(weighted(&[1, 1]).deal(8, 1), Ok((2, vec![0..1, 1..2])));
        assert_eq!(weighted(&[2, 6]).deal(8, 1), Ok((4, vec![0..1, 1..4])));
        assert_eq!(weighted(&[1, 1, 1]).deal(100, 10), Ok((10, vec![0..3, 3..7, 7..10])));
        let few = weighted(&[1, 1, 1]).deal(2, 10);
        assert_eq!(few, Err(DealError::TooFewClients { clients: 2, generators: 3 }));
    }

    proptest! {
        #[test]
        fn shares_are_all_event_loops_and_none_is_empty(
            weights in prop::collection::vec(1_u32..20, 1..17), threads in 1_u32..500,
        ) {
            let (threads, shares) = weighted(&weights).deal(1_000_000, threads).unwrap();
            prop_assert_eq!(shares[0].start, 0);
            prop_assert_eq!(shares.last().unwrap().end, threads);
            prop_assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
            prop_assert!(shares.iter().all(|share| !share.is_empty()));
        }
    }
}
