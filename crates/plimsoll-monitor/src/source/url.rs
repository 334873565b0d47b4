//! URLs of sources: `local`, `ssh://`, `http://`, `nginx://`, `snmp://`.

use std::fmt;

use plimsoll_model::target::{TargetUrl, shown_of_unreadable};
use thiserror::Error;

/// Shown instead of a community that must not be shown.
pub const COMMUNITY_LEFT_OUT: &str = "(left out)";
/// How a community begins that is the name of an environment variable.
const VARIABLE: &str = "env";
const HTTP_PORT: u16 = 80;
const STATUS_PATH: &str = "/stub_status";
const SNMP_PORT: u16 = 161;

/// A source as the user names it. Its text is the one bundles keep: without a community.
#[derive(Clone, PartialEq, Eq)]
pub enum MonitorUrl {
    /// This host.
    Local,
    /// A host reached through the system's ssh.
    Ssh {
        /// User to log on as; `None` leaves it to ssh.
        user: Option<String>,
        /// Name, address, or alias in ssh's configuration.
        host: String,
        /// Port; `None` leaves it to ssh.
        port: Option<u16>,
    },
    /// A Prometheus exporter.
    Prometheus {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
        /// Path with its leading slash, and query.
        path: String,
    },
    /// The status page of an nginx (`stub_status`).
    Nginx {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
        /// Path with its leading slash, and query.
        path: String,
    },
    /// An SNMP agent.
    Snmp {
        /// The agent's community.
        community: Community,
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
}

/// Community that an SNMP agent answers to. It is a password, and treated as one.
#[derive(Clone, PartialEq, Eq)]
pub enum Community {
    /// None in the URL.
    NotGiven,
    /// In the URL.
    Given(String),
    /// In the environment variable of this name (`snmp://env:NAME@host`).
    Variable(String),
    /// It was in the URL of a run whose bundle does not keep it.
    LeftOut,
}

/// Why a text names no source. Text that could be a community or password is not shown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MonitorUrlError {
    /// It has no known scheme.
    #[error(
        "--monitor {0:?} names no source; write local, ssh://[user@]host[:port], \
         http://host:9100/metrics, nginx://host[:port]/stub_status or \
         snmp://[community@]host[:port]"
    )]
    Unknown(String),
    /// The URL cannot be read.
    #[error("--monitor {0:?}: no host with a port from 1 to 65535 can be read in it; write {1}")]
    Unreadable(String, &'static str),
    /// Something in it that this kind of source has not.
    #[error("--monitor {shown:?}: {what}")]
    NotTaken {
        /// The URL as it may be shown.
        shown: String,
        /// What, and what to do instead.
        what: &'static str,
    },
}

impl MonitorUrl {
    /// Reads what the user typed.
    pub fn parse(text: &str) -> Result<Self, MonitorUrlError> {
        if text == "local" {
            return Ok(Self::Local);
        }
        let unknown = || MonitorUrlError::Unknown(shown_of_unreadable(text));
        let (scheme, _) = text.split_once("://").ok_or_else(unknown)?;
        let example = match scheme.to_ascii_lowercase().as_str() {
            "ssh" => "ssh://[user@]host[:port]",
            "http" => "http://host:9100/metrics",
            "nginx" => "nginx://host[:port]/stub_status",
            "snmp" => "snmp://[community@]host[:port]",
            _ => return Err(unknown()),
        };
        let unreadable = || MonitorUrlError::Unreadable(shown_of_unreadable(text), example);
        // A value left out of a bundle contains a blank, which no URL may.
        let (text, left_out) = match text.split_once(&format!("{COMMUNITY_LEFT_OUT}@")) {
            Some((before, after)) => (format!("{before}{after}"), true),
            None => (text.to_owned(), false),
        };
        let url = TargetUrl::parse(&text).map_err(|_| unreadable())?;
        if !is_host(&url.host) {
            return Err(unreadable());
        }
        match url.scheme.as_str() {
            "ssh" => ssh(url),
            "http" => prometheus(url),
            "nginx" => nginx(url),
            _ => snmp(url, left_out),
        }
    }

    /// As results call it: always the same for the same source, however its community was given.
    pub fn name(&self) -> String {
        match self {
            Self::Snmp { host, port, .. } => {
                let bare =
                    Self::Snmp { community: Community::NotGiven, host: host.clone(), port: *port };
                bare.to_string()
            }
            other => other.to_string(),
        }
    }

    /// A name of a directory for its rows.
    pub fn directory(&self) -> String {
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let name: String = self.name().chars().map(safe).collect();
        let parts: Vec<&str> = name.split('-').filter(|part| !part.is_empty()).collect();
        parts.join("-")
    }
}

fn ssh(url: TargetUrl) -> Result<MonitorUrl, MonitorUrlError> {
    let not_taken = |what| MonitorUrlError::NotTaken { shown: "ssh://…".to_owned(), what };
    if url.password.is_some() {
        return Err(not_taken(
            "ssh is asked for no password here; make a key, with ssh-copy-id, and leave the \
             password out",
        ));
    }
    if url.path != "/" || url.query.is_some() {
        return Err(not_taken("a host has no path; write ssh://[user@]host[:port]"));
    }
    // It becomes an argument of ssh.
    if url.user.as_deref().is_some_and(|user| !is_user(user)) {
        return Err(not_taken("the user's name holds what no user's name does"));
    }
    Ok(MonitorUrl::Ssh { user: url.user, host: url.host, port: url.port })
}

fn prometheus(url: TargetUrl) -> Result<MonitorUrl, MonitorUrlError> {
    let what = "names and passwords are not sent to an exporter; leave them out";
    let (host, port, path) = page(url, "/metrics", ("http://…", what))?;
    Ok(MonitorUrl::Prometheus { host, port, path })
}

fn nginx(url: TargetUrl) -> Result<MonitorUrl, MonitorUrlError> {
    let what = "names and passwords are not sent to nginx; leave them out, and allow this host";
    let (host, port, path) = page(url, STATUS_PATH, ("nginx://…", what))?;
    Ok(MonitorUrl::Nginx { host, port, path })
}

/// Host, port, and path with query of a page; a user is refused with this text.
fn page(
    url: TargetUrl,
    usual_path: &str,
    (shown, what): (&str, &'static str),
) -> Result<(String, u16, String), MonitorUrlError> {
    if url.user.is_some() || url.password.is_some() {
        return Err(MonitorUrlError::NotTaken { shown: shown.to_owned(), what });
    }
    let query = url.query.map(|query| format!("?{query}")).unwrap_or_default();
    let path = if url.path == "/" { usual_path } else { &url.path };
    Ok((url.host, url.port.unwrap_or(HTTP_PORT), format!("{path}{query}")))
}

fn snmp(url: TargetUrl, left_out: bool) -> Result<MonitorUrl, MonitorUrlError> {
    if url.path != "/" || url.query.is_some() {
        let what = "an agent has no path; a community that holds / or ? or # goes into a variable: \
                    snmp://env:NAME@host";
        return Err(MonitorUrlError::NotTaken { shown: "snmp://…".to_owned(), what });
    }
    let community = match (url.user, url.password) {
        _ if left_out => Community::LeftOut,
        (Some(kind), Some(name)) if kind == VARIABLE => Community::Variable(name),
        (Some(user), Some(password)) => Community::Given(format!("{user}:{password}")),
        (Some(user), None) if !user.is_empty() => Community::Given(user),
        _ => Community::NotGiven,
    };
    Ok(MonitorUrl::Snmp { community, host: url.host, port: url.port.unwrap_or(SNMP_PORT) })
}

/// A name, an address, an alias: nothing that ssh could take for an option.
fn is_host(text: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || "._-:%".contains(c);
    text.chars().all(is_allowed) && !text.starts_with('-')
}

fn is_user(text: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || "._-$+".contains(c);
    !text.is_empty() && text.chars().all(is_allowed) && !text.starts_with('-')
}

/// A host as URLs write it.
struct UrlHost<'a>(&'a str);

impl fmt::Display for UrlHost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(':') { write!(f, "[{}]", self.0) } else { f.write_str(self.0) }
    }
}

impl fmt::Display for MonitorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Ssh { user, host, port } => {
                f.write_str("ssh://")?;
                if let Some(user) = user {
                    write!(f, "{user}@")?;
                }
                write!(f, "{}", UrlHost(host))?;
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
            Self::Prometheus { host, port, path } => {
                write!(f, "http://{}:{port}{path}", UrlHost(host))
            }
            Self::Nginx { host, port, path } => {
                write!(f, "nginx://{}:{port}{path}", UrlHost(host))
            }
            Self::Snmp { community, host, port } => {
                f.write_str("snmp://")?;
                match community {
                    Community::NotGiven => {}
                    Community::Variable(name) => write!(f, "{VARIABLE}:{name}@")?,
                    Community::Given(_) | Community::LeftOut => {
                        write!(f, "{COMMUNITY_LEFT_OUT}@")?;
                    }
                }
                write!(f, "{}", UrlHost(host))?;
                if *port == SNMP_PORT { Ok(()) } else { write!(f, ":{port}") }
            }
        }
    }
}

impl fmt::Debug for MonitorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MonitorUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_source_is_read_and_written_back() {
        for (typed, kept, directory) in [
            ("local", "local", "local"),
            ("ssh://ann@db.example:2222", "ssh://ann@db.example:2222", "ssh-ann-db.example-2222"),
            ("ssh://db", "ssh://db", "ssh-db"),
            ("ssh://[::1]:22", "ssh://[::1]:22", "ssh-1-22"),
            ("http://h:9100", "http://h:9100/metrics", "http-h-9100-metrics"),
            ("http://h/m?x=1", "http://h:80/m?x=1", "http-h-80-m-x-1"),
            ("nginx://h", "nginx://h:80/stub_status", "nginx-h-80-stub-status"),
            ("nginx://[::1]:8080/s", "nginx://[::1]:8080/s", "nginx-1-8080-s"),
            ("snmp://sw1", "snmp://sw1", "snmp-sw1"),
            ("snmp://s3cret@sw1:1161", "snmp://(left out)@sw1:1161", "snmp-sw1-1161"),
            ("snmp://s3:cret@sw1", "snmp://(left out)@sw1", "snmp-sw1"),
            ("snmp://env:COMMUNITY@sw1", "snmp://env:COMMUNITY@sw1", "snmp-sw1"),
        ] {
            let url = MonitorUrl::parse(typed).unwrap();
            assert_eq!((url.to_string().as_str(), url.directory().as_str()), (kept, directory));
            assert!(!format!("{url:?} {}", url.name()).contains("cret"));
            let again = MonitorUrl::parse(kept).unwrap();
            assert_eq!(again.to_string(), kept, "what a bundle keeps names the same source");
        }
        let left_out = MonitorUrl::parse("snmp://(left out)@sw1").unwrap();
        assert!(matches!(left_out, MonitorUrl::Snmp { community: Community::LeftOut, .. }));
        assert_eq!(left_out.name(), "snmp://sw1");
    }

    #[test]
    fn what_names_no_source_is_refused_and_no_community_echoed() {
        for bad in [
            "",
            "remote",
            "https://h:9100/metrics",
            "ssh://",
            "ssh://-oProxyCommand=s3cret@h",
            "ssh://-h",
            "ssh://ann:s3cret@h",
            "ssh://h/s3cret",
            "http://ann:s3cret@h/",
            "nginx://ann:s3cret@h/",
            "snmp://s3cret@h:x",
            "snmp://s3cret@",
            "snmp://s3cret/s3cret@h",
            "snmp://s3 cret@h",
            "s3cret@h",
        ] {
            let error = MonitorUrl::parse(bad).unwrap_err().to_string();
            assert!(!error.contains("cret"), "{bad}: {error}");
        }
    }
}
