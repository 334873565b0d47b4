//! A share as a URL names it.

use std::net::SocketAddr;

use plimsoll_model::target::TargetUrl;

use super::logon::Credentials;
use plimsoll_protocol::net::Caller;
use plimsoll_protocol::{PlanError, ResolvedTarget, percent_decoded};

/// A share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmbTarget {
    /// As the user named it, without password.
    pub name: String,
    /// Where to connect.
    pub address: SocketAddr,
    /// `\\host\share`, as it is requested.
    pub unc: String,
    /// What the URL has after the share, with backslashes and without one at either end; empty: the
    /// share's root.
    pub base: String,
    /// Who logs on.
    pub credentials: Credentials,
}

/// The URL names no valid share.
#[derive(Debug, thiserror::Error)]
#[error("target {target}: {why}; write smb://[user@]host[:port]/share[/directory]")]
pub struct ShareError {
    target: String,
    why: &'static str,
}

impl SmbTarget {
    /// Of `smb://[[domain;]user[:password]@]host[:port]/share[/path]`. A password that the URL
    /// leaves out is the caller's.
    pub fn new(target: &ResolvedTarget, caller: &Caller) -> Result<Self, PlanError> {
        let url = &target.url;
        let wrong = |why: &'static str| PlanError::own(ShareError { target: url.to_string(), why });
        let decoded = |text: &str| {
            String::from_utf8(percent_decoded(text)).map_err(|_| wrong("it is not UTF-8"))
        };
        let path = decoded(&url.path)?;
        if path.contains('\\') {
            return Err(wrong("write slashes, not backslashes"));
        }
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let share = parts.next().ok_or_else(|| wrong("it names no share"))?;
        let parts: Vec<&str> = parts.collect();
        if parts.iter().any(|part| matches!(*part, "." | "..")) {
            return Err(wrong("its path has . or .. in it"));
        }
        Ok(Self {
            name: url.to_string(),
            address: target.address,
            unc: format!(r"\\{}\{share}", url.host),
            base: parts.join("\\"),
            credentials: credentials(url, caller, &decoded)?,
        })
    }
}

fn credentials(
    url: &TargetUrl,
    caller: &Caller,
    decoded: &dyn Fn(&str) -> Result<String, PlanError>,
) -> Result<Credentials, PlanError> {
    let Some(user) = url.user.as_deref().filter(|user| !user.is_empty()) else {
        return Ok(Credentials::guest());
    };
    let user = decoded(user)?;
    let (domain, user) = user.split_once(';').unwrap_or(("", &user));
    let password = match &url.password {
        Some(password) => decoded(password)?,
        None => caller.password.clone().unwrap_or_default().0,
    };
    Ok(Credentials { user: user.to_owned(), password, domain: domain.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_protocol::net::Secret;

    fn target(url: &str) -> Result<SmbTarget, PlanError> {
        let url = TargetUrl::parse(url).unwrap();
        let target = ResolvedTarget::new(url, ([127, 0, 0, 1], 445).into());
        let caller = Caller { password: Some(Secret("asked".to_owned())), ..Caller::default() };
        SmbTarget::new(&target, &caller)
    }

    fn user(user: &str, domain: &str, password: &str) -> Credentials {
        Credentials { domain: domain.to_owned(), ..Credentials::named(user, password) }
    }

    #[test]
    fn a_url_says_share_path_and_who() {
        let share = target("smb://WORK;ann:p%40ss@server:4450/My%20Share/a/b/").unwrap();
        assert_eq!((share.unc.as_str(), share.base.as_str()), (r"\\server\My Share", r"a\b"));
        assert_eq!(share.credentials, user("ann", "WORK", "p@ss"));
        assert!(!share.name.contains("p%40ss") && !format!("{share:?}").contains("p@ss"));
    }

    #[test]
    fn without_a_password_the_callers_is_taken_and_without_a_user_none() {
        assert_eq!(target("smb://ann@server/share").unwrap().credentials, user("ann", "", "asked"));
        let share = target("smb://server/share").unwrap();
        assert_eq!((share.credentials, share.base.as_str()), (Credentials::guest(), ""));
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for url in ["smb://server", "smb://server//", "smb://server/x/../y"] {
            assert!(target(url).is_err(), "{url}");
        }
    }
}
