//! A load that changes during a load point: ramps, holds and pulses, points of a file, or a log.
//!
//! A shape is a sequence of linear segments. Its phases are the parts that have figures of their
//! own. The text is a list of pieces: `ramp 0..500 in 1m, hold 5m, pulse 3x for 10s, hold 5m`.

mod csv;

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::named::named;
use crate::units::{Nanos, grouped, parse_span, span_text};

/// Longest shape.
const LENGTH_MAX: Nanos = Nanos::from_secs(24 * 3_600);
/// Figures over time have this resolution, so no phase is shorter.
pub const RESOLUTION: Nanos = Nanos::from_secs(1);
/// Phases of a text: each keeps histograms and an interval log.
const PHASES_MAX: usize = 60;
/// Highest load, in ops/s, sessions/s or users.
const LOAD_MAX: f64 = 1e8;

named! {
    /// What a phase of a shape does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum PhaseKind {
        /// The load changes all the time.
        Ramp = "ramp",
        /// The load stays the same.
        Hold = "hold",
        /// The load differs for a while, and returns.
        Pulse = "pulse",
    }
}

/// A part of a shape that has figures of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPhase {
    /// `hold 500`.
    pub name: String,
    /// What it does.
    pub kind: PhaseKind,
    /// Load at its begin.
    pub from: f64,
    /// Load at its end.
    pub to: f64,
    /// Mean load.
    pub mean: f64,
    /// Begin, from the begin of the shape.
    pub start_ns: Nanos,
    /// Length.
    pub length_ns: Nanos,
}

impl LoadPhase {
    /// End, from the begin of the shape.
    pub fn end(&self) -> Nanos {
        self.start_ns + self.length_ns
    }
}

/// A part of a shape in which the load is linear.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Length.
    pub length_ns: Nanos,
    /// Load at its begin.
    pub from: f64,
    /// Load at its end.
    pub to: f64,
}

/// How a load changes: ops/s, sessions/s, or users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadShape {
    /// As the user wrote it, or where it came from.
    pub text: String,
    /// One after the other, without pauses. Every client of a worker has them.
    #[serde(serialize_with = "write_segments", deserialize_with = "read_segments")]
    pub segments: Arc<[Segment]>,
    /// Likewise.
    pub phases: Vec<LoadPhase>,
}

/// Why a text or a file is no shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShapeError(String);

impl LoadShape {
    /// Parses a list of pieces. `base` is the load before the first one, if that is given.
    ///
    /// # Errors
    /// With the piece that is wrong.
    pub fn parse(text: &str, base: Option<f64>) -> Result<Self, ShapeError> {
        let (mut segments, mut phases) = (Vec::new(), Vec::new());
        let mut sustained = base;
        for (number, piece) in (1..).zip(text.split(',')) {
            let piece = piece.trim();
            let wrong =
                |why: String| ShapeError(format!("piece {number} of the shape, {piece:?}: {why}"));
            let Piece { kind, from, to, length } = Piece::parse(piece, sustained).map_err(wrong)?;
            if length < RESOLUTION {
                let least = span_text(RESOLUTION);
                return Err(wrong(format!(
                    "too short: write {least} or more, the resolution of its figures"
                )));
            }
            if kind != PhaseKind::Pulse {
                sustained = Some(to);
            }
            let name = match kind {
                PhaseKind::Ramp => format!("ramp {}..{}", grouped(from), grouped(to)),
                _ => format!("{} {}", kind.as_str(), grouped(to)),
            };
            phases.push((name, kind, length));
            segments.push(Segment { length_ns: length, from, to });
        }
        if phases.len() > PHASES_MAX {
            return Err(ShapeError(format!(
                "the shape has {} pieces; {PHASES_MAX} have figures of their own at most: write a \
                 file with the columns seconds,load",
                phases.len()
            )));
        }
        Self::unphased(text.trim(), segments).with_phases(phases)
    }

    fn unphased(text: &str, segments: Vec<Segment>) -> Self {
        Self { text: text.to_owned(), segments: segments.into(), phases: Vec::new() }
    }

    /// Cut into phases of these names and lengths; an error where there is too much of it, or
    /// nothing.
    fn with_phases(mut self, phases: Vec<(String, PhaseKind, Nanos)>) -> Result<Self, ShapeError> {
        if self.length() > LENGTH_MAX {
            return Err(ShapeError(format!(
                "the shape lasts {}; {} is the most: shorten it, or play a log faster with --for",
                self.length(),
                span_text(LENGTH_MAX)
            )));
        }
        if self.max() <= 0.0 {
            return Err(ShapeError(
                "the shape has no load at all: write a load above 0".to_owned(),
            ));
        }
        let mut start_ns = Nanos::ZERO;
        for (name, kind, length_ns) in phases {
            let end = start_ns + length_ns;
            let (from, to) = (self.load_at(start_ns), self.load_before(end));
            let mean = self.mean(start_ns, end);
            self.phases.push(LoadPhase { name, kind, from, to, mean, start_ns, length_ns });
            start_ns = end;
        }
        Ok(self)
    }

    /// Length.
    pub fn length(&self) -> Nanos {
        Nanos(self.segments.iter().map(|segment| segment.length_ns.0).sum())
    }

    /// Highest load.
    pub fn max(&self) -> f64 {
        self.segments.iter().map(|it| it.from.max(it.to)).fold(0.0, f64::max)
    }

    /// Load at its begin.
    pub fn first_load(&self) -> f64 {
        self.segments.first().map_or(0.0, |segment| segment.from)
    }

    /// The segments with their begins.
    fn timed_segments(&self) -> impl Iterator<Item = (Nanos, &Segment)> {
        self.segments.iter().scan(Nanos::ZERO, |start, segment| {
            let own = *start;
            *start += segment.length_ns;
            Some((own, segment))
        })
    }

    /// Load at that instant, from the begin of the shape; where it jumps, that after the jump.
    fn load_at(&self, at: Nanos) -> f64 {
        let segment = self.timed_segments().find(|(start, it)| at < *start + it.length_ns);
        segment.map_or(0.0, |(start, segment)| segment.load_after(at.saturating_sub(start)))
    }

    /// Load just before that instant.
    fn load_before(&self, at: Nanos) -> f64 {
        let segment = self.timed_segments().find(|(start, it)| at <= *start + it.length_ns);
        segment.map_or(0.0, |(start, segment)| segment.load_after(at.saturating_sub(start)))
    }

    /// Mean load from one instant to another, from the begin of the shape.
    pub fn mean(&self, from: Nanos, to: Nanos) -> f64 {
        let mut sum = 0.0;
        for (start, segment) in self.timed_segments() {
            let (begin, end) = (from.max(start), to.min(start + segment.length_ns));
            if begin < end {
                let at = |it: Nanos| segment.load_after(it.saturating_sub(start));
                sum += (at(begin) + at(end)) / 2.0 * (end - begin).as_secs_f64();
            }
        }
        sum / to.saturating_sub(from).as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The first instant from `now` on at which more than `client` users are there; both from the
    /// begin of the shape, before which the load is the first one.
    pub fn next_presence(&self, client: u32, now: Nanos) -> Option<Nanos> {
        let number = f64::from(client);
        self.timed_segments().find_map(|(start, segment)| {
            if now >= start + segment.length_ns {
                return None;
            }
            let here = now.max(start);
            if segment.load_after(here - start) > number {
                return Some(here);
            }
            let rise = segment.to - segment.from;
            let crossing = (number - segment.from) / rise * segment.length_ns.as_secs_f64();
            // A nanosecond later the load is above the number.
            (segment.to > number).then(|| start + Nanos::from_secs_f64(crossing) + Nanos(1))
        })
    }
}

impl Segment {
    /// Load this long after its begin.
    fn load_after(&self, since: Nanos) -> f64 {
        let share = since.as_secs_f64() / self.length_ns.as_secs_f64().max(f64::MIN_POSITIVE);
        self.from + (self.to - self.from) * share.min(1.0)
    }
}

fn write_segments<S: Serializer>(segments: &[Segment], to: S) -> Result<S::Ok, S::Error> {
    segments.serialize(to)
}

fn read_segments<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[Segment]>, D::Error> {
    Vec::deserialize(from).map(Into::into)
}

/// One piece of a text.
struct Piece {
    kind: PhaseKind,
    from: f64,
    to: f64,
    length: Nanos,
}

impl Piece {
    /// `sustained` is the load before it, pulses apart.
    fn parse(text: &str, sustained: Option<f64>) -> Result<Self, String> {
        let (kind, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (kind, rest) = (kind.to_lowercase(), rest.trim());
        let load = |text: &str| parse_load(text, sustained);
        match kind.as_str() {
            "ramp" => {
                let (range, length) = split_length(rest, " in ", "ramp 0..500 in 1m")?;
                let (from, to) = match range.split_once("..") {
                    Some((from, to)) => (load(from)?, load(to)?),
                    None => {
                        let to = load(range.trim_start_matches("to "))?;
                        (sustained.ok_or_else(no_load_before)?, to)
                    }
                };
                Ok(Self { kind: PhaseKind::Ramp, from, to, length })
            }
            "hold" => {
                let length = parse_span(rest);
                let (load, length) = match length {
                    Some(length) => (sustained.ok_or_else(no_load_before)?, length),
                    None => {
                        let (load_text, length) = split_length(rest, " for ", "hold 5m")?;
                        (load(load_text)?, length)
                    }
                };
                Ok(Self { kind: PhaseKind::Hold, from: load, to: load, length })
            }
            "pulse" => {
                let (load_text, length) = split_length(rest, " for ", "pulse 3x for 10s")?;
                let load = load(load_text)?;
                Ok(Self { kind: PhaseKind::Pulse, from: load, to: load, length })
            }
            _ => Err("a piece is a ramp, a hold or a pulse, for example ramp 0..500 in 1m, hold \
                      5m, pulse 3x for 10s"
                .to_owned()),
        }
    }
}

fn no_load_before() -> String {
    "there is no load before it: write one, for example hold 100 for 1m, or --rate or --users as \
     well"
        .to_owned()
}

/// The load of a piece, and how long it lasts.
fn split_length<'t>(text: &'t str, word: &str, example: &str) -> Result<(&'t str, Nanos), String> {
    let Some((load, length)) = text.split_once(word) else {
        return Err(format!("it never ends: write how long it lasts, for example {example}"));
    };
    let length = parse_span(length)
        .ok_or_else(|| format!("{:?} is no time: write for example {example}", length.trim()))?;
    Ok((load.trim(), length))
}

/// A number, or a multiple of the load before.
fn parse_load(text: &str, sustained: Option<f64>) -> Result<f64, String> {
    let text = text.trim();
    let multiple = text.strip_suffix(['x', '×']);
    let number = parse_load_number(multiple.unwrap_or(text)).ok_or_else(|| {
        format!("{text:?} is no load: write a number, or 3x for three times the load before")
    })?;
    let load = match multiple {
        None => number,
        Some(_) => number * sustained.ok_or_else(no_load_before)?,
    };
    check_load(load)
}

/// A load within bounds.
fn check_load(load: f64) -> Result<f64, String> {
    match load {
        load if load < 0.0 => {
            Err(format!("the load falls below zero, to {load}: 0 is the least, no load"))
        }
        load if load > LOAD_MAX => Err(format!("the load is above {}", grouped(LOAD_MAX))),
        load => Ok(load),
    }
}

/// `500`, `2.5k`, `1M`.
fn parse_load_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let (number, factor) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => text.strip_suffix('M').map_or((text, 1.0), |number| (number, 1e6)),
    };
    let value = number.trim().parse::<f64>().ok()? * factor;
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests;
