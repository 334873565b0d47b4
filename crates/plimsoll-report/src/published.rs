//! Pages of what is no run: a published report alone, and prices of systems side by side.

use minijinja::value::Serde;
use plimsoll_model::prices::PriceComparison;
use plimsoll_model::published::PublishedPage;
use serde::Serialize;

use crate::html::{ReportError, environment};
use crate::table::{Column, Table};
use crate::view::{CLOSING, PriceView, PublishedView, price_comparison_table};

#[derive(Serialize)]
struct Page {
    title: String,
    /// Named apart from the templates' own words.
    report: PublishedView,
    closing: &'static str,
}

/// One published report as a page that needs no network.
///
/// # Errors
/// When the embedded template does not render, which no report should be able to cause.
pub fn published_html(page: &PublishedPage) -> Result<String, ReportError> {
    let report = PublishedView::new(page);
    let page = Page { title: report.title.clone(), report, closing: CLOSING };
    let mut environment = environment()?;
    let template = include_str!("../templates/published_page.html");
    environment.add_template("published_page.html", template)?;
    Ok(environment.get_template("published_page.html")?.render(Serde(&page))?)
}

#[derive(Serialize)]
struct Compared {
    all: Table,
    systems: Vec<PriceView>,
}

/// Systems side by side with what each is made of, as the inside of a page.
///
/// # Errors
/// When the embedded template does not render, which no prices should be able to cause.
pub fn price_comparison_html(all: &PriceComparison) -> Result<String, ReportError> {
    let compared = Compared {
        all: price_comparison_table(all),
        systems: all.systems.iter().map(PriceView::new).collect(),
    };
    let mut environment = environment()?;
    let template = include_str!("../templates/price_comparison.html");
    environment.add_template("price_comparison.html", template)?;
    Ok(environment.get_template("price_comparison.html")?.render(Serde(&compared))?)
}

/// Systems side by side for a terminal.
pub fn price_comparison_text(all: &PriceComparison) -> String {
    let table = price_comparison_table(all);
    let heading = |column: &Column| match column.unit.is_empty() {
        true => column.name.clone(),
        false => format!("{}, {}", column.name, column.unit),
    };
    let headings: Vec<String> = table.columns.iter().map(heading).collect();
    let rows = || std::iter::once(&headings).chain(table.rows.iter().map(|row| &row.cells));
    let width = |at: usize| rows().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut out = format!("{}\n", table.caption);
    for row in rows().filter(|_| !table.rows.is_empty()) {
        let cells = row.iter().zip(&table.columns).zip(&widths);
        let cells = cells.map(|((cell, column), &width)| match column.numeric {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        out.push_str(&format!("  {}\n", line.trim_end()));
    }
    for system in &all.systems {
        let view = PriceView::new(system);
        out.push_str(&format!("  {}: {}\n", system.name, view.claim));
        view.remarks.iter().for_each(|remark| out.push_str(&format!("    {remark}\n")));
    }
    out
}
