//! Published systems as curves and as lines of a table of results, and two of them compared, with
//! ratios as printed and as computed. A source often rounds before it divides: then both ratios are
//! given.

use plimsoll_model::board::{BoardPrice, BoardRow, BoardSource};
use plimsoll_model::comparison::{Curve, CurveFigure, CurvePoint, PublishedSource};
use plimsoll_model::published::{PublishedComparison, PublishedFigure, PublishedPoint};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::counted;

use super::{ByteCurve, Published, PublishedError, each_once, published};
use crate::price::{Peak, Priced};

/// Marks a system of a file: `web-n440bx-1998/2-cpu-350-mhz`.
const SEPARATOR: char = '/';

pub(super) struct System<'p> {
    pub(super) label: String,
    pub(super) peak: f64,
    location: &'p str,
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
    let mut notes: Vec<_> = files[0].notes.iter().map(super::Note::cited).collect();
    for note in files[1].notes.iter().map(super::Note::cited) {
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

fn file_of(name: &str) -> Result<Published, PublishedError> {
    published(name.split(SEPARATOR).next().unwrap_or(name))
}

/// The form of a label in a selector: small letters and digits, anything else a hyphen.
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
            location: &it.place,
            points: numbered(&it.points_ops_per_s),
            processors: Some(it.processors),
            bytes: None,
        });
        let listed = self.results.iter().map(|it| System {
            label: it.label(),
            peak: it.peak_ops_per_s,
            location: &self.results_place,
            points: Vec::new(),
            processors: Some(it.processors),
            bytes: None,
        });
        let curves = self.byte_curves.iter().filter_map(|it| {
            let loads = it.clients.iter().map(|clients| counted(*clients as usize, "client"));
            let points = loads.zip(it.bytes_per_s.iter().copied()).collect();
            let (_, peak) = it.peak()?;
            let label = it.name.clone();
            let (location, processors, bytes) = (it.place.as_str(), it.processors, Some(it));
            Some(System { label, peak, location, points, processors, bytes })
        });
        configured.chain(listed).chain(curves).collect()
    }

    /// The selector of a system of this file.
    fn name_of(&self, system: &System<'_>) -> String {
        match self.systems().len() {
            1 => self.name.clone(),
            _ => format!("{}{SEPARATOR}{}", self.name, slug(&system.label)),
        }
    }

    /// The system that `selector` names in this file.
    pub(super) fn system(&self, selector: &str) -> Result<System<'_>, PublishedError> {
        let mut systems = self.systems();
        let requested = selector.split_once(SEPARATOR).map(|(_, system)| slug(system));
        let at = match &requested {
            _ if systems.is_empty() => {
                return Err(PublishedError::NoFigures { name: self.name.clone() });
            }
            Some(requested) => systems.iter().position(|system| slug(&system.label) == *requested),
            None => (systems.len() == 1).then_some(0),
        };
        match (at, requested) {
            (Some(at), _) => Ok(systems.swap_remove(at)),
            (None, requested) => Err(PublishedError::System {
                name: self.name.clone(),
                what: match requested {
                    Some(requested) => format!("it has no system {requested:?}"),
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
    let location = each_once(systems.map(|system| system.location));
    let mut exact = figure(
        format!("peak in {unit}"),
        systems.map(|system| system.peak),
        "as printed",
        location,
    );
    let [Some(one), Some(two)] = systems.map(|system| system.bytes) else {
        let of_pair = |file: &Published, [one, two]: [&System<'_>; 2]| {
            let pair = |c: &&super::Comparison| c.from == one.label && c.to == two.label;
            file.comparisons.iter().find(pair).cloned()
        };
        if files[0].name == files[1].name {
            let there = of_pair(&files[0], systems).map(|it| (it, false));
            let back = || of_pair(&files[0], [systems[1], systems[0]]).map(|it| (it, true));
            if let Some((comparison, turned)) = there.or_else(back) {
                exact.printed_ratio =
                    comparison.printed_ratio.map(|r| if turned { 1.0 / r } else { r });
                exact.printed =
                    if turned { reversed_text(&comparison.printed) } else { comparison.printed };
                exact.place = comparison.place;
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
        each_once([one.place.as_str(), &two.place]),
    );
    let claim = rival_claim(files, |rival| (rival.throughput.clone(), rival.throughput_ratio));
    if let Some((text, ratio, location)) = claim {
        (printed.printed, printed.printed_ratio, printed.place) = (text, Some(ratio), location);
    }
    vec![exact, printed]
}

/// The printed comparison of one of the two with the other, and the number inverted where needed to
/// be second over first.
fn rival_claim(
    files: &[Published; 2],
    of: impl Fn(&super::Rival) -> (String, f64),
) -> Option<(String, f64, String)> {
    let rival = |own: &Published, other: &Published| {
        let rivals = own.byte_curves.iter().filter_map(|curve| curve.rival.clone());
        rivals.into_iter().find(|rival| rival.name == other.name)
    };
    if let Some(of_second) = rival(&files[1], &files[0]) {
        let (text, ratio) = of(&of_second);
        return Some((text, ratio, of_second.place));
    }
    let of_first = rival(&files[0], &files[1])?;
    let (text, ratio) = of(&of_first);
    Some((reversed_text(&text), 1.0 / ratio, of_first.place))
}

fn reversed_text(text: &str) -> String {
    format!("the other way round: {text}")
}

/// Prices and prices per unit, where both have them.
fn prices(files: &[Published; 2], systems: [&System<'_>; 2]) -> Vec<PublishedFigure> {
    let [Some((one, first)), Some((two, second))] = systems.map(System::priced) else {
        return Vec::new();
    };
    let location = each_once([one.prices_place.as_str(), &two.prices_place]);
    let totals = [first.price, second.price];
    let mut figures =
        vec![figure("price in US $".to_owned(), totals, "sum of its lines", location)];
    let claim = rival_claim(files, |rival| {
        (rival.price_performance.clone(), rival.price_performance_ratio)
    });
    for peak in Peak::BOTH {
        let of = |priced: &Priced| priced.per_mb_per_s(peak).unwrap_or(0.0);
        let location = each_once([one.printed_price_place.as_str(), &two.printed_price_place]);
        let name = "US $ per MB/s of 2^20 bytes".to_owned();
        let mut per_unit = figure(name, [of(&first), of(&second)], peak.as_str(), location);
        if let Some((text, ratio, location)) = claim.clone().filter(|_| peak == Peak::Rounded) {
            // More money for a unit is worse: the printed figure is inverted.
            per_unit.printed = text;
            per_unit.printed_ratio = Some(1.0 / ratio);
            per_unit.place = location;
        }
        figures.push(per_unit);
    }
    figures
}

fn figure(name: String, values: [f64; 2], basis: &str, location: String) -> PublishedFigure {
    PublishedFigure {
        name,
        values,
        ratio: if values[0] > 0.0 { values[1] / values[0] } else { 0.0 },
        basis: basis.to_owned(),
        printed: String::new(),
        printed_ratio: None,
        place: location,
    }
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

/// Selects all files.
const ALL: &str = "all";

/// A published curve, and the facts that decide whether it may be drawn with others.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedCurve {
    /// Empty where the source prints no load points. No source here prints response times.
    pub curve: Curve,
    /// Suites that follow its method.
    pub suites: Vec<String>,
    /// Unit of its loads.
    pub axis_unit: String,
    /// Unit of its throughput.
    pub unit: String,
    /// The source prints no requested loads: each point is at the rate it achieved.
    pub at_achieved: bool,
}

/// The curve of a system, `NAME` of a file with one, or `NAME/SYSTEM`.
///
/// # Errors
/// When the name is not known, or not of one system.
pub fn curve(name: &str) -> Result<PublishedCurve, PublishedError> {
    let file = file_of(name)?;
    let system = file.system(name)?;
    Ok(file.curve_of(name, &system))
}

impl Published {
    fn curve_of(&self, name: &str, system: &System<'_>) -> PublishedCurve {
        let label = self.label_of(system);
        let point = |(load, throughput): (f64, f64)| CurvePoint {
            load,
            throughput: Some(CurveFigure { value: throughput, range: None }),
            ..CurvePoint::default()
        };
        let clients = system.bytes.map(|bytes| bytes.clients.iter().copied().map(f64::from));
        let points: Vec<CurvePoint> = match clients {
            Some(clients) => clients.zip(system.values()).map(point).collect(),
            // For an open load only the achieved rate is printed, not the request.
            None => system.values().map(|rate| point((rate, rate))).collect(),
        };
        let open = system.bytes.is_none() && !points.is_empty();
        let published =
            PublishedSource { name: name.to_owned(), year: self.year, source: self.source.clone() };
        PublishedCurve {
            curve: Curve { label, published: Some(published), points },
            suites: self.suites.clone(),
            axis_unit: if open { Metric::Ops.unit() } else { "clients" }.to_owned(),
            unit: self.unit.clone(),
            at_achieved: open,
        }
    }

    /// The label of a system of this file among systems of others: a configuration does not name
    /// its server.
    fn label_of(&self, system: &System<'_>) -> String {
        match self.configuration(&system.label) {
            Some(_) => format!("{}, {}", self.name, system.label),
            None => system.label.clone(),
        }
    }
}

/// A line for each system that `selector` names: `NAME`, `NAME/SYSTEM`, or `all` of all files.
/// Figures are as printed.
///
/// # Errors
/// When the name is not known.
pub fn board_rows(selector: &str) -> Result<Vec<BoardRow>, PublishedError> {
    if selector == ALL {
        let files: Result<Vec<_>, _> = super::names().map(published).collect();
        return Ok(files?.iter().flat_map(Published::board_rows).collect());
    }
    let file = file_of(selector)?;
    if selector == file.name {
        return match file.board_rows() {
            rows if rows.is_empty() => Err(PublishedError::NoFigures { name: file.name }),
            rows => Ok(rows),
        };
    }
    Ok(vec![file.board_row(&file.system(selector)?)])
}

impl Published {
    fn board_rows(&self) -> Vec<BoardRow> {
        self.systems().iter().map(|system| self.board_row(system)).collect()
    }

    fn board_row(&self, system: &System<'_>) -> BoardRow {
        let printed = system.bytes.and_then(|bytes| bytes.printed_usd_per_mb_per_s);
        let price = printed.map(|per_unit| BoardPrice {
            currency: "USD".to_owned(),
            per_unit,
            unit: "MiB/s".to_owned(),
            at_most: false,
        });
        BoardRow {
            source: BoardSource::Published(self.name_of(system)),
            date: Some(self.year.to_string()),
            system: self.label_of(system),
            suite: self.suites.join(", "),
            processors: system.processors,
            peak: Some(system.peak),
            unit: self.unit.clone(),
            price,
            ..BoardRow::default()
        }
    }
}
