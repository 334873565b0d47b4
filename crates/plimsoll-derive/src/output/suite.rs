//! The suites of a load: `model.toml`, `pages.toml` and `replay.toml`.

use plimsoll_model::units::{Nanos, span_text};

use super::{LogFacts, Output};
use crate::paths::PathEntry;
use crate::request::PathId;
use crate::suite_text::{self, Profile, toml_text};

/// The requests of a replay.
pub(super) const REPLAY_FILE: &str = "replay.csv";
/// Lines of `pages.toml`, the most frequent paths.
const PAGES_MAX: usize = 10_000;
/// A user's session takes as long as a warm-up should at least three times.
const WARM_UP_SESSIONS: f64 = 3.0;
const WARM_UP_MAX_S: f64 = 600.0;

/// Sessions that arrive, and go from page to page.
pub(super) fn model(output: &Output<'_>, facts: &LogFacts) -> String {
    let rate = facts.sessions as f64 / facts.seconds;
    let arrivals = match facts.sessions_are_poisson {
        Some(true) => "Poisson: the test does not reject it",
        Some(false) => "Poisson is assumed, though the test rejects it: derived.md",
        None => "Poisson is assumed: too few sessions for a test",
    };
    let head = head(
        "model",
        "Sessions as an access log has them",
        "The pages, the ways between them, popularity, sizes and think times of an access log, as \
         sessions that arrive at a rate. derived.md says what is from the log, fitted and guessed.",
    );
    let load = format!(
        "[load]\nmode = \"open\"\narrivals = \"sessions\"\nclients = 10000               # sessions at a \
         time, at most\nlog = \"rate.csv\"               # --shape log: sessions per second over the \
         time of the log\n\n[ladder]\nkind = \"points\"\npoints = [{rate:.6}]\n"
    );
    let warm_up = (facts.session_mean_s * WARM_UP_SESSIONS).clamp(5.0, WARM_UP_MAX_S);
    let workload = format!(
        "[workload]\nrequests = \"journey\"\njourney_file = \"journey.toml\"\n{}",
        hashed(output)
    );
    let origins = format!(
        "[origins.log]\n\"ladder.points\" = {}\n\"load.log\" = \"sessions per second in bins of time\"\n\
         \n[origins.fitted]\n\"workload.journey_file\" = {}\n\n[origins.guessed]\n\"load.arrivals\" = \
         \"a pause of {} ends a session\"\n\"load.gaps\" = \"{arrivals}\"\n\
         \"load.clients\" = \"more than there are sessions at a time\"\n\n[origins.ours]\nop_timeout = \
         \"long enough for a slow page\"\nprofiles = \"three sessions of warm-up\"\nrules = \"limits of \
         this program, docs/validity.md\"\n",
        toml_text(&format!("{} sessions in {:.1} s", facts.sessions, facts.seconds)),
        toml_text(
            "pages, chain, popularity and sizes are the log's; think times are fitted; derived.md"
        ),
        span_text(output.options.session_timeout),
    );
    format!("{head}{load}\n{}{workload}\n{origins}", profiles(warm_up))
}

/// Single requests by weight.
pub(super) fn pages(output: &Output<'_>, facts: &LogFacts) -> String {
    let paths = &output.reading.paths;
    // What looks like a random part of a list of URLs cannot be written there.
    let is_good = |entry: &PathEntry| entry.counts.iter().any(|counts| counts[0] > 0);
    let is_page =
        |(id, entry): &(PathId, &PathEntry)| is_good(entry) && !paths.text(*id).contains("{{");
    let mut all: Vec<_> = paths.iter().filter(is_page).collect();
    all.sort_by_key(|(id, entry)| (std::cmp::Reverse(entry.requests()), *id));
    let most = all.first().map_or(1, |(_, entry)| entry.requests());
    // Weights end at a million.
    let divisor = most.div_ceil(1_000_000);
    let line = |(id, entry): &(PathId, &PathEntry)| {
        let weight = (entry.requests() / divisor).max(1);
        format!("    {},\n", toml_text(&format!("{weight} GET {}", output.path(*id))))
    };
    let urls: String = all.iter().take(PAGES_MAX).map(line).collect();
    let head = head(
        "pages",
        "Requests as an access log has them, without sessions",
        "The paths of an access log by their popularity, requested at a rate over kept connections.",
    );
    let rate = facts.requests as f64 / facts.seconds;
    format!(
        "{head}[load]\nmode = \"open\"\narrivals = \"shared\"\nclients = 64\n\n[ladder]\nkind = \
         \"points\"\npoints = [{rate:.6}]\n\n{}[workload]\nrequests = \"urls\"\nurls = \
         [\n{urls}]\n\n[origins.log]\n\"ladder.points\" = \"requests per second\"\n\"workload.urls\" = \
         \"the {} most frequent of {} paths\"\n\n[origins.guessed]\n\"load.clients\" = \"connections are \
         in no log\"\n",
        profiles(5.0),
        all.len().min(PAGES_MAX),
        all.len(),
    )
}

/// Each request at its time.
pub(super) fn replay(output: &Output<'_>, facts: &LogFacts) -> String {
    let head = head(
        "replay",
        "The requests of an access log, each at its time",
        "Each request of an access log when it began, at the speed that --speed says. derived.md says \
         what the log leaves open.",
    );
    let rate = facts.requests as f64 / facts.seconds;
    format!(
        "{head}[load]\nmode = \"open\"\narrivals = \"shared\"\nclients = 256\n\n[ladder]\nkind = \
         \"points\"\npoints = [{rate:.6}]\n\n{}[workload]\nrequests = \"replay\"\nreplay_file = \
         \"{}\"\n{}\n[origins.log]\n\"ladder.points\" = \"requests per second, on \
         average\"\n\"workload.replay_file\" = \"requests and their times\"\n\n[origins.guessed]\n\
         \"load.clients\" = \"connections are in no log\"\n",
        profiles(5.0),
        REPLAY_FILE,
        hashed(output),
    )
}

fn head(name: &str, title: &str, about: &str) -> String {
    format!(
        "# Derived from an access log by plimsoll derive; derived.md is about it.\nformat = 1\nname = \
         \"{name}\"\ntitle = \"{title}\"\nabout = \"\"\"\n{about}\"\"\"\nsource = \"no published \
         method\"\nprotocol = \"http\"\nop_timeout = \"10s\"\n\n"
    )
}

const fn hashed(output: &Output<'_>) -> &'static str {
    match output.options.keeps_paths {
        true => "",
        false => {
            "hashed = true                 # paths: only builtin: and managed: servers have them\n"
        }
    }
}

/// Of a server whose sessions need this long to warm up.
fn profiles(warm_up_s: f64) -> String {
    let span = |seconds: f64| span_text(Nanos::from_millis((seconds * 1e3) as u64));
    let (long, short) = (span(warm_up_s), span(warm_up_s.min(5.0)));
    let all = [
        ("full", long.as_str(), "300s"),
        ("standard", &long, "60s"),
        ("quick", &short, "10s"),
        ("demo", "1s", "2s"),
    ];
    let profile =
        |(name, warm_up, measure)| Profile { name, warm_up, measure, workload_scale: 1.0 };
    suite_text::profiles(&all.map(profile))
}
