//! A certificate for a person.

use std::fmt::Write as _;
use std::path::PathBuf;

use plimsoll_model::certificate::{
    Certificate, CertifiedHost, ClosedCase, CrossCheck, Instrument, JudgementOutcome, NOT_VISIBLE,
    QueueCase, Reading, RunVerdict, StallCase,
};
use plimsoll_model::units::{Nanos, counted, grouped};
use plimsoll_run::certificates::made_text;

use crate::terminal::Style;

/// Broken judgements that are named in the last line.
const BROKEN_NAMED_MAX: usize = 6;

/// The full text, for the terminal.
pub(super) fn certificate(certificate: &Certificate, style: Style) -> String {
    let mut out = String::new();
    heading(&mut out, certificate, style);
    for case in &certificate.queues {
        queue(&mut out, case, style);
    }
    loops(&mut out, certificate, style);
    for warning in &certificate.warnings {
        let _ = writeln!(out, "{} {warning}", style.mixed("warning:"));
    }
    verdict(&mut out, certificate, style);
    out
}

/// The path where it is kept.
pub(super) fn kept(kept: Result<PathBuf, String>) -> String {
    match kept {
        Ok(path) => format!("Kept as {}\n", path.display()),
        Err(why) => format!("warning: the certificate is not kept: {why}\n"),
    }
}

fn heading(out: &mut String, certificate: &Certificate, style: Style) {
    let Certificate { host, instrument, floor, .. } = certificate;
    let quick = if certificate.quick { ", quick" } else { "" };
    let short = if certificate.time_share < 1.0 { ", cut short for a test" } else { "" };
    let title = format!("Calibration of plimsoll {} on {}", instrument.version, host.name);
    let build = &instrument.build;
    let _ = writeln!(
        out,
        "{}, {} ({build} build{quick}{short})",
        style.bold(&title),
        made_text(certificate.made_unix_ns)
    );
    let _ = writeln!(out, "{}", set_up(instrument));
    let _ = writeln!(out, "{}", processors(host));
    let figures: Vec<String> = floor
        .response
        .iter()
        .map(|reading| format!("{} {}", reading.statistic.name(), reading.beyond_ns))
        .collect();
    let rate = grouped(floor.rate_ops_per_s);
    let _ = writeln!(
        out,
        "There and back, beyond a service of exactly {}, {rate} ops/s: {}",
        floor.service_ns,
        figures.join(", ")
    );
    run(out, &floor.run, style);
    out.push('\n');
}

/// `Processors: governor performance, deepest C-state C6 (133 µs to wake), turbo on; vulnerable:
/// mds; mitigated: spectre_v1, spectre_v2`.
fn processors(host: &CertifiedHost) -> String {
    let governor = host.governor.as_deref().unwrap_or(NOT_VISIBLE);
    let mut settings = vec![format!("governor {governor}")];
    let (mut vulnerable, mut mitigated) = (Vec::new(), Vec::new());
    for (name, value) in &host.processor {
        match name.strip_prefix("mitigation ") {
            Some(name) if value.starts_with("Vulnerable") => vulnerable.push(name),
            Some(name) => mitigated.push(name),
            None => settings.push(format!("{name} {value}")),
        }
    }
    let mut text = format!("Processors: {}", settings.join(", "));
    for (what, names) in [("vulnerable", vulnerable), ("mitigated", mitigated)] {
        if !names.is_empty() {
            let _ = write!(text, "; {what}: {}", names.join(", "));
        }
    }
    text
}

fn set_up(instrument: &Instrument) -> String {
    let cores = |cores: &[u32]| match cores {
        [] => "any core".to_owned(),
        [one] => format!("core {one}"),
        many => {
            let list: Vec<_> = many.iter().map(u32::to_string).collect();
            format!("cores {}", list.join(", "))
        }
    };
    let workers = counted(instrument.workers as usize, "worker");
    format!(
        "{}, {workers} on {}, pacing {}; the calibrated server on {}",
        instrument.driver,
        cores(&instrument.generator_cores),
        instrument.pacing,
        cores(&instrument.server_cores)
    )
}

fn queue(out: &mut String, case: &QueueCase, style: Style) {
    let QueueCase { queue, utilisation, rate_ops_per_s, rate_error_ratio, .. } = case;
    let suffix = match case.protocol.as_str() {
        "app" => String::new(),
        other => format!(" over {other}"),
    };
    let title = format!("{queue}{suffix} at {:.0} %", utilisation * 100.0);
    let counted = case.ops_scheduled.is_none_or(|scheduled| scheduled == case.ops_due);
    let _ = writeln!(
        out,
        "{}  {} ops/s for {:.1} s, {} due {}, done {:+.2} % of due {}, served {:+.2} % {}; \
         replies left up to {} late (p99)",
        style.bold(&title),
        grouped(*rate_ops_per_s),
        case.seconds,
        grouped(case.ops_due as f64),
        mark(counted, style),
        rate_error_ratio * 100.0,
        tight(case.rate, style).trim_end(),
        case.served_error_ratio * 100.0,
        tight(case.served, style).trim_end(),
        case.server_late_p99_ns
    );
    run(out, &case.run, style);
    cross_check(out, case.witness.as_ref(), style);
    let scheduled = case.readings.iter().any(|reading| reading.schedule.is_some());
    let has_intervals = case.readings.iter().any(|reading| reading.stated.is_some());
    let mut titles = "          measured     served     apart  allowed           ".to_owned();
    if scheduled {
        titles.push_str("      due              theory     such runs have    ");
    }
    if has_intervals {
        titles.push_str("            truth     uncertainty interval");
    }
    let _ = writeln!(out, "{}", style.dim(titles.trim_end()));
    for reading in &case.readings {
        row(out, reading, style);
    }
    if case.readings.is_empty() {
        let _ = writeln!(out, "  nothing to compare: too few ops {}", mark(false, style));
    }
    for why in &case.open_because {
        let _ = writeln!(out, "  not judged: {why}");
    }
    out.push('\n');
}

fn row(out: &mut String, reading: &Reading, style: Style) {
    let cell = |span: Nanos| span.to_string();
    let _ = write!(
        out,
        "  {:<6}{:>10} {:>10} {:>9} {:>8} {}",
        reading.statistic.name(),
        cell(reading.client_ns),
        cell(reading.served_ns),
        cell(reading.error_ns()),
        cell(reading.allowed_ns),
        tight(reading.tight, style),
    );
    if let Some(schedule) = &reading.schedule {
        let (low, high) = schedule.theory_interval_ns;
        let _ = write!(
            out,
            " {:>8} {} {:>8} {:>8} – {:<8} {}",
            cell(schedule.scheduled_ns),
            tight(schedule.on_schedule, style),
            cell(schedule.theory_ns),
            cell(low),
            cell(high),
            mark(schedule.theory_held, style)
        );
    }
    if let Some(interval) = &reading.stated {
        let (low, high) = interval.interval_ns;
        // The sample shows no upper end.
        let upper = if high == Nanos::MAX { "open".to_owned() } else { cell(high) };
        let _ = write!(
            out,
            " {:>10} {:>8} – {:<8} {}",
            cell(interval.truth_ns),
            cell(low),
            upper,
            tight(interval.interval, style).trim_end()
        );
    }
    out.push('\n');
}

/// Why the run of a case is invalid, if it is.
fn run(out: &mut String, run: &RunVerdict, style: Style) {
    for reason in &run.reasons {
        let _ = writeln!(out, "  the run itself is invalid: {reason}");
    }
    if !run.held {
        let _ =
            writeln!(out, "  it did not offer the load that was asked for {}", mark(false, style));
    }
}

fn loops(out: &mut String, certificate: &Certificate, style: Style) {
    closed(out, &certificate.closed, style);
    stall(out, &certificate.stall, style);
    let punctual = &certificate.punctual;
    let limit = punctual.send_lag_p99_max_ns;
    let rates = match (punctual.highest_ops_per_s, punctual.missed_ops_per_s) {
        (Some(highest), Some(missed)) => {
            format!("up to {} ops/s, no more at {}", grouped(highest), grouped(missed))
        }
        (Some(highest), None) => format!("at {} ops/s and below", grouped(highest)),
        (None, _) => "at no rate that was tried".to_owned(),
    };
    let title = style.bold("Sends on time");
    let _ = writeln!(out, "{title}  (send lag p99 below {limit}) {rates}");
}

fn closed(out: &mut String, closed: &ClosedCase, style: Style) {
    let _ = writeln!(
        out,
        "{}  {} clients, {} ops/s × ({} + {} think): {:+.2} % of the clients {}{}",
        style.bold("Closed loop"),
        closed.clients,
        grouped(closed.ops_per_s),
        closed.response_ns,
        closed.think_ns,
        closed.error_ratio * 100.0,
        mark(closed.held, style),
        troubles(closed.troubles)
    );
    run(out, &closed.run, style);
    let (low, high) = closed.theory_interval_ops_per_s;
    let _ = writeln!(
        out,
        "  mean response {}, served {}, apart {} (allowed {}) {}\n  throughput in theory {}, such \
         runs {} – {} {}",
        closed.response_ns,
        closed.served_ns,
        Nanos(closed.response_ns.0.abs_diff(closed.served_ns.0)),
        closed.allowed_ns,
        tight(closed.tight, style).trim_end(),
        grouped(closed.theory_ops_per_s),
        grouped(low),
        grouped(high),
        tight(closed.theory, style).trim_end()
    );
    if closed.witness.is_some() {
        let _ = writeln!(
            out,
            "  think time within {} of what was asked for {}",
            closed.think_allowed_ns,
            tight(closed.think, style).trim_end()
        );
    }
    cross_check(out, closed.witness.as_ref(), style);
}

fn stall(out: &mut String, stall: &StallCase, style: Style) {
    let _ = writeln!(
        out,
        "{}  of {} in {} ops: p99 {} from due, must be {} ({:+.1} %) {}{}; from sent it would be {}",
        style.bold("Stall"),
        stall.stall_ns,
        grouped(stall.ops as f64),
        stall.p99_ns,
        stall.expected_p99_ns,
        stall.error_ratio * 100.0,
        mark(stall.held, style),
        troubles(stall.troubles),
        stall.service_p99_ns
    );
    run(out, &stall.run, style);
    cross_check(out, stall.witness.as_ref(), style);
}

/// The cross-check of counts and times in schedule and server's log.
fn cross_check(out: &mut String, checked: Option<&CrossCheck>, style: Style) {
    let Some(checked) = checked else { return };
    let outcome = |outcome: JudgementOutcome| tight(outcome, style).trim_end().to_owned();
    let mut parts = vec![format!(
        "recorded {} of {} {}",
        grouped(checked.ops_recorded as f64),
        grouped(checked.ops_expected as f64),
        outcome(checked.recorded)
    )];
    if let Some(replies) = checked.replies {
        let (replies, ended) = (grouped(replies as f64), outcome(checked.ended));
        parts.push(format!("{replies} replies left (± {}) {ended}", checked.replies_allowed));
    }
    parts.push(format!("sum {}", outcome(checked.sum)));
    let all = [
        ("send lag", "to the server", &checked.sent),
        ("until the reply came", "until it left", &checked.arrived),
    ];
    for (what, of, times) in all {
        let Some(times) = times else { continue };
        parts.push(format!(
            "{what} {}, {of} {} {}",
            times.client_ns,
            times.server_ns,
            outcome(times.judged)
        ));
    }
    let _ = writeln!(out, "  {}", parts.join("; "));
}

/// Ops that failed or were left out, if any.
fn troubles(count: u64) -> String {
    match count {
        0 => String::new(),
        1 => ", 1 op failed or was not sent".to_owned(),
        n => format!(", {} ops failed or were not sent", grouped(n as f64)),
    }
}

fn verdict(out: &mut String, certificate: &Certificate, style: Style) {
    let all = certificate.judgements();
    let broken: Vec<String> = certificate.broken().iter().map(ToString::to_string).collect();
    let open =
        all.iter().filter(|judgement| judgement.outcome == JudgementOutcome::NotJudged).count();
    let made = all.len() - open;
    let named = &broken[..broken.len().min(BROKEN_NAMED_MAX)];
    let more = match broken.len() - named.len() {
        0 => String::new(),
        more => format!("; and {more} more, marked above"),
    };
    let open = match open {
        0 => String::new(),
        1 => "; 1 was left open, the host's own pauses being in the way".to_owned(),
        n => format!("; {n} were left open, the host's own pauses being in the way"),
    };
    let _ = match broken[..] {
        [] => {
            let all = format!("All {made} judgements hold");
            writeln!(out, "{}{open}.", style.good(&all))
        }
        _ => writeln!(
            out,
            "{}: {}{more}{open}",
            style.bad(&format!("{} of {made} judgements do not hold", broken.len())),
            named.join("; ")
        ),
    };
}

fn mark(passed: bool, style: Style) -> String {
    if passed { style.good("ok") } else { style.bad("NOT") }
}

/// Padded to the widest text, without counting escape sequences.
fn tight(outcome: JudgementOutcome, style: Style) -> String {
    match outcome {
        JudgementOutcome::Held => format!("{}        ", mark(true, style)),
        JudgementOutcome::Broken => format!("{}       ", mark(false, style)),
        JudgementOutcome::NotJudged => style.mixed("not judged"),
    }
}
