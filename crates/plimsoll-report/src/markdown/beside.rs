//! What stands beside a run.

use plimsoll_model::prices::PriceComparison;
use plimsoll_model::published::{Placed, PublishedComparison};

use super::{MarkdownText, code, escaped};
use crate::published::PublishedCompared;
use crate::view::{BesideView, PriceView, PublishedView, price_comparison_table};

impl MarkdownText {
    pub(super) fn beside(&mut self, beside: &BesideView) {
        if let Some(price) = &beside.price {
            self.heading(1, "Price/performance");
            self.price(price);
        }
        if !beside.published.is_empty() {
            self.heading(1, "Published results of this method");
            self.line(&escaped(beside.context));
            beside.published.iter().for_each(|report| self.published(report));
        }
    }

    /// Systems side by side, each with what it is made of.
    pub(super) fn priced(&mut self, all: &PriceComparison) {
        self.heading(1, "Price/performance");
        self.table(&price_comparison_table(all));
        for system in &all.systems {
            self.heading(2, &system.name);
            self.price(&PriceView::new(system));
        }
    }

    fn price(&mut self, price: &PriceView) {
        self.line(&format!("**{}**", escaped(&price.claim)));
        self.table(&price.ratios);
        self.list(price.facts.iter().map(|(n, v)| format!("{}: {}", escaped(n), escaped(v))));
        self.table(&price.lines);
        self.table(&price.sensitivity);
        self.list(price.remarks.iter().map(|remark| escaped(remark)));
    }

    fn published(&mut self, report: &PublishedView) {
        self.line(&format!("<details><summary>{}</summary>", escaped(&report.title)));
        self.line(&escaped(&report.source));
        self.line(&format!("{}. {}", placed(&report.method), escaped(&report.places)));
        report.tables.iter().for_each(|table| self.table(table));
        let fact = |(name, value, place): &(String, String, String)| {
            format!("{}: {} ({})", escaped(name), escaped(value), escaped(place))
        };
        self.list(report.disclosure.iter().map(fact));
        self.list(report.notes.iter().map(placed));
        let show = code(&format!("plimsoll published show {}", report.name));
        self.line(&format!("All of it: {show}"));
        self.line("</details>");
    }
}

fn placed(text: &Placed) -> String {
    format!("{} ({})", escaped(&text.text), escaped(&text.place))
}

/// Two published systems side by side.
pub fn published_comparison_markdown(all: &PublishedComparison) -> String {
    let compared = PublishedCompared::new(all);
    let mut page = MarkdownText::default();
    page.heading(0, &compared.title);
    page.list(compared.sources.iter().map(|source| escaped(source)));
    compared.tables.iter().for_each(|table| page.table(table));
    page.list(compared.notes.iter().map(placed));
    page.text
}
