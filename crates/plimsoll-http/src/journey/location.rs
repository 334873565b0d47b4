//! Where a redirect leads. RFC 3986 §5.2

use super::user::Origin;
use crate::wire::template::Encoding;

/// Path and query that a redirect leads to on the same server; `None` where it leads elsewhere. RFC
/// 3986 §5.2
pub(crate) fn resolve(location: &[u8], origin: &Origin, path: &[u8]) -> Option<Vec<u8>> {
    let location = std::str::from_utf8(location).ok()?.trim();
    let location = location.split('#').next().unwrap_or_default();
    let absolute = format!("{}:", origin.scheme);
    let below = match location.get(..absolute.len()) {
        Some(start) if start.eq_ignore_ascii_case(&absolute) => &location[absolute.len()..],
        _ => location,
    };
    let target = match below.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let (host, target) = rest.split_at(end);
            if without_default_port(host, &origin.scheme)
                != without_default_port(&origin.host_field, &origin.scheme)
            {
                return None;
            }
            if target.starts_with('/') { target.to_owned() } else { format!("/{target}") }
        }
        None if below.len() < location.len() || has_scheme(below) => return None,
        None if below.starts_with('/') => below.to_owned(),
        None => {
            let end = path.iter().position(|byte| *byte == b'?').unwrap_or(path.len());
            let base = String::from_utf8_lossy(&path[..end]).into_owned();
            let directory = base.rsplit_once('/').map_or("", |(directory, _)| directory);
            match below {
                "" => base,
                query if query.starts_with('?') => format!("{base}{query}"),
                relative => without_dots(&format!("{directory}/{relative}")),
            }
        }
    };
    let mut bytes = target.into_bytes();
    Encoding::Target.apply(0, &mut bytes);
    Some(bytes)
}

fn without_default_port(host: &str, scheme: &str) -> String {
    let port = if scheme == "https" { ":443" } else { ":80" };
    host.strip_suffix(port).unwrap_or(host).to_ascii_lowercase()
}

fn has_scheme(text: &str) -> bool {
    let name = text.split(['/', '?', '#']).next().unwrap_or_default();
    name.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// RFC 3986 §5.2.4
fn without_dots(path: &str) -> String {
    let (path, query) =
        path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let slash = if path.ends_with("/.") || path.ends_with("/..") { "/" } else { "" };
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    format!("/{}{slash}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_leads_to_a_path_on_the_same_server_or_elsewhere() {
        let origin = Origin {
            scheme: "http".into(),
            host: "shop.example".into(),
            host_field: "shop.example:80".into(),
        };
        for (location, target) in [
            ("/a?b=c#d", Some("/a?b=c")),
            ("http://shop.example/a", Some("/a")),
            ("HTTP://SHOP.example:80?x", Some("/?x")),
            ("//shop.example/a b", Some("/a%20b")),
            ("next?y=1", Some("/shop/next?y=1")),
            ("../up/./", Some("/up/")),
            ("?page=2", Some("/shop/cart?page=2")),
            ("", Some("/shop/cart")),
            ("https://shop.example/", None),
            ("http://other.example/", None),
            ("//other.example", None),
            ("http:next", None),
            ("mailto:a@b", None),
        ] {
            let resolved = resolve(location.as_bytes(), &origin, b"/shop/cart?page=1");
            let resolved = resolved.map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(resolved.as_deref(), target, "{location}");
        }
        assert_eq!(resolve(b"/\xff", &origin, b"/"), None);
    }
}
