//! Pages without a run: a published report alone, and prices of systems side by side.

use minijinja::value::Serde;
use plimsoll_model::prices::PriceComparison;
use plimsoll_model::published::{CitedText, PublishedComparison, PublishedPage};
use serde::Serialize;

use crate::html::{ReportError, environment};
use crate::table::Table;
use crate::view::{CLOSING, PriceView, PublishedView, comparison_tables, price_comparison_table};

#[derive(Serialize)]
struct PublishedReport {
    title: String,
    /// Not named like a keyword of the templates.
    report: PublishedView,
    closing: &'static str,
}

/// One published report as a page that needs no network.
///
/// # Errors
/// When the embedded template does not render, which no report should be able to cause.
pub fn published_html(page: &PublishedPage) -> Result<String, ReportError> {
    let report = PublishedView::new(page);
    let page = PublishedReport { title: report.title.clone(), report, closing: CLOSING };
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

/// Systems side by side with the parts of each, as the inside of a page.
///
/// # Errors
/// When the embedded template does not render, which no prices should be able to cause.
pub(crate) fn price_comparison_html(all: &PriceComparison) -> Result<String, ReportError> {
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
pub(crate) fn price_comparison_text(all: &PriceComparison) -> String {
    let table = price_comparison_table(all);
    let mut out = format!("{}\n", table.caption);
    if !table.rows.is_empty() {
        out.push_str(&table.aligned());
    }
    for system in &all.systems {
        let view = PriceView::new(system);
        out.push_str(&format!("  {}: {}\n", system.name, view.claim));
        view.remarks.iter().for_each(|remark| out.push_str(&format!("    {remark}\n")));
    }
    out
}

/// Two published systems side by side as a page that needs no network.
///
/// # Errors
/// When the embedded template does not render, which no comparison should be able to cause.
pub fn published_comparison_html(all: &PublishedComparison) -> Result<String, ReportError> {
    let compared = PublishedCompared::new(all);
    let mut environment = environment()?;
    let template = include_str!("../templates/published_comparison.html");
    environment.add_template("published_comparison.html", template)?;
    Ok(environment.get_template("published_comparison.html")?.render(Serde(&compared))?)
}

/// The same for a terminal.
pub fn published_comparison_text(all: &PublishedComparison) -> String {
    let compared = PublishedCompared::new(all);
    let mut out = format!("{}\n", compared.title);
    compared.sources.iter().for_each(|source| out.push_str(&format!("  {source}\n")));
    for table in &compared.tables {
        out.push_str(&format!("\n{}:\n{}", table.caption, table.aligned()));
    }
    for note in &compared.notes {
        out.push_str(&format!("\nNote: {} ({})\n", note.text, note.place));
    }
    out
}

/// Two published systems as text in order of reading.
#[derive(Serialize)]
pub(crate) struct PublishedCompared {
    pub(crate) title: String,
    pub(crate) sources: [String; 2],
    /// Figures, then load points where both print some.
    pub(crate) tables: Vec<Table>,
    pub(crate) notes: Vec<CitedText>,
    closing: &'static str,
}

impl PublishedCompared {
    pub(crate) fn new(all: &PublishedComparison) -> Self {
        let mut tables = comparison_tables(all).to_vec();
        tables.retain(|table| !table.rows.is_empty());
        Self {
            title: all.names.join(" → "),
            sources: all.sources.clone(),
            tables,
            notes: all.notes.clone(),
            closing: CLOSING,
        }
    }
}
