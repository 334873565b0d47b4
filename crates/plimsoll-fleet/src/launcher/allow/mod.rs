//! `plimsoll agent --allow FILE`: what the owner of an agent's host permits, whatever the
//! controller requests.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use plimsoll_model::assignment::{Assignment, Load};
use serde::Deserialize;
use thiserror::Error;

/// Part of a rate that rounding may add.
const ROUNDING: f64 = 1e-9;

/// What is permitted; what a file does not restrict is free.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allowance {
    targets: Option<Vec<AllowedTarget>>,
    ops_per_s_max: Option<f64>,
    cores_max: Option<u32>,
}

/// Addresses and ports of servers.
#[derive(Clone, Debug, PartialEq)]
struct AllowedTarget {
    /// As in the file.
    text: String,
    networks: Vec<Network>,
    ports: RangeInclusive<u16>,
}

/// An address, of which the first bits count. IPv4 is mapped into IPv6.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Network {
    address: Ipv6Addr,
    bits: u32,
}

/// A file that cannot be used.
#[derive(Debug, Error)]
pub enum AllowError {
    /// It is no such file.
    #[error("{0}")]
    Toml(toml::de::Error),
    /// A target is not written as one.
    #[error(
        "targets: {0:?} is no target; write for example \"10.0.0.0/8:80-90\", \"host:2049\" or \
         \"[2001:db8::]/32:445\""
    )]
    Target(String),
    /// The name of a target has no address here.
    #[error("targets: {text:?}: {source}")]
    Name {
        /// As in the file.
        text: String,
        /// Why.
        source: io::Error,
    },
    /// A limit is no limit.
    #[error("{0} must be greater than 0; leave it out if there is no limit")]
    NotPositive(&'static str),
}

/// What is not permitted.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Refusal {
    /// A server that is not in the list.
    #[error(
        "the owner of this agent's host does not allow {address} as a target: allowed are {allowed}"
    )]
    Target {
        /// Where the load would go.
        address: SocketAddr,
        /// All that the file names.
        allowed: String,
    },
    /// Targets are restricted, and a Unix socket is in no list.
    #[error("the owner of this agent's host allows no Unix socket as a target: {}", .0.display())]
    Unix(PathBuf),
    /// More than the limit.
    #[error(
        "the owner of this agent's host allows {allowed} ops/s, and {requested} are asked for: lower \
         the load, or take more agents"
    )]
    Rate {
        /// This agent's part of the load.
        requested: f64,
        /// `max_ops_per_s`.
        allowed: f64,
    },
    /// The rate of a closed load is known only after it.
    #[error(
        "the owner of this agent's host limits ops/s to {allowed}, and a closed load, or one of \
         sessions, has no rate of ops that could be held to it: run an open load"
    )]
    ClosedLoad {
        /// `max_ops_per_s`.
        allowed: f64,
    },
    /// Each worker takes a core.
    #[error(
        "the owner of this agent's host allows a worker for each of {allowed} core(s), and {requested} \
         are asked for: lower --workers, or `workers` of this agent"
    )]
    Cores {
        /// Workers of this agent.
        requested: u32,
        /// `cores`.
        allowed: u32,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AllowFile {
    targets: Option<Vec<String>>,
    max_ops_per_s: Option<f64>,
    cores: Option<u32>,
}

impl Allowance {
    /// Reads the file's text; `resolve` finds the addresses of a name.
    pub fn parse(
        text: &str,
        resolve: &dyn Fn(&str) -> io::Result<Vec<IpAddr>>,
    ) -> Result<Self, AllowError> {
        let file: AllowFile = toml::from_str(text).map_err(AllowError::Toml)?;
        // A NaN is no limit either.
        if !file.max_ops_per_s.is_none_or(|max| max > 0.0) {
            return Err(AllowError::NotPositive("max_ops_per_s"));
        }
        if file.cores == Some(0) {
            return Err(AllowError::NotPositive("cores"));
        }
        let read = |texts: Vec<String>| {
            texts.into_iter().map(|text| AllowedTarget::parse(text, resolve)).collect()
        };
        Ok(Self {
            targets: file.targets.map(read).transpose()?,
            ops_per_s_max: file.max_ops_per_s,
            cores_max: file.cores,
        })
    }

    /// Whether this agent may do its part of a load point.
    pub fn check(&self, assignment: &Assignment) -> Result<(), Refusal> {
        for endpoint in &assignment.endpoints {
            match &endpoint.unix {
                Some(path) => self.check_unix(path)?,
                None => self.check_target(endpoint.address)?,
            }
        }
        let workers = assignment.own_workers().len() as u32;
        match self.cores_max {
            Some(allowed) if workers > allowed => {
                return Err(Refusal::Cores { requested: workers, allowed });
            }
            _ => {}
        }
        let Some(allowed) = self.ops_per_s_max else { return Ok(()) };
        let rate_ops_per_s = match &assignment.load {
            Load::Open { rate_ops_per_s, .. } if !assignment.load.is_sessions() => rate_ops_per_s,
            _ => return Err(Refusal::ClosedLoad { allowed }),
        };
        let all = f64::from(assignment.workers.max(1));
        let requested = rate_ops_per_s.get() * f64::from(workers) / all;
        if requested > allowed * (1.0 + ROUNDING) {
            return Err(Refusal::Rate { requested, allowed });
        }
        Ok(())
    }

    /// Whether this agent may connect to that Unix socket of its host.
    pub fn check_unix(&self, path: &Path) -> Result<(), Refusal> {
        match self.targets {
            Some(_) => Err(Refusal::Unix(path.to_owned())),
            None => Ok(()),
        }
    }

    /// Whether this agent may connect there: also before a load point, to mount or to log on.
    pub fn check_target(&self, address: SocketAddr) -> Result<(), Refusal> {
        let Some(targets) = &self.targets else { return Ok(()) };
        if targets.iter().any(|target| target.holds(address)) {
            return Ok(());
        }
        let allowed: Vec<&str> = targets.iter().map(|target| target.text.as_str()).collect();
        let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
        Err(Refusal::Target { address, allowed })
    }
}

impl AllowedTarget {
    fn parse(
        text: String,
        resolve: &dyn Fn(&str) -> io::Result<Vec<IpAddr>>,
    ) -> Result<Self, AllowError> {
        let Some((host, ports)) = parts(&text) else { return Err(AllowError::Target(text)) };
        let network = |(address, bits): (&str, &str)| Network::parse(address, Some(bits));
        let networks = match host.split_once('/').map(network) {
            Some(network) => network.map(|network| vec![network]),
            None => match Network::parse(&host, None) {
                Some(address) => Some(vec![address]),
                None => match resolve(&host) {
                    Ok(addresses) => {
                        Some(addresses.into_iter().map(Network::from_address).collect())
                    }
                    Err(source) => return Err(AllowError::Name { text, source }),
                },
            },
        };
        match networks {
            Some(networks) => Ok(Self { text, networks, ports }),
            None => Err(AllowError::Target(text)),
        }
    }

    fn holds(&self, address: SocketAddr) -> bool {
        self.ports.contains(&address.port())
            && self.networks.iter().any(|network| network.holds(address.ip()))
    }
}

/// Network and ports; brackets around an IPv6 address are left out.
fn parts(text: &str) -> Option<(String, RangeInclusive<u16>)> {
    let (host, ports) = text.rsplit_once(':')?;
    let is_bracketed = host.starts_with('[') && host.contains(']');
    if host.is_empty() || (host.contains(':') && !is_bracketed) {
        return None;
    }
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then(|| (host.replace(['[', ']'], ""), first..=last))
}

impl Network {
    fn from_address(address: IpAddr) -> Self {
        Self { address: mapped(address), bits: 128 }
    }

    fn parse(address: &str, bits: Option<&str>) -> Option<Self> {
        let address: IpAddr = address.parse().ok()?;
        let (before, most) = if address.is_ipv4() { (96, 32) } else { (0, 128) };
        let bits =
            bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| *bits <= most))?;
        Some(Self { address: mapped(address), bits: before + bits })
    }

    fn holds(self, address: IpAddr) -> bool {
        let mask = u128::MAX.checked_shl(128 - self.bits).unwrap_or(0);
        (self.address.to_bits() ^ mapped(address).to_bits()) & mask == 0
    }
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

impl fmt::Display for Allowance {
    /// For the disclosure.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(targets) = &self.targets {
            let texts: Vec<&str> = targets.iter().map(|target| target.text.as_str()).collect();
            parts.push(format!("targets {}", texts.join(", ")));
        }
        parts.extend(self.ops_per_s_max.map(|max| format!("{max} ops/s")));
        parts.extend(self.cores_max.map(|max| format!("{max} cores")));
        f.write_str(&if parts.is_empty() { "everything".to_owned() } else { parts.join("; ") })
    }
}

#[cfg(test)]
mod tests;
