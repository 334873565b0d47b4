//! The server under test, named by a URL.

use std::fmt;

/// A target as the user writes it.
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

/// Why a target cannot be read. Text that could be a password is not shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Neither a URL nor `builtin:` nor `managed:NAME`.
    #[error("target {shown:?} is not a URL; write {}", .meant.as_deref().unwrap_or(EXAMPLES))]
    NotAUrl {
        /// What may be shown of it.
        shown: String,
        /// What was probably meant.
        meant: Option<String>,
    },
    /// Nothing between `://` and the path.
    #[error("target {0:?} names no host; write for example http://127.0.0.1:8080/")]
    NoHost(String),
    /// The port is not a number from 1 to 65535.
    #[error(
        "target {0:?}: what follows the colon after the host is not a port, a number from 1 to \
         65535; write a password as USER:PASSWORD@HOST"
    )]
    BadPort(String),
    /// White space or a control character in the URL.
    #[error("target {0:?} holds white space or a control character; percent-encode it")]
    Unprintable(String),
    /// The text before the `@` may be a password or the path.
    #[error(
        "target {0:?} has an @ behind a /, ? or #, so its host is uncertain; in a name or password \
         write / as %2F, ? as %3F, # as %23, and in a path or query write @ as %40"
    )]
    Uncertain(String),
}

const EXAMPLES: &str = "for example http://host:port/, builtin: or managed:nginx";

/// The URL for a share, an export or a server in the syntax of other tools. `None` where the text
/// may contain a password.
fn meant(text: &str) -> Option<String> {
    let slashes = text.replace('\\', "/");
    if text.contains(['@', '?', '#']) {
        return None;
    }
    if let Some(share) = slashes.strip_prefix("//").filter(|share| share.contains('/')) {
        return Some(format!("smb://{share}"));
    }
    let is_host = |host: &str| {
        !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b))
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    match text.split_once(':') {
        Some((host, export)) if is_host(host) && export.starts_with('/') => {
            Some(format!("nfs://{host}{export}"))
        }
        Some((host, rest)) if is_host(host) => {
            let (port, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            is_port(port).then(|| format!("http://{host}:{port}{path}"))
        }
        None if text.contains('.') && is_host(text.split('/').next().unwrap_or(text)) => {
            Some(format!("http://{text}"))
        }
        _ => None,
    }
}

/// The part of a text that is no target that may be shown: its scheme, or the text before the first
/// colon, since anything after it may be a password. Text before an `@` alone may be a key.
pub fn shown_of_unreadable(text: &str) -> String {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    if let Some(scheme) = scheme.filter(|scheme| is_scheme(scheme)) {
        return format!("{scheme}://…");
    }
    match text.find([':', '@']) {
        Some(at) if text[at..].starts_with('@') => "…".to_owned(),
        Some(at) => format!("{}…", &text[..=at]),
        None => text.to_owned(),
    }
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric())
}

impl TargetSpec {
    /// The run itself starts it.
    pub const fn is_started(&self) -> bool {
        matches!(self, Self::Builtin | Self::Managed(_))
    }

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
    /// Reads a URL; percent-encoding stays as it is. The user's name and password end at the last
    /// `@` of what precedes the path; one that leaves in doubt where that is, is refused.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let shown = || shown_of_unreadable(text);
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(TargetError::Unprintable(shown()));
        }
        let (scheme, rest) = text
            .split_once("://")
            .filter(|(scheme, _)| is_scheme(scheme))
            .ok_or_else(|| TargetError::NotAUrl { shown: shown(), meant: meant(text) })?;
        let (authority, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if is_uncertain(authority, behind) {
            return Err(TargetError::Uncertain(shown()));
        }
        let behind = behind.split_once('#').map_or(behind, |(before, _)| before);
        let (path, query) = match behind.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (behind, None),
        };
        let path = if path.is_empty() { "/" } else { path };
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

    /// Value of a `Host` field: without a port where the URL names none.
    pub fn host_field(&self) -> String {
        match self.port {
            Some(port) => self.authority(port),
            None if self.host.contains(':') => format!("[{}]", self.host),
            None => self.host.clone(),
        }
    }

    /// With the password, for those who are to log on with it; [`TargetUrl::parse`] reads it back.
    pub fn with_password(&self) -> String {
        let shown = self.to_string();
        match (&self.user, &self.password) {
            (Some(user), Some(password)) => {
                shown.replacen(&format!("{user}@"), &format!("{user}:{password}@"), 1)
            }
            _ => shown,
        }
    }

    /// Value of `key` in the query.
    pub fn query_value(&self, key: &str) -> Option<&str> {
        let pairs = self.query.as_deref()?.split('&');
        pairs.filter_map(|pair| pair.split_once('=')).find(|(k, _)| *k == key).map(|(_, v)| v)
    }
}

/// Whether what looks like the host may be a name, and what follows it the rest of a password:
/// `smb://ann:12/34@host/share`. The address of a host is no name.
fn is_uncertain(authority: &str, behind: &str) -> bool {
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let is_address = authority.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
    behind.contains('@')
        && !is_address
        && (authority.contains(':') || behind.starts_with(['?', '#']))
}

fn split_host_port(target: &str, text: &str) -> Result<(String, Option<u16>), TargetError> {
    let (host, port) = if let Some(inner) = text.strip_prefix('[') {
        let (host, after) = inner
            .split_once(']')
            .ok_or_else(|| TargetError::NoHost(shown_of_unreadable(target)))?;
        (host, after.strip_prefix(':'))
    } else {
        text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)))
    };
    if host.is_empty() {
        return Err(TargetError::NoHost(shown_of_unreadable(target)));
    }
    let port = match port {
        None => None,
        Some(text) => match text.parse::<u16>() {
            Ok(number) if number > 0 => Some(number),
            _ => return Err(TargetError::BadPort(shown_of_unreadable(target))),
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
    fn a_password_is_never_shown_and_goes_only_where_it_is_asked_for() {
        let it = url("smb://ann:secret@h/share");
        assert_eq!(it.to_string(), "smb://ann@h/share");
        assert!(!format!("{it:?}").contains("secret"));
        for text in [
            "smb://ann:secret@h/share",
            "smb://a:b:c%40d@[::1]:445/share/ab?c=d",
            "smb://:secret@h/",
            "smb://ann@h/share?",
            "http://h/ann@",
        ] {
            assert_eq!(url(text).with_password(), text);
            assert_eq!(url(&url(text).with_password()), url(text));
        }
    }

    #[test]
    fn a_target_that_cannot_be_read_is_not_echoed() {
        for bad in [
            "smb://ann:s3cret",
            "smb://ann:s3cret/share",
            "smb://ann:s3cret@",
            "smb://ann:s3cret@h:x/share",
            "smb://ann:s3cret@h:0/share",
            "smb://ann:s3cret@[::1/share",
            "smb://ann:s3cret@h/sha re",
            "smb:/ann:s3cret@h/share",
            "smb//ann:s3cret@h/share",
            "ann:s3cret@h",
            "s3cret@h",
            "s m b://ann:s3cret@h/share",
            "://ann:s3cret@h",
            "ann:s3cret://x@h",
            "http://h:80/a?b=s3cret@h",
        ] {
            let error = TargetSpec::parse(bad).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_password_is_not_taken_for_the_port_of_a_host() {
        for bad in [
            "smb://user:1234#x@host/s",
            "smb://user:1234?x@host/s",
            "smb://user:1234/x@host/s",
            "smb://user:12@34/x@host/s",
            "smb://user?x@host/s",
            "smb://user#x@host/s",
        ] {
            let error = TargetSpec::parse(bad).unwrap_err();
            assert!(matches!(error, TargetError::Uncertain(_)), "{bad}: {error:?}");
        }
        for (good, host, path) in [
            ("http://127.0.0.1:80/@x", "127.0.0.1", "/@x"),
            ("http://[::1]:80/@x", "::1", "/@x"),
            ("http://host/@x", "host", "/@x"),
            ("smb://user:12@34%2F%3F%23:5@host/s", "host", "/s"),
        ] {
            let it = url(good);
            assert_eq!((it.host.as_str(), it.path.as_str()), (host, path));
        }
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

    #[test]
    fn shares_exports_and_hosts_in_other_words_are_answered_with_their_url() {
        let message = |text: &str| TargetSpec::parse(text).unwrap_err().to_string();
        for (typed, expected) in [
            ("\\\\host\\share", "; write smb://host/share"),
            ("//host/share/dir", "; write smb://host/share/dir"),
            ("host:/export", "; write nfs://host/export"),
            ("localhost:8080", "; write http://localhost:8080"),
            ("10.0.0.1:80/a", "; write http://10.0.0.1:80/a"),
            ("example.org/a", "; write http://example.org/a"),
            ("ann:secret", "; write for example"),
            ("ann:secret@h", "; write for example"),
            ("nginx", "; write for example"),
        ] {
            assert!(
                message(typed).ends_with(expected) || message(typed).contains(expected),
                "{}",
                message(typed)
            );
        }
        assert!(!message("ann:secret@h").contains("secret"));
    }
}
