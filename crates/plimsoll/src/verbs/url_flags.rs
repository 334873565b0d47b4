//! Flags of suite `web-url`, and of language model suites, as values of the suite.

use std::path::Path;

use plimsoll_model::suite::{Override, Peak, ProfileName};
use plimsoll_model::units::{Nanos, parse_span, span_text};
use plimsoll_protocol::InputFile;

use crate::cli::{ArrivalsArg, HttpArg, RunArgs, UrlArgs};
use crate::exit::Failure;
use crate::verbs::flag_values::{Set, absolute, headers, lines};
use crate::verbs::llm_flags;

/// The suite that has these flags.
pub(crate) const URL_SUITE: &str = "web-url";
/// How the names of suites begin that speak to web servers.
const WEB_SUITES: &str = "web-";
/// Clients of the suite.
const CLIENTS_DEFAULT: u32 = 64;
/// A number of requests may take so long.
const REQUESTS_WITHIN: Nanos = Nanos::from_secs(3_600);
/// Time between the requests of a connection that is held.
const HOLD_EVERY: Nanos = Nanos::from_secs(30);
/// Begins the name of a file in place of a text.
const FILE_PREFIX: char = '@';

/// What the flags come to.
pub(super) struct FlagChanges {
    /// Values of the suite.
    pub(super) values: Vec<Override>,
    /// The recorded load of `--trace`.
    pub(super) trace: Option<InputFile>,
}

/// What the flags set.
pub(super) fn changes(args: &RunArgs, profile: ProfileName) -> Result<FlagChanges, Failure> {
    let url = &args.url;
    let is_url = args.suite == URL_SUITE;
    let is_llm = llm_flags::has_flags(args)?;
    if let Some(flag) = url.first_given().filter(|_| !is_url && !is_llm) {
        return Err(Failure::wrong(format!(
            "{flag} belongs to suite {URL_SUITE}; for {} use --points, --peak or --set",
            args.suite
        )));
    }
    let is_of_web = is_llm || args.suite.starts_with(WEB_SUITES) || args.suite.contains(['/', '.']);
    if let Some(flag) = url.first_of_web().filter(|_| !is_of_web) {
        return Err(Failure::wrong(format!(
            "{flag} belongs to suites {URL_SUITE} and web-static and to language model suites, not \
             to {}",
            args.suite
        )));
    }
    let transport = if is_llm { llm_flags::TRANSPORT } else { "workload" };
    let mut set = Set::new(transport);
    if is_url || is_llm {
        load(url, args.ladder.peak, &mut set)?;
    }
    if is_url {
        set.given("ladder.points", clients(url)?.map(|clients| vec![f64::from(clients)]));
        held(url, &mut set);
    }
    timings(url, profile, &mut set);
    requests(url, &mut set)?;
    set_transport(url, &mut set);
    let trace = match is_llm {
        true => llm_flags::set(args, profile, &mut set)?,
        false => None,
    };
    Ok(FlagChanges { values: set.into_values(), trace })
}

fn load(url: &UrlArgs, peak: Option<Peak>, set: &mut Set) -> Result<(), Failure> {
    // A peak is searched in requests per second.
    let is_open = !url.rate.is_empty() || peak == Some(Peak::Auto);
    let of_open_loads =
        [(url.connections.is_some(), "--connections"), (url.arrivals.is_some(), "--arrivals")];
    if let Some((_, flag)) = of_open_loads.iter().find(|(given, _)| *given && !is_open) {
        return Err(Failure::wrong(format!(
            "{flag} belongs to an open load: write --rate N beside it, or --peak auto; the number \
             of connections of a closed load is that of its clients (--clients)"
        )));
    }
    if is_open {
        set.to("load.mode", "open");
        set.to("load.arrivals", "shared");
    }
    if !url.rate.is_empty() {
        set.to("ladder.kind", "points");
        set.to("ladder.points", url.rate.clone());
    }
    // Clients are requests in flight: each connection carries several.
    let streams = i64::from(url.streams.unwrap_or(1));
    set.given("load.clients", url.connections.map(|n| i64::from(n).saturating_mul(streams)));
    set.given("load.gaps", url.arrivals.map(ArrivalsArg::as_gaps));
    Ok(())
}

/// Connections that are held: their requests come at random, since a beat of all of them would be a
/// load of its own.
fn held(url: &UrlArgs, set: &mut Set) {
    let Some(connections) = url.hold else { return };
    set.to("ladder.points", vec![f64::from(connections)]);
    set.to("workload.connections", "held");
    set.given("workload.opened_per_s", url.hold_rate);
    set.to("load.think.mean", span_text(url.hold_every.unwrap_or(HOLD_EVERY)));
    set.to("load.think.distribution", "exponential");
}

/// Clients of a closed load, where the suite does not say how many. With fewer requests than
/// clients some would stand by.
fn clients(url: &UrlArgs) -> Result<Option<u32>, Failure> {
    match (url.clients, url.requests.filter(|_| url.rate.is_empty())) {
        (Some(clients), Some(requests)) if requests < u64::from(clients) => {
            Err(Failure::wrong(format!(
                "--requests {requests} --clients {clients}: each client sends one request at \
                 least; write --clients {requests} or fewer"
            )))
        }
        (None, Some(requests)) if requests < u64::from(CLIENTS_DEFAULT) => {
            Ok(u32::try_from(requests).ok())
        }
        (clients, _) => Ok(clients),
    }
}

fn timings(url: &UrlArgs, profile: ProfileName, set: &mut Set) {
    let profile = profile.as_str();
    let counted = url.requests.is_some();
    let length = url.length.or(counted.then_some(REQUESTS_WITHIN));
    let warm_up = url.warm_up.or(counted.then_some(Nanos::ZERO));
    set.given(&format!("profiles.{profile}.ops"), url.requests.map(|requests| requests as i64));
    set.given(&format!("profiles.{profile}.measure"), length.map(span_text));
    set.given(&format!("profiles.{profile}.warm_up"), warm_up.map(span_text));
    set.given("op_timeout", url.timeout.map(span_text));
}

fn requests(url: &UrlArgs, set: &mut Set) -> Result<(), Failure> {
    let method = url.method.as_deref().or(url.data.as_deref().map(|_| "POST"));
    set.given("workload.method", method);
    if let Some(data) = &url.data {
        match data.strip_prefix(FILE_PREFIX) {
            Some(file) => set.to("workload.body_file", absolute(Path::new(file))),
            None => set.to("workload.body", refuse_span(data)?),
        }
    }
    let headers = headers(url)?;
    set.of_transport("headers", Some(headers).filter(|headers| !headers.is_empty()));
    if let Some(file) = &url.urls {
        set.to("workload.urls", lines(file, "the URLs")?);
    }
    Ok(())
}

fn set_transport(url: &UrlArgs, set: &mut Set) {
    let place = url.unix.as_deref().map(|path| format!("unix:{}", absolute(path)));
    set.given("workload.stream", url.stream.then_some(true));
    set.given("workload.first_check", url.no_check.then_some(false));
    set.of_transport("connect_to", url.connect_to.clone().or(place));
    set.of_transport("http", url.http.map(HttpArg::as_version));
    set.of_transport("streams", url.streams.map(i64::from));
    set.of_transport("connections", url.new_connection.then_some("per-request"));
    set.of_transport("tls_verify", url.insecure.then_some(false));
    set.of_transport("tls_ca_file", url.cacert.as_deref().map(absolute));
    set.of_transport("tls_certificate_file", url.cert.as_deref().map(absolute));
    set.of_transport("tls_key_file", url.key.as_deref().map(absolute));
}

/// Other tools call the length of a run `-d`.
fn refuse_span(data: &str) -> Result<&str, Failure> {
    match parse_span(data).filter(|span| *span > Nanos::ZERO) {
        None => Ok(data),
        Some(_) => Err(Failure::wrong(format!(
            "--data {data}: this is the body of the requests; write --for {data} for the length of \
             the measurement, or put the body into a file and write --data @FILE"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::suite::Ladder;

    use super::*;
    use crate::suite_source;

    #[test]
    fn few_requests_are_held_against_the_clients_of_the_suite() {
        let suite = suite_source::find("web-url", &[]).unwrap();
        assert_eq!(suite.ladder, Ladder::Points { points: vec![f64::from(CLIENTS_DEFAULT)] });
    }

    #[test]
    fn a_length_in_the_place_of_a_body_is_told_apart() {
        for length in ["30s", "500ms", "2m"] {
            let Err(Failure::Other { message, .. }) = refuse_span(length) else {
                panic!("{length}")
            };
            assert!(message.contains(&format!("--for {length}")), "{message}");
        }
        for body in ["a=1", "30", "s", "0s", ""] {
            assert_eq!(refuse_span(body).ok(), Some(body));
        }
    }
}
