//! Hands finished load points over to an OpenTelemetry collector (`--export otlp=URL`).

mod address;
mod delivery;
mod exponential;
#[cfg(test)]
mod golden;
mod message;
mod wire;

use std::path::Path;

use plimsoll_model::result::RunResult;
use prost::Message as _;

pub(crate) use address::ExportUrl;
use delivery::Delivery;

use super::{FinishedPoint, Observer, SecondView};
use crate::exit::Failure;

/// One collector.
struct OtlpExport {
    url: ExportUrl,
    delivery: Delivery,
}

/// One observer for each collector.
pub(super) fn open(urls: &[ExportUrl]) -> Result<Vec<Box<dyn Observer>>, Failure> {
    if urls.is_empty() {
        return Ok(Vec::new());
    }
    let fields = address::fields_of_environment()?;
    let open = |url: &ExportUrl| {
        let delivery = Delivery::start(url.clone(), fields.clone())?;
        Ok(Box::new(OtlpExport { url: url.clone(), delivery }) as Box<dyn Observer>)
    };
    urls.iter().map(open).collect()
}

impl Observer for OtlpExport {
    fn point_begins(&mut self, _title: &str) {}

    fn second(&mut self, _second: &SecondView) {}

    fn point_finished(&mut self, finished: &FinishedPoint<'_>) {
        self.delivery.offer(message::request(finished).encode_to_vec());
    }

    fn run_finished(&mut self, _result: &RunResult, _page: &Path) {}

    fn end(self: Box<Self>) -> Vec<String> {
        let told = self.delivery.end().map(|what| {
            format!(
                "--export {}: {what}; the bundle has them all: see that a collector listens there \
                 and takes OTLP over HTTP",
                self.url
            )
        });
        told.into_iter().collect()
    }
}
