//! What stands beside a run without being of its bundle.

use plimsoll_model::prices::PricedSystem;
use plimsoll_model::published::PublishedPage;
use serde::Serialize;

use super::price::PriceView;
use super::published::{CONTEXT, PublishedView};

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
