//! The page about a derived load: what was kept, fitted, guessed and dropped. Markdown.

use std::fmt::Write as _;

use plimsoll_model::units::{counted, grouped, percent, three_digits};

use super::facts::SampleFacts;
use super::{LogFacts, Output};
use crate::arrivals::ArrivalTestOutcome;
use crate::line::StampedInstant;

/// Pages that the table has.
const PAGES_MAX: usize = 30;

/// The whole page.
pub(super) fn text(output: &Output<'_>, facts: &LogFacts) -> String {
    let mut text = "# A load from an access log\n\n".to_owned();
    let out = output.options.out.display();
    _ = write!(
        text,
        "{} requests in {} from {}.\n\n",
        grouped(facts.requests as f64),
        span(facts.seconds),
        counted(facts.files.len(), "file"),
    );
    let target = if output.options.keeps_paths { "http://HOST/" } else { "builtin:" };
    _ = write!(
        text,
        "```sh\nplimsoll run {out}/model.toml {target}                  # sessions at the rate of the \
         log\nplimsoll run {out}/model.toml {target} --shape log      # as the rate changed\nplimsoll run \
         {out}/replay.toml {target} --speed 2     # each request at its time, twice as fast\n```\n\n"
    );
    from_the_log(&mut text, facts);
    fitted(&mut text, facts);
    guessed(&mut text, output, facts);
    dropped(&mut text, output, facts);
    page_table(&mut text, facts);
    text
}

fn from_the_log(text: &mut String, facts: &LogFacts) {
    _ = write!(text, "## From the log\n\n| value | |\n| --- | --- |\n");
    let mut row = |name: &str, value: String| _ = writeln!(text, "| {name} | {value} |");
    for file in &facts.files {
        let format = file.format.as_deref().unwrap_or("empty");
        row("file", format!("`{}`, {format}", file.file));
    }
    row("requests per second", three_digits(facts.requests as f64 / facts.seconds));
    row("sessions per second", three_digits(facts.sessions as f64 / facts.seconds));
    row("pages of a session", three_digits(facts.pages_per_session));
    row("length of a session", span(facts.session_mean_s));
    row("distinct paths", grouped(facts.paths as f64));
    if let Some(sizes) = &facts.sizes {
        let [p10, p50, p90, p95, p99] = sizes.quantiles.map(grouped);
        let value = format!("{p10}, {p50}, {p90}, {p95}, {p99}; mean {}", grouped(sizes.mean));
        row("bytes of whole replies, p10, p50, p90, p95, p99", value);
    }
    row("programs that follow links", percent(facts.bot_requests as f64 / facts.requests as f64));
    text.push('\n');
}

fn fitted(text: &mut String, facts: &LogFacts) {
    _ = write!(text, "## Fitted\n\n");
    match &facts.zipf {
        Some(zipf) => {
            _ = writeln!(
                text,
                "- Popularity: Zipf's law with exponent {:.3} ({:.3} to {:.3}), by maximum likelihood \
                 over the {} paths with at least 20 requests. The model has the counts of the log.",
                zipf.exponent, zipf.interval[0], zipf.interval[1], zipf.paths
            );
        }
        None => {
            _ = writeln!(
                text,
                "- Popularity: too few paths with at least 20 requests for Zipf's law."
            )
        }
    }
    if let Some(think) = &facts.think {
        _ = writeln!(
            text,
            "- Think times: mean {}, {}. Each page has its own, by the law that is closest, or by its \
             quantiles if none is within 2 % of the distribution.",
            span(think.mean),
            law(think),
        );
    }
    if let Some(sizes) = &facts.sizes {
        _ = writeln!(
            text,
            "- Sizes: {}. The model has a size for each path, or the law of its page.",
            law(sizes)
        );
    }
    let answer = match facts.sessions_are_poisson {
        Some(true) => "Sessions begin as a Poisson process: the test does not reject it.",
        Some(false) => {
            "Sessions do not begin as a Poisson process; the model's do, so its bursts are milder than \
             the log's. The replay has the log's own."
        }
        None => {
            "Too few sessions for a test whether they begin as a Poisson process; the model's do."
        }
    };
    _ = writeln!(text, "- {answer}");
    for test in facts.session_arrivals.iter().filter(|test| test.windows > 0) {
        _ = writeln!(text, "  - {}", test_text(test));
    }
    text.push('\n');
}

fn law(sample: &SampleFacts) -> String {
    let logs = match (sample.log_mean, sample.log_deviation) {
        (Some(mean), Some(deviation)) => {
            format!(", logarithms with mean {mean:.4} and deviation {deviation:.4}")
        }
        _ => String::new(),
    };
    format!("closest law {} (distance {:.4}, n {}){logs}", sample.law, sample.distance, sample.n)
}

fn test_text(test: &ArrivalTestOutcome) -> String {
    let windows = test.windows;
    let mut text = format!("{} of {}:", counted(windows as usize, "window"), span(test.window_s));
    if let (Some(exponential), Some(a2)) = (test.exponential, test.last_a2) {
        _ = write!(
            text,
            " {exponential} with exponential times (A² of the last {a2:.3}, limit 1.321),"
        );
    }
    if let Some(independent) = test.independent {
        _ = write!(text, " {independent} without correlation of neighbours,");
    }
    if let (Some(dispersion), Some(ratio)) = (test.dispersion, test.last_dispersion) {
        _ = write!(
            text,
            " {dispersion} with the variance of counts that a Poisson process has (variance over mean \
             of the last {ratio:.3}); stamps hide the times between arrivals,"
        );
    }
    text.trim_end_matches(',').to_owned()
}

fn guessed(text: &mut String, output: &Output<'_>, facts: &LogFacts) {
    let [ten, thirty, sixty] = facts.sessions_by_timeout.map(|count| grouped(count as f64));
    let sessions = grouped(facts.sessions as f64);
    _ = write!(
        text,
        "## Guessed\n\n- A session is what one address with one user agent (or one user, or one session \
         cookie, if the format has it) requests without a pause of more than {}: {sessions} sessions. \
         With 10, 30 and 60 minutes: {ten}, {thirty}, {sixty}. Several people behind one address and \
         agent are one.\n- Style sheets, scripts, pictures and fonts belong to the page before them, six \
         at a time; other requests are pages.\n- Numbers, dates and identifiers in a path, and the rare \
         names of a folder with more than 20, are one page.\n",
        span(facts.session_timeout_s),
    );
    let instant = match output.reading.instant {
        StampedInstant::Begin => "the begin of requests",
        StampedInstant::End => "the end of requests",
    };
    let durations = match facts.with_duration_ratio {
        ratio if ratio > 0.99 => "each line has its duration",
        ratio if ratio > 0.0 => "only some lines have durations",
        _ => "there are no durations, so requests are taken to be over at once",
    };
    _ = write!(
        text,
        "- Stamps are of {instant}, to {}; {durations}. Within the resolution requests are spread evenly \
         at random, in the order of their lines.\n\n",
        span(facts.resolution_s)
    );
}

fn dropped(text: &mut String, output: &Output<'_>, facts: &LogFacts) {
    _ = write!(text, "## Dropped\n\n- Addresses, user agents and referers.\n");
    if !output.options.keeps_paths {
        _ = writeln!(
            text,
            "- Paths: each name is replaced by a hash, whose key is not kept; queries are left out. \
             Such a load runs on `builtin:` and `managed:` servers. `--keep` keeps paths and queries."
        );
    }
    let is_left_out = |(method, _): &(&String, &u64)| !output.options.methods.contains(method);
    for (method, lines) in facts.methods.iter().filter(is_left_out) {
        _ = writeln!(
            text,
            "- {} with {method}: bodies are in no log. `--methods` names the methods of \
             a load.",
            counted(*lines as usize, "request")
        );
    }
    let others = facts.methods.iter().filter(|it| !is_left_out(it) && *it.0 != "GET");
    for (method, lines) in others {
        let lines = grouped(*lines as f64);
        _ = writeln!(
            text,
            "- {lines} requests with {method}, from the model; the replay has them."
        );
    }
    let status = |status: u16| facts.statuses.get(&status).copied().unwrap_or(0);
    if status(304) > 0 {
        _ = writeln!(
            text,
            "- The validators of {} requests that were answered 304: sent again, they get the whole reply.",
            grouped(status(304) as f64)
        );
    }
    let upgrades: u64 = facts.statuses.range(..200).map(|(_, lines)| lines).sum();
    if upgrades > 0 {
        let upgrades = grouped(upgrades as f64);
        _ = writeln!(text, "- {upgrades} requests that became another protocol (1xx).");
    }
    let failures: u64 = facts.statuses.range(500..).map(|(_, lines)| lines).sum();
    if failures > 0 {
        _ = writeln!(
            text,
            "- {} failures of the server (5xx): the model expects a good reply of them.",
            grouped(failures as f64)
        );
    }
    uncounted(text, facts);
    text.push('\n');
}

/// Lines that were not read, and what there was no room for.
fn uncounted(text: &mut String, facts: &LogFacts) {
    for unreadable in &facts.unreadable {
        _ = writeln!(
            text,
            "- {}: {}, the first at `{}`.",
            counted(unreadable.lines as usize, "line"),
            unreadable.reason,
            unreadable.first
        );
    }
    if facts.late_lines > 0 {
        _ = writeln!(
            text,
            "- The order of {} that came more than a minute late: moved by {} at most.",
            counted(facts.late_lines as usize, "line"),
            span(facts.late_moved_max_s)
        );
    }
    let counts = [
        (facts.without_room, "requests of paths beyond the first 500,000 distinct ones"),
        (
            facts.left_out_resources,
            "requests of resources that are rare on their pages, from the model",
        ),
        (
            facts.sessions_cut,
            "sessions were cut, since more than 300,000 clients were there at a time",
        ),
    ];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        _ = writeln!(text, "- {} {what}.", grouped(count as f64));
    }
}

fn page_table(text: &mut String, facts: &LogFacts) {
    let mut pages: Vec<_> = facts.pages.iter().collect();
    pages.sort_by_key(|page| std::cmp::Reverse(page.views));
    _ = write!(
        text,
        "## Pages\n\n| page | path | visitors | share | paths | Zipf | think time | bytes |\n| --- | --- | \
         --- | --: | --: | --: | --- | --: |\n"
    );
    for page in pages.iter().take(PAGES_MAX) {
        let think = match (&page.think_law, page.think_mean_s) {
            (Some(law), Some(mean)) => format!("{law}, mean {}", span(mean)),
            _ => "none follows".to_owned(),
        };
        _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {think} | {} |",
            page.name,
            page.path.as_ref().map_or("", String::as_str).replace('|', "\\|"),
            page.visitor,
            percent(page.share),
            page.paths,
            page.zipf.map(|zipf| format!("{:.3}", zipf.exponent)).unwrap_or_default(),
            page.bytes_mean.map(grouped).unwrap_or_default(),
        );
    }
    if pages.len() > PAGES_MAX {
        _ = writeln!(text, "\n{} more are in `derived.json`.", pages.len() - PAGES_MAX);
    }
}

/// A time as people read it.
fn span(seconds: f64) -> String {
    match seconds {
        s if s >= 2.0 * 86_400.0 => format!("{} days", three_digits(s / 86_400.0)),
        s if s >= 2.0 * 3_600.0 => format!("{} h", three_digits(s / 3_600.0)),
        s if s >= 120.0 => format!("{} min", three_digits(s / 60.0)),
        s if s >= 1.0 => format!("{} s", three_digits(s)),
        s if s >= 1e-3 => format!("{} ms", three_digits(s * 1e3)),
        s => format!("{} \u{b5}s", three_digits(s * 1e6)),
    }
}
