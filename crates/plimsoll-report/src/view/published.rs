//! Published results of the same method, as text in order of reading; and supplements to a run that
//! are not in its bundle.

use plimsoll_model::prices::PricedSystem;
use plimsoll_model::published::{
    CitedText, PublishedComparison, PublishedFigure, PublishedPage, PublishedTable,
};
use plimsoll_model::units::{grouped, grouped_with, three_digits};
use serde::Serialize;

use super::price::PriceView;
use crate::table::{Rows, Table, figures, text_column};

/// Introduces them in the report of a run.
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
    pub(crate) method: CitedText,
    pub(crate) tables: Vec<Table>,
    /// Name, value, citation.
    pub(crate) disclosure: Vec<(String, String, String)>,
    pub(crate) notes: Vec<CitedText>,
    pub(crate) slips: Vec<CitedText>,
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

/// With its citation after the caption; columns of numbers are right-aligned.
fn table(of: &PublishedTable) -> Table {
    let caption = match of.place.is_empty() {
        true => of.name.clone(),
        false => format!("{} ({})", of.name, of.place),
    };
    let column = |(at, name): (usize, &String)| {
        let mut cells = of.rows.iter().map(|row| row[at].as_str());
        if cells.all(is_number) { figures(name, "") } else { text_column(name) }
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
    let of_figures = Rows::new("Figures; the ratio is the second over the first", &all.figures)
        .text("figure", |it| it.name.clone())
        .figures("first", "", |it| figure_text(it, 0))
        .figures("second", "", |it| figure_text(it, 1))
        .figures("ratio, computed", "", |it| ratio_text(it.ratio))
        .text("of values", |it| it.basis.clone())
        .text("the source says", |it| it.printed.clone())
        .text("place", |it| it.place.clone())
        .table();
    let of_points = Rows::new("Load points that both print", &all.points)
        .text("load", |it| it.load.clone())
        .figures("first", "", |it| grouped(it.values[0]))
        .figures("second", "", |it| grouped(it.values[1]))
        .figures("ratio, computed", "", |it| format!("× {}", three_digits(it.ratio)))
        .text("clients that took part", |it| {
            it.participating.map(|[one, two]| format!("{one} and {two}"))
        })
        .table();
    [of_figures, of_points.without_empty_columns()]
}

fn figure_text(figure: &PublishedFigure, at: usize) -> String {
    // An amount of money for a unit has cents.
    match figure.name.contains(" per ") {
        true => grouped_with(figure.values[at], 2),
        false => grouped(figure.values[at]),
    }
}

/// A decrease reads better as the inverse ratio, a small gain in percent.
fn ratio_text(ratio: f64) -> String {
    match ratio {
        less if less > 0.0 && less < 1.0 => {
            format!("× {} (÷ {})", three_digits(less), three_digits(1.0 / less))
        }
        gain if gain < 2.0 => {
            format!("× {} ({:+.1} %)", three_digits(gain), (gain - 1.0) * 100.0)
        }
        more => format!("× {}", three_digits(more)),
    }
}

/// Supplements to one run.
#[derive(Clone, Debug, Default)]
pub struct Supplements {
    /// What its system costs.
    pub price: Option<PricedSystem>,
    /// Published results of its method, in the order to show.
    pub published: Vec<PublishedPage>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct SupplementsView {
    pub(crate) price: Option<PriceView>,
    pub(crate) published: Vec<PublishedView>,
    pub(crate) context: &'static str,
}

impl SupplementsView {
    pub(crate) fn new(Supplements { price, published }: &Supplements) -> Self {
        Self {
            price: price.as_ref().map(PriceView::new),
            published: published.iter().map(PublishedView::new).collect(),
            context: CONTEXT,
        }
    }
}
