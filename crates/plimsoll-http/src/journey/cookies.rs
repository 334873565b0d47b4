//! The cookies of one user, and which of them a request sends. RFC 6265 §5.
//!
//! A user is on one host, so the domain of a cookie decides only whether it is taken. `Expires` and
//! `Max-Age` count from the reply; a date is read as far as needed to see that it has passed.

use plimsoll_model::units::Nanos;

/// Cookies of one user.
const COOKIES_MAX: usize = 180;
/// Longest cookie: name, value and path.
const COOKIE_BYTES_MAX: usize = 4_096;
/// The largest header that servers accept.
const HEADER_BYTES_MAX: usize = 16 * 1024;

/// The cookies of one user.
#[derive(Clone, Debug, Default)]
pub(crate) struct CookieJar(Vec<Cookie>);

#[derive(Clone, PartialEq, Eq)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
    is_secure: bool,
    expires_at: Option<Nanos>,
}

/// A cookie is a secret.
impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cookie")
    }
}

/// What became of a `Set-Cookie`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetCookie {
    /// Taken, replaced or deleted.
    Done,
    /// Not taken, as browsers do not: no name, another host, or `Secure` without TLS.
    Ignored,
    /// Too long, or one too many.
    TooMany,
}

/// The request that a cookie comes with or goes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CookieRequest<'a> {
    /// Host of the target.
    pub(crate) host: &'a str,
    /// Path of the request, without its query.
    pub(crate) path: &'a [u8],
    /// Over TLS.
    pub(crate) is_secure: bool,
    /// The instant.
    pub(crate) now: Nanos,
}

impl CookieJar {
    /// All cookies are gone.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes in the value of a `Set-Cookie` field.
    pub(crate) fn set(&mut self, field: &[u8], request: &CookieRequest<'_>) -> SetCookie {
        let mut parts = field.split(|byte| *byte == b';');
        let pair = parts.next().unwrap_or_default();
        let Some(equals) = memchr::memchr(b'=', pair) else { return SetCookie::Ignored };
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        if name.is_empty() || field.iter().any(|byte| *byte < b' ' && *byte != b'\t') {
            return SetCookie::Ignored;
        }
        let mut cookie = Cookie {
            name: name.to_vec(),
            value: value.to_vec(),
            path: default_path(request.path).to_vec(),
            is_secure: false,
            expires_at: None,
        };
        let mut max_age = None;
        for attribute in parts {
            let (key, value) = match memchr::memchr(b'=', attribute) {
                Some(at) => (attribute[..at].trim_ascii(), attribute[at + 1..].trim_ascii()),
                None => (attribute.trim_ascii(), &b""[..]),
            };
            match key.to_ascii_lowercase().as_slice() {
                b"path" if value.starts_with(b"/") => cookie.path = value.to_vec(),
                b"domain" if !is_domain_of(request.host, value) => return SetCookie::Ignored,
                b"secure" if !request.is_secure => return SetCookie::Ignored,
                b"secure" => cookie.is_secure = true,
                b"max-age" => max_age = seconds(value),
                b"expires" if has_passed(value) => cookie.expires_at = Some(Nanos::ZERO),
                _ => {}
            }
        }
        // RFC 6265 §5.3: Max-Age takes precedence.
        if let Some(seconds) = max_age {
            cookie.expires_at = Some(match u64::try_from(seconds) {
                Ok(seconds @ 1..) => {
                    request.now.saturating_add(Nanos::from_secs(seconds.min(1 << 30)))
                }
                _ => Nanos::ZERO,
            });
        }
        self.insert(cookie, request.now)
    }

    fn insert(&mut self, cookie: Cookie, now: Nanos) -> SetCookie {
        if cookie.name.len() + cookie.value.len() + cookie.path.len() > COOKIE_BYTES_MAX {
            return SetCookie::TooMany;
        }
        let is_same = |other: &Cookie| other.name == cookie.name && other.path == cookie.path;
        let is_gone = cookie.expires_at.is_some_and(|at| at <= now);
        match (self.0.iter().position(is_same), is_gone) {
            (Some(at), true) => drop(self.0.remove(at)),
            (Some(at), false) => self.0[at] = cookie,
            (None, true) => {}
            (None, false) if self.0.len() == COOKIES_MAX => return SetCookie::TooMany,
            (None, false) => {
                // RFC 6265 §5.4: longer paths first, among them the earlier ones.
                let longer = |other: &Cookie| other.path.len() >= cookie.path.len();
                let at = self.0.iter().position(|other| !longer(other)).unwrap_or(self.0.len());
                self.0.insert(at, cookie);
            }
        }
        SetCookie::Done
    }

    /// Appends the value of the `Cookie` field of a request; nothing where it has none.
    pub(crate) fn write(&self, request: &CookieRequest<'_>, into: &mut Vec<u8>) {
        let start = into.len();
        for cookie in &self.0 {
            let is_alive = cookie.expires_at.is_none_or(|at| at > request.now);
            let is_allowed = !cookie.is_secure || request.is_secure;
            let fits =
                into.len() - start + cookie.name.len() + cookie.value.len() < HEADER_BYTES_MAX;
            if is_alive && is_allowed && fits && matches_path(request.path, &cookie.path) {
                if into.len() > start {
                    into.extend_from_slice(b"; ");
                }
                into.extend_from_slice(&cookie.name);
                into.push(b'=');
                into.extend_from_slice(&cookie.value);
            }
        }
    }

    /// Whether `text` has the value of one of them.
    pub(crate) fn values(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|cookie| cookie.value.as_slice())
    }
}

/// The value of the cookie of this name in a `Set-Cookie` field.
pub(crate) fn value_set<'f>(field: &'f [u8], name: &[u8]) -> Option<&'f [u8]> {
    let pair = field.split(|byte| *byte == b';').next()?;
    let equals = memchr::memchr(b'=', pair)?;
    (pair[..equals].trim_ascii() == name).then(|| pair[equals + 1..].trim_ascii())
}

/// RFC 6265 §5.1.4
fn default_path(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        None | Some(0) => b"/",
        Some(last) => &path[..last],
    }
}

/// RFC 6265 §5.1.4
fn matches_path(path: &[u8], of_cookie: &[u8]) -> bool {
    path.strip_prefix(of_cookie)
        .is_some_and(|rest| of_cookie.ends_with(b"/") || rest.is_empty() || rest.starts_with(b"/"))
}

/// RFC 6265 §5.1.3; an address is a domain of itself alone.
fn is_domain_of(host: &str, domain: &[u8]) -> bool {
    let domain = domain.strip_prefix(b".").unwrap_or(domain).to_ascii_lowercase();
    let host = host.to_ascii_lowercase();
    let is_address = host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[');
    domain.is_empty()
        || host.as_bytes() == domain
        || (!is_address
            && host
                .as_bytes()
                .strip_suffix(domain.as_slice())
                .is_some_and(|rest| rest.ends_with(b".")))
}

fn seconds(value: &[u8]) -> Option<i64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// A date of the last century, mostly of 1970: how servers delete a cookie. Other dates lie in the
/// future of any run.
fn has_passed(date: &[u8]) -> bool {
    let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<u32>().ok();
    let years = date.split(|byte| !byte.is_ascii_digit()).filter(|digits| digits.len() == 4);
    years.filter_map(number).any(|year| year <= 2000)
        || memchr::memmem::find(date, b"-Jan-70").is_some()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(path: &'static str, now: u64) -> CookieRequest<'static> {
        let path = path.as_bytes();
        CookieRequest { host: "shop.example", path, is_secure: false, now: Nanos::from_secs(now) }
    }

    fn sent(jar: &CookieJar, path: &'static str, now: u64) -> String {
        let mut field = Vec::new();
        jar.write(&request(path, now), &mut field);
        String::from_utf8(field).unwrap()
    }

    #[test]
    fn cookies_go_to_the_paths_below_theirs_for_as_long_as_they_live() {
        let mut jar = CookieJar::default();
        for (field, path) in [
            ("sid=1; Path=/; HttpOnly; SameSite=Lax", "/login"),
            ("cart=2; Max-Age=60", "/shop/cart"),
            ("old=3; Max-Age=0; Expires=Fri, 01 Jan 2038 00:00:00 GMT", "/"),
            ("deep=4; path=/shop/cart", "/"),
        ] {
            assert_eq!(jar.set(field.as_bytes(), &request(path, 0)), SetCookie::Done, "{field}");
        }
        assert_eq!(sent(&jar, "/shop/cart/pay", 1), "deep=4; cart=2; sid=1");
        assert_eq!(sent(&jar, "/shop", 1), "cart=2; sid=1");
        assert_eq!(sent(&jar, "/shopping", 1), "sid=1");
        assert_eq!(sent(&jar, "/shop/x", 61), "sid=1");
        jar.set(b"sid=; expires=Thu, 01 Jan 1970 00:00:00 GMT; path=/", &request("/", 2));
        assert_eq!(sent(&jar, "/", 3), "");
    }

    #[test]
    fn what_a_browser_ignores_is_ignored() {
        let mut jar = CookieJar::default();
        for field in ["no pair", "=x", "a=1; Domain=other.example", "a=1; Secure", "a=\x01"] {
            assert_eq!(jar.set(field.as_bytes(), &request("/", 0)), SetCookie::Ignored, "{field}");
        }
        for domain in ["example", ".shop.example", "SHOP.example", ""] {
            let field = format!("a=1; Domain={domain}");
            assert_eq!(jar.set(field.as_bytes(), &request("/", 0)), SetCookie::Done, "{field}");
        }
        assert!(!is_domain_of("10.0.0.1", b"0.0.1") && is_domain_of("10.0.0.1", b"10.0.0.1"));
    }

    #[test]
    fn a_cookie_bomb_is_bounded() {
        let mut jar = CookieJar::default();
        let all = (0..500)
            .map(|n| jar.set(format!("c{n}={}", "x".repeat(200)).as_bytes(), &request("/", 0)));
        assert!(all.collect::<Vec<_>>().contains(&SetCookie::TooMany));
        assert_eq!(
            jar.set(&[&b"a="[..], &[b'x'; 5_000]].concat(), &request("/", 0)),
            SetCookie::TooMany
        );
        assert!(sent(&jar, "/", 0).len() <= HEADER_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn no_field_is_too_strange(field: Vec<u8>) {
            let mut jar = CookieJar::default();
            jar.set(&field, &request("/a/b", 0));
            jar.write(&request("/a/b", 1), &mut Vec::new());
            value_set(&field, b"a");
        }
    }
}
