//! What others published of the same method, as text in order of reading; and what stands beside a
//! run without being of its bundle.

use plimsoll_model::prices::PricedSystem;
use plimsoll_model::published::{
    Placed, PublishedComparison, PublishedFigure, PublishedPage, PublishedPoint, PublishedTable,
};
use plimsoll_model::units::{grouped, grouped_with, three_digits};
use serde::Serialize;

use super::price::PriceView;
use crate::table::{Table, figures, words};
use crate::text::ABSENT;

/// Said before them in the report of a run.
pub(crate) const CONTEXT: &str = "Figures that others printed for the method this suite follows, \
    with their year. They are context and no comparison: servers, networks, clients and software \
    of that time are not those of this run, and nothing here is ranked.";

#[derive(Debug, Serialize)]
pub(crate) struct PublishedView {
    /// Year in front.
    pub(crate) title: String,
    /// As typed after `plimsoll published show`.
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) places: String,
    /// Suites here that follow its method.
    pub(crate) suites: String,
    pub(crate) method: Placed,
    pub(crate) tables: Vec<Table>,
    /// Name, value, place.
    pub(crate) disclosure: Vec<(String, String, String)>,
    pub(crate) notes: Vec<Placed>,
    pub(crate) slips: Vec<Placed>,
}

impl PublishedView {
    pub(crate) fn new(page: &PublishedPage) -> Self {
        let facts = page.disclosure.iter();
        Self {
            title: format!("{}: {}", page.year, page.title),
            name: page.name.clone(),
            source: page.source.clone(),
            places: page.places.clone(),
            suites: page.suites.join(", "),
            method: page.method.clone(),
            tables: page.tables.iter().map(table).collect(),
            disclosure: facts.map(|f| (f.name.clone(), f.value.clone(), f.place.clone())).collect(),
            notes: page.notes.clone(),
            slips: page.slips.clone(),
        }
    }
}

/// With its place behind the caption; columns that hold numbers only stand to the right.
fn table(of: &PublishedTable) -> Table {
    let caption = match of.place.is_empty() {
        true => of.name.clone(),
        false => format!("{} ({})", of.name, of.place),
    };
    let column = |(at, name): (usize, &String)| {
        let mut cells = of.rows.iter().map(|row| row[at].as_str());
        if cells.all(is_number) { figures(name, "") } else { words(name) }
    };
    let mut table = Table::new(caption, of.columns.iter().enumerate().map(column).collect());
    of.rows.iter().for_each(|row| table.push(row.clone()));
    table
}

fn is_number(cell: &str) -> bool {
    let sign = |c: char| c.is_ascii_digit() || ",.+-% ".contains(c);
    cell.is_empty() || (cell.chars().all(sign) && cell.contains(|c: char| c.is_ascii_digit()))
}

/// Figures of two published systems, and the load points that both print.
pub(crate) fn comparison_tables(all: &PublishedComparison) -> [Table; 2] {
    let mut of_figures = Table::new(
        "Figures; the ratio is the second over the first",
        vec![
            words("figure"),
            figures("first", ""),
            figures("second", ""),
            figures("ratio, computed", ""),
            words("of values"),
            words("the source says"),
            words("place"),
        ],
    );
    all.figures.iter().for_each(|figure| of_figures.push(figure_cells(figure)));
    let mut of_points = Table::new(
        "Load points that both print",
        vec![
            words("load"),
            figures("first", ""),
            figures("second", ""),
            figures("ratio, computed", ""),
            words("clients that took part"),
        ],
    );
    all.points.iter().for_each(|point| of_points.push(point_cells(point)));
    [of_figures, of_points.without_empty_columns()]
}

fn figure_cells(figure: &PublishedFigure) -> Vec<String> {
    // An amount of money for a unit has cents.
    let text = |value: f64| match figure.name.contains(" per ") {
        true => grouped_with(value, 2),
        false => grouped(value),
    };
    let [first, second] = figure.values.map(text);
    // What became less is read more easily the other way round, a small gain in percent.
    let ratio = match figure.ratio {
        less if less > 0.0 && less < 1.0 => {
            format!("× {} (÷ {})", three_digits(less), three_digits(1.0 / less))
        }
        gain if gain < 2.0 => {
            format!("× {} ({:+.1} %)", three_digits(gain), (gain - 1.0) * 100.0)
        }
        more => format!("× {}", three_digits(more)),
    };
    let texts = [figure.basis.clone(), figure.printed.clone(), figure.place.clone()];
    [figure.name.clone(), first, second, ratio].into_iter().chain(texts).collect()
}

fn point_cells(point: &PublishedPoint) -> Vec<String> {
    let [first, second] = point.values.map(grouped);
    let took_part = point.participating.map(|[one, two]| format!("{one} and {two}"));
    let ratio = format!("× {}", three_digits(point.ratio));
    vec![point.load.clone(), first, second, ratio, took_part.unwrap_or_else(|| ABSENT.to_owned())]
}

/// Of one run.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// What its system costs.
    pub price: Option<PricedSystem>,
    /// What others published of its method, in the order to show.
    pub published: Vec<PublishedPage>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct BesideView {
    pub(crate) price: Option<PriceView>,
    pub(crate) published: Vec<PublishedView>,
    pub(crate) context: &'static str,
}

impl BesideView {
    pub(crate) fn new(Beside { price, published }: &Beside) -> Self {
        Self {
            price: price.as_ref().map(PriceView::new),
            published: published.iter().map(PublishedView::new).collect(),
            context: CONTEXT,
        }
    }
}
