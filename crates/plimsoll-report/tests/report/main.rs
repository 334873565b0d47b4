//! Reports as files: pages, charts, Markdown and CSV.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod browser;
mod capacity;
mod certificate;
mod charts;
mod cost;
mod disclosure;
mod documented;
mod fixture;
mod html;
mod llm;
mod page_cache;
mod supplements;
mod text;
