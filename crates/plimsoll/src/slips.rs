//! What people type who know another tool, or forget a word: the command they want.

use clap::error::ErrorKind;
use plimsoll_model::suite::nearest;
use plimsoll_model::target::TargetUrl;

use crate::protocols;
use crate::verbs::url_flags::URL_SUITE;

/// Flags of wrk, wrk2, oha, hey, ab, k6 and hyperfine, and what is written here.
const FLAGS: [(&[&str], &str); 12] = [
    (&["-c", "--concurrency", "--vus", "-u", "--users"], "--clients N: so many clients at once"),
    (&["-z", "--duration", "--time"], "--for 30s: the length of the measurement"),
    (&["-q", "-R", "--qps", "--rps"], "--rate N: so many requests per second"),
    (&["-t", "--threads", "-w"], "--workers N: threads of the generator, one core each"),
    (&["-s", "--script"], "--urls FILE: requests, one a line, or JSON with headers and body"),
    (&["-T", "--content-type"], "-H \"Content-Type: …\""),
    (&["-A", "--accept"], "-H \"Accept: …\""),
    (&["-D", "--body-file", "--data-binary"], "--data @FILE: the body of the requests"),
    (&["-X", "--request"], "--method METHOD"),
    (&["-o", "--output", "-e"], "--out DIR: where the bundle goes"),
    (&["--latency", "--print"], "nothing: percentiles are always shown"),
    (&["--disable-keepalive", "--no-keepalive"], "--new-connection: one for each request"),
];

/// Words that other tools have for `run`.
const RUN_WORDS: [&str; 6] = ["bench", "benchmark", "test", "load", "start", "attack"];

/// An answer to a command line that clap has refused.
pub(crate) fn answer(error: &clap::Error, arguments: &[String]) -> Option<String> {
    let first = arguments.first()?;
    match error.kind() {
        ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument if run_of(first).is_some() => {
            Some(format!("{first} is a target; write {}", run_of(first)?))
        }
        ErrorKind::InvalidSubcommand if RUN_WORDS.contains(&first.as_str()) => {
            Some(format!("there is no verb {first:?}; write plimsoll run SUITE TARGET"))
        }
        ErrorKind::InvalidSubcommand => {
            let command = <crate::cli::Cli as clap::CommandFactory>::command();
            let verbs: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            let near = nearest(first, verbs.iter().copied())?;
            Some(format!("there is no verb {first:?}; did you mean plimsoll {near}?"))
        }
        ErrorKind::MissingRequiredArgument => {
            let target = arguments.get(1).filter(|_| first == "run")?;
            let run = run_of(target)?;
            Some(format!("{target} is a target, and the suite is missing; write {run}"))
        }
        ErrorKind::UnknownArgument => {
            let typed = error.get(clap::error::ContextKind::InvalidArg)?.to_string();
            let flag = typed.split('=').next().unwrap_or(&typed);
            let (_, ours) = FLAGS.iter().find(|(theirs, _)| theirs.contains(&flag))?;
            Some(format!("there is no {flag} here; write {ours}"))
        }
        _ => None,
    }
}

/// The command for everyday work on a target.
fn run_of(text: &str) -> Option<String> {
    let url = TargetUrl::parse(text).ok()?;
    let protocol = protocols::all()
        .map(|one| one.protocol)
        .find(|protocol| protocol.schemes.iter().any(|(scheme, _)| *scheme == url.scheme))?;
    let mut names = protocol.suites.iter().map(|(name, _)| *name);
    let daily = names.clone().find(|name| *name == URL_SUITE);
    Some(format!("plimsoll run {} {url}", daily.or_else(|| names.next())?))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    fn answered(line: &str) -> Option<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = Cli::try_parse_from([&["plimsoll".to_owned()], &words[..]].concat()).err()?;
        answer(&error, &words)
    }

    #[test]
    fn twenty_slips_are_answered_with_the_command_that_was_meant() {
        for (typed, wanted) in [
            ("http://h/", "plimsoll run web-url http://h/"),
            ("https://h:8443/a -c 10", "plimsoll run web-url https://h:8443/a"),
            ("nfs://h/e", "plimsoll run nfs-"),
            ("smb://h/s", "plimsoll run disk-mix"),
            ("run http://h/", "plimsoll run web-url http://h/"),
            ("run app://h/", "plimsoll run transactions"),
            ("bench web-url http://h/", "plimsoll run SUITE TARGET"),
            ("rnu web-url http://h/", "plimsoll run"),
            ("reprot runs/a", "plimsoll report"),
            ("compair a b", "plimsoll compare"),
            ("run web-url http://h/ -c 10", "--clients N"),
            ("run web-url http://h/ --vus=10", "--clients N"),
            ("run web-url http://h/ -z 10s", "--for 30s"),
            ("run web-url http://h/ --duration 10s", "--for 30s"),
            ("run web-url http://h/ -q 100", "--rate N"),
            ("run web-url http://h/ -R 100", "--rate N"),
            ("run web-url http://h/ -t 4", "--workers N"),
            ("run web-url http://h/ --latency", "always shown"),
            ("run web-url http://h/ -s post.lua", "--urls FILE"),
            ("run web-url http://h/ -X PUT", "--method METHOD"),
            ("run web-url http://h/ --disable-keepalive", "--new-connection"),
        ] {
            let said = answered(typed);
            assert!(said.as_ref().is_some_and(|said| said.contains(wanted)), "{typed}: {said:?}");
        }
        assert_eq!(answered("run web-url http://h/ --nonsense"), None);
        assert_eq!(answered("run web-url http://h/ -d a=1"), None);
    }
}
