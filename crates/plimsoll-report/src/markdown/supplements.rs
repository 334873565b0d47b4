//! Supplements to a run.

use plimsoll_model::prices::PriceComparison;
use plimsoll_model::published::{CitedText, PublishedComparison};

use super::{MarkdownPage, code, escaped};
use crate::published::PublishedCompared;
use crate::view::{PriceView, PublishedView, SupplementsView, price_comparison_table};

impl MarkdownPage {
    pub(super) fn supplements(&mut self, supplements: &SupplementsView) {
        if let Some(price) = &supplements.price {
            self.heading(1, "Price/performance");
            self.price(price);
        }
        if !supplements.published.is_empty() {
            self.heading(1, "Published results of this method");
            self.paragraph(supplements.context);
            supplements.published.iter().for_each(|report| self.published(report));
        }
    }

    /// Systems side by side, each with what it is made of.
    pub(crate) fn priced(&mut self, all: &PriceComparison) {
        self.heading(1, "Price/performance");
        self.table(&price_comparison_table(all));
        for system in &all.systems {
            self.heading(2, &system.name);
            self.price(&PriceView::new(system));
        }
    }

    fn price(&mut self, price: &PriceView) {
        self.strong(&price.claim);
        self.table(&price.ratios);
        self.list(price.facts.iter().map(|(n, v)| format!("{}: {}", escaped(n), escaped(v))));
        self.table(&price.lines);
        self.table(&price.sensitivity);
        self.items(&price.remarks);
    }

    fn published(&mut self, report: &PublishedView) {
        self.fold(&report.title);
        self.paragraph(&report.source);
        self.line(&format!("{}. {}", cited(&report.method), escaped(&report.places)));
        report.tables.iter().for_each(|table| self.table(table));
        let fact = |(name, value, location): &(String, String, String)| {
            format!("{}: {} ({})", escaped(name), escaped(value), escaped(location))
        };
        self.list(report.disclosure.iter().map(fact));
        self.list(report.notes.iter().map(cited));
        let show = code(&format!("plimsoll published show {}", report.name));
        self.line(&format!("All of it: {show}"));
        self.end_of_fold();
    }
}

fn cited(text: &CitedText) -> String {
    format!("{} ({})", escaped(&text.text), escaped(&text.place))
}

/// Two published systems side by side.
pub fn published_comparison_markdown(all: &PublishedComparison) -> String {
    let compared = PublishedCompared::new(all);
    let mut page = MarkdownPage::default();
    page.heading(0, &compared.title);
    page.list(compared.sources.iter().map(|source| escaped(source)));
    compared.tables.iter().for_each(|table| page.table(table));
    page.list(compared.notes.iter().map(cited));
    page.text
}
