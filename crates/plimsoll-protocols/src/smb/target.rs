//! A share as a URL names it.

use std::net::SocketAddr;

use plimsoll_model::target::TargetUrl;

use crate::net::{Caller, Secret};
use crate::percent::percent_decoded;
use crate::{PlanError, ResolvedTarget};

/// Who logs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Whoever the server lets in without a name.
    Guest,
    /// A user the server knows.
    User {
        /// Name.
        name: String,
        /// What stands before `;` in the URL; empty leaves it to the server.
        domain: String,
        /// Password.
        password: Secret,
    },
}

/// A share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmbTarget {
    /// As the user named it, without password.
    pub name: String,
    /// Where to connect.
    pub address: SocketAddr,
    /// `\\host\share`, as the server is asked for it.
    pub unc: String,
    /// What the URL says after the share, with backslashes and without one at either end; empty:
    /// the share's root.
    pub base: String,
    /// Who logs on.
    pub who: Who,
}

impl SmbTarget {
    /// Of `smb://[[domain;]user[:password]@]host[:port]/share[/path]`. A password that the URL
    /// leaves out is the caller's.
    pub fn new(target: &ResolvedTarget, caller: &Caller) -> Result<Self, PlanError> {
        let url = &target.url;
        let wrong = |why: &'static str| PlanError::Share { target: url.to_string(), why };
        if url.scheme != "smb" {
            return Err(PlanError::Scheme {
                target: url.to_string(),
                protocol: "smb",
                schemes: "smb",
            });
        }
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
            who: who(url, caller, &decoded)?,
        })
    }
}

fn who(
    url: &TargetUrl,
    caller: &Caller,
    decoded: &dyn Fn(&str) -> Result<String, PlanError>,
) -> Result<Who, PlanError> {
    let Some(user) = url.user.as_deref().filter(|user| !user.is_empty()) else {
        return Ok(Who::Guest);
    };
    let user = decoded(user)?;
    let (domain, name) = user.split_once(';').unwrap_or(("", &user));
    let password = match &url.password {
        Some(password) => Secret(decoded(password)?),
        None => caller.password.clone().unwrap_or_default(),
    };
    Ok(Who::User { name: name.to_owned(), domain: domain.to_owned(), password })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Result<SmbTarget, PlanError> {
        let url = TargetUrl::parse(url).unwrap();
        let target = ResolvedTarget { url, address: ([127, 0, 0, 1], 445).into() };
        let caller = Caller { password: Some(Secret("asked".to_owned())), ..Caller::default() };
        SmbTarget::new(&target, &caller)
    }

    fn user(name: &str, domain: &str, password: &str) -> Who {
        Who::User {
            name: name.to_owned(),
            domain: domain.to_owned(),
            password: Secret(password.to_owned()),
        }
    }

    #[test]
    fn a_url_says_share_path_and_who() {
        let share = target("smb://WORK;ann:p%40ss@server:4450/My%20Share/a/b/").unwrap();
        assert_eq!((share.unc.as_str(), share.base.as_str()), (r"\\server\My Share", r"a\b"));
        assert_eq!(share.who, user("ann", "WORK", "p@ss"));
        assert!(!share.name.contains("p%40ss") && !format!("{share:?}").contains("p@ss"));
    }

    #[test]
    fn without_a_password_the_callers_is_taken_and_without_a_user_none() {
        assert_eq!(target("smb://ann@server/share").unwrap().who, user("ann", "", "asked"));
        let share = target("smb://server/share").unwrap();
        assert_eq!((share.who, share.base.as_str()), (Who::Guest, ""));
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for url in ["smb://server", "smb://server//", "nfs://server/x", "smb://server/x/../y"] {
            assert!(target(url).is_err(), "{url}");
        }
    }
}
