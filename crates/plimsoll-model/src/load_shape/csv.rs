//! Shapes from files: points that are joined by lines, and rates of a log by bin.

use super::{LoadShape, PhaseKind, RESOLUTION, Segment, ShapeError, check_load};
use crate::units::Nanos;

/// A file with more segments is cut into this many parts of equal length, since each phase has an
/// interval log and an entry in the result.
const PARTS_MAX: u64 = 24;
/// Lines of a file: a day by the second.
const LINES_MAX: usize = 86_401;

impl LoadShape {
    /// Points of a file with the columns `seconds,load`, joined by lines. Two points at one instant
    /// are a jump. `name` is the file's, for messages.
    ///
    /// # Errors
    /// With the line that is wrong.
    pub fn from_points(name: &str, text: &str) -> Result<Self, ShapeError> {
        let points = read_points(name, text, "load")?;
        let segments = points.windows(2).map(|pair| {
            let ((start, from), (end, to)) = (pair[0], pair[1]);
            Segment { length_ns: Nanos::from_secs_f64(end - start), from, to }
        });
        Self::from_segments(name, segments.collect())
    }

    /// Rates of a log with the columns `seconds,rate_per_s`: each is that of the bin that begins
    /// there, and the last line ends the last bin. `length` compresses the time; rates stay.
    ///
    /// # Errors
    /// With the line that is wrong.
    pub fn from_log(name: &str, text: &str, length: Option<Nanos>) -> Result<Self, ShapeError> {
        let points = read_points(name, text, "rate_per_s")?;
        let recorded = points.last().map_or(0.0, |last| last.0);
        let scale = length.map_or(1.0, |length| length.as_secs_f64() / recorded);
        let segments = points.windows(2).map(|pair| {
            let ((start, rate), (end, _)) = (pair[0], pair[1]);
            let length_ns = Nanos::from_secs_f64((end - start) * scale);
            Segment { length_ns, from: rate, to: rate }
        });
        let text = match length {
            None => format!("{name}, {recorded} s"),
            Some(length) => format!("{name}, {recorded} s played in {length}, at the same rates"),
        };
        Self::from_segments(&text, segments.collect())
    }

    fn from_segments(text: &str, segments: Vec<Segment>) -> Result<Self, ShapeError> {
        let segments: Vec<Segment> =
            segments.into_iter().filter(|it| it.length_ns > Nanos::ZERO).collect();
        let shape = Self::unphased(text, segments);
        let length = shape.length();
        if length < RESOLUTION {
            return Err(ShapeError(format!(
                "{text}: the shape lasts {length}; a second is the least"
            )));
        }
        let own = shape.segments.len() as u64 <= PARTS_MAX
            && shape.segments.iter().all(|segment| segment.length_ns >= RESOLUTION);
        let spans: Vec<(Nanos, PhaseKind)> = match own {
            true => shape.segments.iter().map(|it| (it.length_ns, kind_of(it))).collect(),
            false => shape.parts(length),
        };
        let count = spans.len();
        let named = (1..)
            .zip(spans)
            .map(|(number, (length, kind))| (format!("part {number} of {count}"), kind, length));
        shape.with_phases(named.collect())
    }

    /// Parts of equal length, and whether the load changes in each.
    fn parts(&self, length: Nanos) -> Vec<(Nanos, PhaseKind)> {
        let count = PARTS_MAX.min(length.0 / RESOLUTION.0).max(1);
        let border = |number: u64| Nanos(length.0 / count * number);
        let end = |number: u64| if number + 1 == count { length } else { border(number + 1) };
        let part = |number: u64| {
            let (from, to) = (border(number), end(number));
            let loads = self
                .timed_segments()
                .filter(|(start, it)| *start < to && *start + it.length_ns > from);
            let mut loads = loads.flat_map(|(_, it)| [it.from, it.to]);
            let first = loads.next().unwrap_or_default();
            let kind =
                if loads.all(|load| load == first) { PhaseKind::Hold } else { PhaseKind::Ramp };
            (to - from, kind)
        };
        (0..count).map(part).collect()
    }
}

fn kind_of(segment: &Segment) -> PhaseKind {
    if segment.from == segment.to { PhaseKind::Hold } else { PhaseKind::Ramp }
}

/// The points of a file in order; the first is at 0.
fn read_points(name: &str, text: &str, column: &str) -> Result<Vec<(f64, f64)>, ShapeError> {
    let wrong = |line: usize, why: String| ShapeError(format!("{name}:{line}: {why}"));
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let header = format!("seconds,{column}");
    let first = lines.next().map_or("", |(_, line)| line.trim_start_matches('\u{feff}').trim());
    if first.replace(' ', "") != header {
        return Err(wrong(1, format!("the first line names the columns: write {header}")));
    }
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (number, line) in lines {
        if number > LINES_MAX {
            return Err(wrong(number, format!("more than {LINES_MAX} lines; use longer bins")));
        }
        let number_of = |text: &str| text.trim().parse::<f64>().ok().filter(|it| it.is_finite());
        let fields = line.split_once(',');
        let point = fields.and_then(|(at, load)| Some((number_of(at)?, number_of(load)?)));
        let Some((at, load)) = point else {
            return Err(wrong(number, format!("{line:?} is not two numbers: {header}")));
        };
        let load = check_load(load).map_err(|why| wrong(number, why))?;
        match points.last() {
            None if at != 0.0 => {
                return Err(wrong(number, format!("the first point is at 0 seconds, not {at}")));
            }
            Some((before, _)) if at < *before => {
                return Err(wrong(number, format!("{at} comes after {before} s: sort by time")));
            }
            _ => points.push((at, load)),
        }
    }
    match points.len() {
        0 | 1 => Err(ShapeError(format!(
            "{name}: the shape never ends: write two lines at least, the last one at its end"
        ))),
        _ => Ok(points),
    }
}
