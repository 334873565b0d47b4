//! The server under test, named by a URL.

use std::fmt;

/// What a user writes for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetSpec {
    /// A server that runs already.
    Url(TargetUrl),
    /// The reference server of the suite's protocol, started in a process of its own.
    Builtin,
    /// A real server started with a temporary configuration on a free port, watched, stopped.
    Managed(String),
}

/// `scheme://[user[:password]@]host[:port][/path][?query]`.
#[derive(Clone, PartialEq, Eq)]
pub struct TargetUrl {
    /// Lower case, without `://`.
    pub scheme: String,
    /// User name, when given.
    pub user: Option<String>,
    /// Password, when given; never shown.
    pub password: Option<String>,
    /// Host name or address; an IPv6 address without its brackets.
    pub host: String,
    /// Port, when given.
    pub port: Option<u16>,
    /// Path with its leading slash; `/` when absent.
    pub path: String,
    /// `key=value` pairs after `?`, undecoded.
    pub query: Option<String>,
}

/// Why a target cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Neither a URL nor `builtin:` nor `managed:NAME`.
    #[error(
        "target {0:?} is not a URL; write for example http://host:port/, builtin: or managed:nginx"
    )]
    NotAUrl(String),
    /// Nothing between `://` and the path.
    #[error("target {0:?} names no host; write for example http://127.0.0.1:8080/")]
    NoHost(String),
    /// The port is not a number from 1 to 65535.
    #[error("target {target:?} has port {port:?}; a port is a number from 1 to 65535")]
    BadPort {
        /// The whole target.
        target: String,
        /// What stands in the port's place.
        port: String,
    },
    /// White space or a control character in the URL.
    #[error("target {0:?} holds white space or a control character; percent-encode it")]
    Unprintable(String),
}

impl TargetSpec {
    /// Reads a target as typed.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        match text.split_once(':') {
            Some(("builtin", "")) => Ok(Self::Builtin),
            Some(("managed", name)) if !name.is_empty() => Ok(Self::Managed(name.to_owned())),
            _ => TargetUrl::parse(text).map(Self::Url),
        }
    }
}

impl TargetUrl {
    /// Reads a URL; percent-encoding stays as it is.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(TargetError::Unprintable(text.to_owned()));
        }
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| TargetError::NotAUrl(text.to_owned()))?;
        if scheme.is_empty() || !scheme.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(TargetError::NotAUrl(text.to_owned()));
        }
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (rest, query) = match rest.split_once('?') {
            Some((before, query)) => (before, Some(query.to_owned())),
            None => (rest, None),
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => (&rest[..at], &rest[at..]),
            None => (rest, "/"),
        };
        let (user_info, host_port) = match authority.rsplit_once('@') {
            Some((user_info, host_port)) => (Some(user_info), host_port),
            None => (None, authority),
        };
        let (user, password) = match user_info.map(|u| u.split_once(':').unwrap_or((u, ""))) {
            Some((user, "")) => (Some(user.to_owned()), None),
            Some((user, password)) => (Some(user.to_owned()), Some(password.to_owned())),
            None => (None, None),
        };
        let (host, port) = split_host_port(text, host_port)?;
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            user,
            password,
            host,
            port,
            path: path.to_owned(),
            query,
        })
    }

    /// `host:port`, with brackets around an IPv6 address.
    pub fn authority(&self, default_port: u16) -> String {
        let port = self.port.unwrap_or(default_port);
        if self.host.contains(':') {
            format!("[{}]:{port}", self.host)
        } else {
            format!("{}:{port}", self.host)
        }
    }

    /// Value of `key` in the query.
    pub fn query_value(&self, key: &str) -> Option<&str> {
        let pairs = self.query.as_deref()?.split('&');
        pairs.filter_map(|pair| pair.split_once('=')).find(|(k, _)| *k == key).map(|(_, v)| v)
    }
}

fn split_host_port(target: &str, text: &str) -> Result<(String, Option<u16>), TargetError> {
    let (host, port) = if let Some(inner) = text.strip_prefix('[') {
        let (host, after) =
            inner.split_once(']').ok_or_else(|| TargetError::NoHost(target.to_owned()))?;
        (host, after.strip_prefix(':'))
    } else {
        match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    if host.is_empty() {
        return Err(TargetError::NoHost(target.to_owned()));
    }
    let bad =
        |port: &str| TargetError::BadPort { target: target.to_owned(), port: port.to_owned() };
    let port = match port {
        None => None,
        Some(text) => match text.parse::<u16>() {
            Ok(number) if number > 0 => Some(number),
            _ => return Err(bad(text)),
        },
    };
    Ok((host.to_owned(), port))
}

impl fmt::Display for TargetUrl {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme)?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&self.host)?;
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(&self.path)?;
        match &self.query {
            Some(query) => write!(f, "?{query}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TargetUrl({self})")
    }
}

impl fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => write!(f, "{url}"),
            Self::Builtin => f.write_str("builtin:"),
            Self::Managed(name) => write!(f, "managed:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> TargetUrl {
        TargetUrl::parse(text).unwrap()
    }

    #[test]
    fn every_part_of_a_url_is_read() {
        let it = url("smb://ann:s%40t@files.example:1445/share/dir?version=3&transport=udp");
        assert_eq!(
            (it.scheme.as_str(), it.host.as_str(), it.port),
            ("smb", "files.example", Some(1445))
        );
        assert_eq!((it.user.as_deref(), it.password.as_deref()), (Some("ann"), Some("s%40t")));
        assert_eq!((it.path.as_str(), it.query_value("transport")), ("/share/dir", Some("udp")));
        assert_eq!(url("http://[::1]:80/").authority(1), "[::1]:80");
        assert_eq!(url("http://h").authority(8080), "h:8080");
    }

    #[test]
    fn a_password_is_never_shown() {
        let it = url("smb://ann:secret@h/share");
        assert_eq!(it.to_string(), "smb://ann@h/share");
        assert!(!format!("{it:?}").contains("secret"));
    }

    #[test]
    fn bad_targets_say_what_to_write() {
        for bad in
            ["localhost:80", "http://", "http://h:99999/", "http://h:x/", "http://a b/", "://h"]
        {
            assert!(TargetSpec::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(TargetSpec::parse("builtin:"), Ok(TargetSpec::Builtin));
        assert_eq!(TargetSpec::parse("managed:nginx"), Ok(TargetSpec::Managed("nginx".into())));
    }
}
