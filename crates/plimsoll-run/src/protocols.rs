//! The protocols of the program, one a line. No other module names one.

use std::sync::OnceLock;

use plimsoll_model::suite::{Changes, Suite, SuiteError, nearest};
use plimsoll_model::target::TargetUrl;
use plimsoll_protocol::Protocol;
use plimsoll_protocol::host::{Managed, Reference, Registration};

use crate::failure::Failure;

/// Journeys of users from recorded requests.
pub use plimsoll_http::journey::import as journey_import;
/// The file of a published method's journey.
pub use plimsoll_http::journey::published as published_journey;

/// The program's own protocols.
const OWN: [&Registration; 5] = [
    &plimsoll_http::host::REGISTRATION,
    &plimsoll_nfs::host::REGISTRATION,
    &plimsoll_smb::host::REGISTRATION,
    &plimsoll_app::host::REGISTRATION,
    &plimsoll_llm::host::REGISTRATION,
];

/// Further protocols, of a program built with them.
static MORE: OnceLock<&[&Registration]> = OnceLock::new();

/// Registers further protocols. Called once, before anything is parsed.
pub fn add(more: &'static [&'static Registration]) {
    let _ = MORE.set(more);
}

/// All protocols.
pub fn all() -> impl Iterator<Item = &'static Registration> {
    OWN.into_iter().chain(MORE.get().copied().unwrap_or_default().iter().copied())
}

/// The protocol of a suite.
pub fn of_suite(suite: &Suite) -> Result<&'static Registration, Failure> {
    let registration = all().find(|one| one.protocol.name == suite.protocol);
    registration
        .ok_or_else(|| Failure::wrong(format!("protocol {:?} is not known", suite.protocol)))
}

/// The protocol of a URL, with its port.
pub fn of_url(url: &TargetUrl) -> Option<(&'static Registration, u16)> {
    all().find_map(|one| Some((one, one.port_of(url)?)))
}

/// The reference server of `plimsoll serve VERB`.
pub fn reference(verb: &str) -> Option<&'static Reference> {
    all().map(|one| &one.reference).find(|reference| reference.verb == verb)
}

/// The shipped suites: name and text.
pub fn shipped_suites() -> impl Iterator<Item = (&'static str, &'static str)> {
    all().flat_map(|one| one.protocol.suites).copied()
}

/// Text of the shipped suite of that name.
pub fn shipped(name: &str) -> Option<&'static str> {
    all().find_map(|one| one.protocol.shipped(name))
}

/// Parses a suite of any protocol.
pub fn parse_suite<'a>(
    file: &str,
    text: &str,
    changes: impl Into<Changes<'a>>,
) -> Result<Suite, SuiteError> {
    let all: Vec<&Protocol> = all().map(|one| one.protocol).collect();
    plimsoll_protocol::parse_suite(&all, file, text, changes)
}

/// The foreign server `managed:NAME` of a protocol.
pub(crate) fn managed(of: &Registration, name: &str) -> Result<&'static Managed, Failure> {
    let (its, others): (Vec<_>, Vec<_>) = all()
        .flat_map(|one| one.managed.iter().map(move |server| (one, server)))
        .partition(|(one, _)| one.protocol.name == of.protocol.name);
    let named = |all: &[(&Registration, &'static Managed)]| {
        all.iter()
            .find(|(_, server)| server.name == name)
            .map(|(one, server)| (one.protocol, *server))
    };
    if let Some((_, server)) = named(&its) {
        return Ok(server);
    }
    let title = of.protocol.title;
    if its.is_empty() {
        let scheme = of.protocol.schemes.first().map_or("", |(scheme, _)| scheme);
        return Err(Failure::wrong(format!(
            "managed:{name}: no server of {title} can be managed; write builtin:, or start a \
             server (plimsoll serve {}) and give its URL, {scheme}://HOST[:PORT]",
            of.reference.verb
        )));
    }
    if let Some((protocol, _)) = named(&others) {
        return Err(Failure::wrong(format!(
            "managed:{name} serves {}, not {title}; choose a suite for it or another server",
            protocol.title
        )));
    }
    let server_names = || its.iter().chain(&others).map(|(_, server)| server.name);
    let help = match nearest(name, server_names()) {
        Some(near) => format!("did you mean managed:{near}?"),
        None => format!("known: {}", server_names().collect::<Vec<_>>().join(", ")),
    };
    Err(Failure::wrong(format!("there is no managed:{name}; {help}")))
}

#[cfg(test)]
mod tests {
    use plimsoll_model::suite::Override;

    use super::*;

    #[test]
    fn every_suite_file_is_shipped_and_named_after_its_file() {
        for protocol in OWN.map(|one| one.protocol) {
            let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
            let folder = format!("{crates}/plimsoll-{}/suites", protocol.name);
            let mut files: Vec<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
                .collect();
            files.sort();
            let mut names: Vec<&str> = protocol.suites.iter().map(|(name, _)| *name).collect();
            names.sort_unstable();
            assert_eq!(files, names);
        }
        for (name, text) in shipped_suites() {
            let suite = parse_suite(name, text, &[]);
            let suite = suite.unwrap_or_else(|e| panic!("{e}: {:?}", e.help));
            assert_eq!(suite.name, name);
            assert_eq!(parse_suite(name, &suite.to_toml(), &[]).unwrap(), suite);
            assert_eq!(shipped(name), Some(text), "two suites of that name");
        }
    }

    #[test]
    fn an_unknown_protocol_is_refused_with_the_nearest() {
        let set = [Override::parse("protocol=htp").unwrap()];
        let error = parse_suite("s", shipped("web-static").unwrap(), &set).unwrap_err();
        assert!(error.help.unwrap().contains("did you mean \"http\"?"));
    }

    fn refusal(protocol: &str, name: &str) -> String {
        let of = all().find(|one| one.protocol.name == protocol).unwrap();
        managed(of, name).map(|server| server.name).unwrap_err().to_string()
    }

    #[test]
    fn a_misspelt_server_gets_a_suggestion_and_a_strange_one_the_list() {
        let near = refusal("http", "ngnix");
        assert_eq!(near, "there is no managed:ngnix; did you mean managed:nginx?");
        let strange = refusal("http", "iis");
        assert_eq!(strange, "there is no managed:iis; known: nginx, caddy, ganesha, samba, llama");
    }

    #[test]
    fn a_server_of_another_protocol_is_refused() {
        assert_eq!(
            refusal("http", "ganesha"),
            "managed:ganesha serves NFS, not HTTP; choose a suite for it or another server"
        );
        assert_eq!(
            refusal("nfs", "nginx"),
            "managed:nginx serves HTTP, not NFS; choose a suite for it or another server"
        );
    }
}
