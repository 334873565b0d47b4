//! Hints for users who know another tool or mistype a name: the command they want.

use clap::error::ErrorKind;
use plimsoll_model::suite::nearest;
use plimsoll_model::target::{TargetSpec, TargetUrl};
use plimsoll_run::protocols;

use crate::flags::url::URL_SUITE;

/// Flags of wrk, wrk2, oha, hey, ab, k6 and hyperfine, and of vLLM's bench, GuideLLM and AIPerf,
/// with their equivalents. `docs/other-tools.md` and `docs/llm.md` have the details.
const FLAGS: [(&[&str], &str); 47] = [
    (&["-c", "--concurrency", "--vus", "-u", "--users"], "--clients N: N clients at once"),
    (&["-z", "--duration", "--time"], "--for 30s: the length of the measurement"),
    (&["-q", "-R", "--qps", "--rps"], "--rate N: N requests per second"),
    (&["-i", "--iterations"], "-n N: N requests in all"),
    (&["--stage", "--stages"], "--rate 1k,2k,4k: a ladder of loads"),
    (&["-t"], "--workers N for threads of the generator, --timeout 5s for the wait for a reply"),
    (&["--threads", "-cpus"], "--workers N: threads of the generator, one core each"),
    (&["--local-ips"], "--source ADDRESS,…: addresses that clients connect from"),
    (&["--connect-timeout"], "--timeout 5s: it covers connecting too"),
    (&["-w"], "nothing: replies under way are always waited for"),
    (&["-s", "--script"], "--urls FILE: requests, one a line, or JSON with headers and body"),
    (&["-Z", "--urls-from-file"], "--urls FILE: requests, one a line, or JSON with a body each"),
    (&["--rand-regex-url"], "{{uuid}} or {{int,1,1000}} in the URL"),
    (&["-e", "--env"], "-H \"Name: env:VARIABLE\""),
    (&["-T", "--content-type"], "-H \"Content-Type: …\""),
    (&["-A", "--accept"], "-H \"Accept: …\""),
    (&["-U", "--user-agent"], "-H \"User-Agent: …\""),
    (&["--host", "-host"], "-H \"Host: …\", or --connect-to HOST:PORT to connect elsewhere"),
    (&["-D", "--body-file", "--data-binary"], "--data @FILE: the body of the requests"),
    (&["-F", "--form"], "--data @FILE -H \"Content-Type: …\": a body as it is to be sent"),
    (&["-X", "--request"], "--method METHOD"),
    (&["--unix-socket"], "--unix PATH"),
    (&["--insecure-skip-tls-verify"], "--insecure: any certificate is taken"),
    (
        &["--disable-keepalive", "-disable-keepalive", "--no-keepalive", "--no-connection-reuse"],
        "--new-connection: one for each request",
    ),
    (
        &["--disable-compression", "-disable-compression"],
        "nothing: compressed replies are not asked for",
    ),
    (
        &["-r", "--redirect", "--max-redirects", "-disable-redirects"],
        "nothing: redirects are not followed",
    ),
    (&["--ipv4", "--ipv6", "--dns", "--no-pre-lookup"], "--connect-to ADDRESS:PORT"),
    (&["--http2", "--http-version", "-h2"], "--http 2"),
    (&["-p", "--max-concurrent-streams"], "--http 2 --streams N: requests in flight a connection"),
    (&["-x", "--proxy-header", "--aws-sigv4", "--aws-session"], "nothing: there is no such thing"),
    (
        &["--burst-delay", "--burst-rate"],
        "--arrivals poisson: requests bunch as those of independent users do",
    ),
    (&["-o", "--output", "--db-url"], "--out DIR: where the bundle goes"),
    (&["--output-format"], "--json: the result for programs"),
    (&["--no-tui", "--quiet"], "--progress plain, or --progress none"),
    (&["--debug", "--http-debug"], "nothing: the first request is looked at before any load"),
    (&["--latency", "--print", "--summary-trend-stats"], "nothing: percentiles are always shown"),
    (&["--latency-correction"], "nothing: times count from when a request was due"),
    (
        &["--max-concurrency"],
        "--clients N: N users with one request each at a time; --points 1,2,4 for a ladder",
    ),
    (&["--request-rate"], "--rate N: N requests per second, due whatever the server does"),
    (
        &["--rate-type", "--profile-type"],
        "--clients N or --points 1,2,4 for users at once, --rate N for requests per second, and \
         plimsoll capacity for the highest load within limits",
    ),
    (
        &["--random-input-len", "--input-len", "--isl", "--synthetic-input-tokens-mean"],
        "--input-tokens N: tokens of a prompt",
    ),
    (
        &["--random-output-len", "--output-len", "--osl", "--output-tokens-mean"],
        "--output-tokens N: tokens of an answer",
    ),
    (
        &["--num-prompts", "--request-count", "--max-requests"],
        "-n N: N requests in all, with --clients N or --rate N",
    ),
    (&["--max-seconds", "--benchmark-duration"], "--for 60s: the length of the measurement"),
    (
        &["--dataset-name", "--dataset-path", "--input-file", "--data-file"],
        "--prompts FILE: your own, or --trace FILE: a recorded load; prompts are made otherwise",
    ),
    (
        &["--backend", "--endpoint-type", "--tokenizer", "--streaming", "--base-url"],
        "nothing: the target's URL stands after the suite, answers are streamed, tokens are the \
         server's count",
    ),
    (&["--percentile-metrics", "--metric-percentiles"], "nothing: all figures are always shown"),
];

const LOAD_VERBS: [&str; 3] = ["run", "capacity", "scale"];
/// Other tools' names for `run`.
const RUN_SYNONYMS: [&str; 6] = ["bench", "benchmark", "test", "load", "start", "attack"];

/// A hint for a command line that clap has refused.
pub(crate) fn answer(error: &clap::Error, arguments: &[String]) -> Option<String> {
    let first = arguments.first()?;
    match error.kind() {
        ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument if run_of(first).is_some() => {
            Some(format!("{first} is a target; write {}", run_of(first)?))
        }
        ErrorKind::InvalidSubcommand if protocols::shipped(first).is_some() => {
            let target = arguments.iter().skip(1).find_map(|text| target_of(text));
            let target = target.as_deref().unwrap_or("TARGET");
            Some(format!("{first} is a suite; write plimsoll run {first} {target}"))
        }
        ErrorKind::InvalidSubcommand if RUN_SYNONYMS.contains(&first.as_str()) => {
            Some(format!("there is no verb {first:?}; write plimsoll run SUITE TARGET"))
        }
        ErrorKind::InvalidSubcommand => {
            let command = <crate::verbs::Cli as clap::CommandFactory>::command();
            let verbs: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            // Otherwise the wrong word is after the verb, and clap names it.
            let is_verb = verbs.contains(&first.as_str());
            let near = nearest(first, verbs.iter().copied()).filter(|_| !is_verb)?;
            Some(format!("there is no verb {first:?}; did you mean plimsoll {near}?"))
        }
        ErrorKind::MissingRequiredArgument => {
            let target = arguments.get(1).filter(|_| first == "run")?;
            let run = run_of(target)?;
            Some(format!("{target} is a target, and the suite is missing; write {run}"))
        }
        ErrorKind::UnknownArgument if LOAD_VERBS.contains(&first.as_str()) => {
            let typed = error.get(clap::error::ContextKind::InvalidArg)?.to_string();
            let flag = typed.split('=').next().unwrap_or(&typed);
            of_flag(flag)
        }
        _ => None,
    }
}

/// A hint for hey's flags: long names after one dash, which would be parsed as a short flag with a
/// value.
pub(crate) fn long_behind_one_dash(arguments: &[String]) -> Option<String> {
    if !arguments.first().is_some_and(|first| LOAD_VERBS.contains(&first.as_str())) {
        return None;
    }
    let is_long = |text: &str| text.len() > 2 && text.starts_with('-') && !text.starts_with("--");
    arguments.iter().filter(|argument| is_long(argument)).find_map(|argument| of_flag(argument))
}

fn of_flag(flag: &str) -> Option<String> {
    let (_, ours) = FLAGS.iter().find(|(theirs, _)| theirs.contains(&flag))?;
    Some(format!("there is no {flag} here; write {ours}"))
}

/// A target without its password.
fn target_of(text: &str) -> Option<String> {
    TargetSpec::parse(text).ok().map(|target| target.to_string())
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
    use crate::verbs::Cli;

    fn answered(line: &str) -> Option<String> {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error =
            Cli::try_parse_from([&["plimsoll".to_owned()], &arguments[..]].concat()).err()?;
        answer(&error, &arguments)
    }

    /// Names of flags in a part of a table's row.
    fn flags_in(cells: &[&str]) -> Vec<String> {
        let code = cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let flags = code.filter(|text| text.starts_with('-'));
        flags.map(|text| text.split(' ').next().unwrap_or(text).to_owned()).collect()
    }

    #[test]
    fn every_flag_in_the_table_of_other_tools_is_ours_or_answered() {
        let page = include_str!("../../../docs/other-tools.md");
        let theirs = flags_of(page);
        assert!(theirs.len() > 80, "{theirs:?}");
        assert_recognised("web-url", &theirs);
    }

    #[test]
    fn so_is_every_flag_in_the_tables_of_language_models() {
        let page = include_str!("../../../docs/llm.md");
        let theirs = flags_of(page);
        assert!(theirs.len() > 15, "{theirs:?}");
        assert_recognised("llm-chat", &theirs);
    }

    /// Flags of other tools in the tables of a page.
    fn flags_of(page: &str) -> Vec<String> {
        let rows = page.lines().filter(|line| line.starts_with("| "));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split(" | ").collect()).collect();
        let mut theirs: Vec<String> = Vec::new();
        for row in &rows {
            theirs.extend(flags_in(if row.len() > 3 { &row[2..] } else { &row[..1] }));
        }
        theirs
    }

    fn assert_recognised(suite: &str, theirs: &[String]) {
        for flag in theirs {
            let line = format!("run {suite} http://h/ {flag}");
            let is_recognised = ["", " 1", " 1s", " a:1"].iter().any(|value| {
                let typed = format!("{line}{value}");
                let arguments: Vec<String> = typed.split(' ').map(str::to_owned).collect();
                let parsed =
                    Cli::try_parse_from([&["plimsoll".to_owned()], &arguments[..]].concat());
                let Err(error) = parsed else { return true };
                // --key needs --cert, and --goodput needs limits: flags of ours.
                let is_ours = matches!(
                    error.kind(),
                    ErrorKind::MissingRequiredArgument | ErrorKind::ValueValidation
                );
                is_ours
                    || answer(&error, &arguments).is_some()
                    || long_behind_one_dash(&arguments).is_some()
            });
            assert!(is_recognised, "{flag} is neither a flag here nor answered");
        }
    }

    #[test]
    fn a_long_name_behind_one_dash_is_not_read_as_a_short_flag() {
        let answered = |line: &str| {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            long_behind_one_dash(&arguments)
        };
        let hint = answered("run web-url http://h/ -disable-keepalive").unwrap();
        assert!(hint.ends_with("write --new-connection: one for each request"), "{hint}");
        assert_eq!(answered("run web-url http://h/ -da=1 -n5 --host x"), None);
    }

    #[test]
    fn slips_are_answered_with_the_command_that_was_meant() {
        for (typed, expected) in [
            ("http://h/", "plimsoll run web-url http://h/"),
            ("https://h:8443/a -c 10", "plimsoll run web-url https://h:8443/a"),
            ("nfs://h/e", "plimsoll run nfs-"),
            ("smb://h/s", "plimsoll run disk-mix"),
            ("run http://h/", "plimsoll run web-url http://h/"),
            ("run app://h/", "plimsoll run transactions"),
            ("bench web-url http://h/", "plimsoll run SUITE TARGET"),
            ("rnu web-url http://h/", "plimsoll run"),
            ("web-url http://h/a", "web-url is a suite; write plimsoll run web-url http://h/a"),
            ("web-static --peak auto managed:nginx", "plimsoll run web-static managed:nginx"),
            ("nfs-v3", "plimsoll run nfs-v3 TARGET"),
            ("reprot runs/a", "plimsoll report"),
            ("compair a b", "plimsoll compare"),
            ("run web-url http://h/ -c 10", "--clients N"),
            ("run web-url http://h/ --vus=10", "--clients N"),
            ("run web-url http://h/ -z 10s", "--for 30s"),
            ("run web-url http://h/ --duration 10s", "--for 30s"),
            ("run web-url http://h/ -q 100", "--rate N"),
            ("run web-url http://h/ -R 100", "--rate N"),
            ("run web-url http://h/ -t 4", "--workers N for threads"),
            ("run web-url http://h/ --latency", "always shown"),
            ("run web-url http://h/ -s post.lua", "--urls FILE"),
            ("run web-url http://h/ -X PUT", "--method METHOD"),
            ("run web-url http://h/ --disable-keepalive", "--new-connection"),
            ("run llm-chat http://h/ --max-concurrency 8", "--clients N: N users"),
            ("run llm-chat http://h/ --request-rate=4", "--rate N"),
            ("run llm-chat http://h/ --random-input-len 9", "--input-tokens N"),
            ("run llm-chat http://h/ --num-prompts 9", "-n N: N requests in all"),
            ("capacity llm-chat http://h/ --rate-type sweep", "plimsoll capacity"),
            ("run web-url http://h/ --http2", "--http 2"),
        ] {
            let hint = answered(typed);
            assert!(hint.as_ref().is_some_and(|hint| hint.contains(expected)), "{typed}: {hint:?}");
        }
        assert_eq!(answered("run web-url http://h/ --nonsense"), None);
        assert_eq!(answered("report runs/a --output x"), None, "no bundle goes there");
        assert_eq!(answered("suites nonsense"), None, "clap names the word itself");
        assert_eq!(answered("run web-url http://h/ -d a=1"), None);
    }
}
