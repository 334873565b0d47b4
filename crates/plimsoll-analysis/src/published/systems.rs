//! Two published systems side by side, with ratios as printed and as computed. A source often
//! rounds before it divides: then both ratios are given.

use plimsoll_model::published::{PublishedComparison, PublishedFigure, PublishedPoint};

use super::{ByteCurve, Published, PublishedError, published};
use crate::price::{Peak, Priced};

/// Marks a system of a file: `web-n440bx-1998/2-cpu-350-mhz`.
const SEPARATOR: char = '/';

pub(super) struct System<'p> {
    pub(super) label: String,
    pub(super) peak: f64,
    place: &'p str,
    /// Load points as far as they are printed: load and throughput.
    points: Vec<(String, f64)>,
    pub(super) processors: Option<u32>,
    pub(super) bytes: Option<&'p ByteCurve>,
}

impl<'p> System<'p> {
    /// Its curve with its price, where both are printed.
    fn priced(&self) -> Option<(&'p ByteCurve, Priced)> {
        Some((self.bytes?, self.bytes?.priced()?))
    }

    /// Throughput of its load points.
    pub(super) fn values(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|(_, value)| *value)
    }
}

/// Compares two systems, each `NAME` of a file with one, or `NAME/SYSTEM`. Ratios are the second
/// over the first.
///
/// # Errors
/// When a name is not known, is not of one system, or the two follow different methods.
pub fn compare(first: &str, second: &str) -> Result<PublishedComparison, PublishedError> {
    let files = [file_of(first)?, file_of(second)?];
    let [one, two] = [files[0].system(first)?, files[1].system(second)?];
    if files[0].suites != files[1].suites || files[0].unit != files[1].unit {
        return Err(PublishedError::Different {
            first: first.to_owned(),
            second: second.to_owned(),
            suites: files.each_ref().map(|file| file.suites.join(", ")).join(" and "),
        });
    }
    let mut figures = peaks(&files, [&one, &two]);
    figures.extend(prices(&files, [&one, &two]));
    let mut notes: Vec<_> = files[0].notes.iter().map(super::Note::placed).collect();
    for note in files[1].notes.iter().map(super::Note::placed) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let source = |file: &Published, system: &System<'_>| {
        format!("{}, {}: {}", file.year, system.label, file.source)
    };
    Ok(PublishedComparison {
        names: [first.to_owned(), second.to_owned()],
        sources: [source(&files[0], &one), source(&files[1], &two)],
        points: points(&one, &two),
        figures,
        notes,
    })
}

pub(super) fn file_of(name: &str) -> Result<Published, PublishedError> {
    published(name.split(SEPARATOR).next().unwrap_or(name))
}

/// What is written for a label: small letters and digits, anything else a hyphen.
fn slug(label: &str) -> String {
    let parts = label.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_lowercase()
}

impl Published {
    pub(super) fn systems(&self) -> Vec<System<'_>> {
        let numbered = |points: &[f64]| -> Vec<(String, f64)> {
            (1..).zip(points).map(|(at, value)| (format!("point {at}"), *value)).collect()
        };
        let configured = self.configurations.iter().map(|it| System {
            label: it.name.clone(),
            peak: it.peak_ops_per_s,
            place: &it.place,
            points: numbered(&it.points_ops_per_s),
            processors: Some(it.processors),
            bytes: None,
        });
        let listed = self.results.iter().map(|it| System {
            label: it.label(),
            peak: it.peak_ops_per_s,
            place: &self.results_place,
            points: Vec::new(),
            processors: Some(it.processors),
            bytes: None,
        });
        let curves = self.byte_curves.iter().filter_map(|it| {
            let loads = it.clients.iter().map(|clients| match clients {
                1 => "1 client".to_owned(),
                several => format!("{several} clients"),
            });
            let points = loads.zip(it.bytes_per_s.iter().copied()).collect();
            let (_, peak) = it.peak()?;
            let label = it.name.clone();
            let (place, processors, bytes) = (it.place.as_str(), it.processors, Some(it));
            Some(System { label, peak, place, points, processors, bytes })
        });
        configured.chain(listed).chain(curves).collect()
    }

    /// What to write for a system of this file.
    pub(super) fn name_of(&self, system: &System<'_>) -> String {
        match self.systems().len() {
            1 => self.name.clone(),
            _ => format!("{}{SEPARATOR}{}", self.name, slug(&system.label)),
        }
    }

    /// The system that `asked` names in this file.
    pub(super) fn system(&self, asked: &str) -> Result<System<'_>, PublishedError> {
        let mut systems = self.systems();
        let wanted = asked.split_once(SEPARATOR).map(|(_, system)| slug(system));
        let at = match &wanted {
            _ if systems.is_empty() => {
                return Err(PublishedError::NoFigures { name: self.name.clone() });
            }
            Some(wanted) => systems.iter().position(|system| slug(&system.label) == *wanted),
            None => (systems.len() == 1).then_some(0),
        };
        match (at, wanted) {
            (Some(at), _) => Ok(systems.swap_remove(at)),
            (None, wanted) => Err(PublishedError::System {
                name: self.name.clone(),
                what: match wanted {
                    Some(wanted) => format!("it has no system {wanted:?}"),
                    None => format!("it has {} systems", systems.len()),
                },
                systems: systems.iter().map(|it| slug(&it.label)).collect::<Vec<_>>().join(", "),
            }),
        }
    }
}

/// The peaks as printed, and rounded where the source rounds them.
fn peaks(files: &[Published; 2], systems: [&System<'_>; 2]) -> Vec<PublishedFigure> {
    let unit = &files[0].unit;
    let place = each_place(systems.map(|system| system.place));
    let mut exact =
        figure(format!("peak in {unit}"), systems.map(|system| system.peak), "as printed", place);
    let [Some(one), Some(two)] = systems.map(|system| system.bytes) else {
        let of_pair = |file: &Published, [one, two]: [&System<'_>; 2]| {
            let pair = |c: &&super::Comparison| c.from == one.label && c.to == two.label;
            file.comparisons.iter().find(pair).cloned()
        };
        if files[0].name == files[1].name {
            let there = of_pair(&files[0], systems).map(|it| (it, false));
            let back = || of_pair(&files[0], [systems[1], systems[0]]).map(|it| (it, true));
            if let Some((said, turned)) = there.or_else(back) {
                exact.printed_ratio = said.printed_ratio.map(|r| if turned { 1.0 / r } else { r });
                exact.printed = if turned { other_way(&said.printed) } else { said.printed };
                exact.place = said.place;
            }
        }
        return vec![exact];
    };
    let rounded =
        [one, two].map(|curve| curve.peak().map_or(0.0, |(_, peak)| Peak::Rounded.mb_per_s(peak)));
    let mut printed = figure(
        "peak in MB/s of 2^20 bytes".to_owned(),
        rounded,
        Peak::Rounded.as_str(),
        each_place([&one.place, &two.place]),
    );
    let said = said_of(files, |rival| (rival.throughput.clone(), rival.throughput_ratio));
    if let Some((words, ratio, place)) = said {
        (printed.printed, printed.printed_ratio, printed.place) = (words, Some(ratio), place);
    }
    vec![exact, printed]
}

/// What one of the two prints of the other, and the number turned to be second over first.
fn said_of(
    files: &[Published; 2],
    of: impl Fn(&super::Rival) -> (String, f64),
) -> Option<(String, f64, String)> {
    let rival = |own: &Published, other: &Published| {
        let rivals = own.byte_curves.iter().filter_map(|curve| curve.rival.clone());
        rivals.into_iter().find(|rival| rival.name == other.name)
    };
    if let Some(of_second) = rival(&files[1], &files[0]) {
        let (words, ratio) = of(&of_second);
        return Some((words, ratio, of_second.place));
    }
    let of_first = rival(&files[0], &files[1])?;
    let (words, ratio) = of(&of_first);
    Some((other_way(&words), 1.0 / ratio, of_first.place))
}

fn other_way(words: &str) -> String {
    format!("the other way round: {words}")
}

/// Prices and prices per unit, where both have them.
fn prices(files: &[Published; 2], systems: [&System<'_>; 2]) -> Vec<PublishedFigure> {
    let [Some((one, first)), Some((two, second))] = systems.map(System::priced) else {
        return Vec::new();
    };
    let place = each_place([&one.prices_place, &two.prices_place]);
    let totals = [first.price, second.price];
    let mut figures = vec![figure("price in US $".to_owned(), totals, "sum of its lines", place)];
    let said =
        said_of(files, |rival| (rival.price_performance.clone(), rival.price_performance_ratio));
    for peak in Peak::BOTH {
        let of = |priced: &Priced| priced.per_mb_per_s(peak).unwrap_or(0.0);
        let place = each_place([&one.printed_price_place, &two.printed_price_place]);
        let name = "US $ per MB/s of 2^20 bytes".to_owned();
        let mut per_unit = figure(name, [of(&first), of(&second)], peak.as_str(), place);
        if let Some((words, ratio, place)) = said.clone().filter(|_| peak == Peak::Rounded) {
            // More money for a unit is worse: the printed figure is the other way round.
            per_unit.printed = words;
            per_unit.printed_ratio = Some(1.0 / ratio);
            per_unit.place = place;
        }
        figures.push(per_unit);
    }
    figures
}

fn figure(name: String, values: [f64; 2], basis: &str, place: String) -> PublishedFigure {
    PublishedFigure {
        name,
        values,
        ratio: if values[0] > 0.0 { values[1] / values[0] } else { 0.0 },
        basis: basis.to_owned(),
        printed: String::new(),
        printed_ratio: None,
        place,
    }
}

fn each_place(places: [&str; 2]) -> String {
    if places[0] == places[1] { places[0].to_owned() } else { places.join("; ") }
}

/// Loads that both print.
fn points(one: &System<'_>, two: &System<'_>) -> Vec<PublishedPoint> {
    let common = one.points.iter().enumerate().filter_map(|(at, (load, value))| {
        let there = two.points.iter().position(|(other, _)| other == load)?;
        let took_part = |system: &System<'_>, at: usize| Some(system.bytes?.participating[at]);
        let both = took_part(one, at).zip(took_part(two, there));
        let values = [*value, two.points[there].1];
        (values[0] > 0.0).then(|| PublishedPoint {
            load: load.clone(),
            values,
            ratio: values[1] / values[0],
            participating: both.map(|(one, two)| [one, two]),
        })
    });
    common.collect()
}
