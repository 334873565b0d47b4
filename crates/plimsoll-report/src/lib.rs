//! Results as HTML, Markdown and CSV. Shows what analysis derived and computes nothing: the only
//! arithmetic here positions marks in charts and formats numbers.
//!
//! | module | content |
//! | --- | --- |
//! | [`sentences`] | findings, limits, hints and nonconformities as sentences |
//! | [`html`] | one self-contained page, no network, readable without scripts |
//! | [`live_page`] | a page that a run fills while it goes |
//! | [`markdown`] | the same tables as text for a repository |
//! | [`comparison_html`] | groups of runs side by side; [`comparison_markdown`] and [`comparison_text`] |
//! | [`board_html`] | a table of results; [`board_markdown`], [`board_text`] and [`board_csv`] |
//! | [`sizing_text`] | how big a server must be, for a terminal |
//! | [`overview_html`] | several runs on one page, a curve each |
//! | [`Supplements`] | costs of a system and published results, shown with a run |
//! | [`junit`] | verdict and gates, for CI systems |
//! | [`charts`] | each chart as an SVG file of its own |
//! | [`csv`] | the numbers, unrounded, units in the headers |
//!
//! Text in a result is untrusted, since error samples contain what a server sent: it is escaped
//! in each format.

#![warn(unreachable_pub)]

mod board;
mod comparison;
mod csv;
mod html;
mod junit;
mod markdown;
mod published;
pub mod sentences;
mod sizing;
mod svg;
mod table;
mod text;
mod view;

pub use board::{board_csv, board_html, board_markdown, board_text};
pub use comparison::{comparison_html, comparison_markdown, comparison_text};
pub use csv::csv;
pub use html::{
    ReportError, html, html_body, html_body_so_far, html_with_supplements, live_page, overview_html,
};
pub use junit::{comparison_junit, junit};
pub use markdown::{
    markdown, markdown_with_charts, markdown_with_supplements, published_comparison_markdown,
};
pub use published::{published_comparison_html, published_comparison_text, published_html};
pub use sizing::sizing_text;
pub use svg::charts;
pub use table::text_columns;
pub use view::{Supplements, limit_line, limit_name, not_counted_word};
