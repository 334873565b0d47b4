//! Sends seconds and finished load points to an OpenTelemetry collector (`--export otlp=URL`).

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

pub use address::ExportUrl;
use delivery::{Delivery, Kind};
use wire::{KeyValue, Resource};

use super::{BeginningPoint, FinishedPoint, Observer, SecondView};
use crate::failure::Failure;

/// What else to do over TLS.
const TRUST: &str = "; if its certificate is not from a public authority, trust it with \
                     OTEL_EXPORTER_OTLP_CERTIFICATE=FILE (PEM)";

struct OtlpExport {
    url: ExportUrl,
    delivery: Delivery,
    resource: Resource,
    /// Attributes of the current load point.
    point: Vec<KeyValue>,
}

pub(super) fn open(urls: &[ExportUrl]) -> Result<Vec<Box<dyn Observer>>, Failure> {
    if urls.is_empty() {
        return Ok(Vec::new());
    }
    let fields = address::fields_of_environment()?;
    let open = |url: &ExportUrl| {
        let delivery = Delivery::start(url.clone(), fields.clone())?;
        let (resource, point) = (Resource::default(), Vec::new());
        Ok(Box::new(OtlpExport { url: url.clone(), delivery, resource, point })
            as Box<dyn Observer>)
    };
    urls.iter().map(open).collect()
}

impl Observer for OtlpExport {
    fn run_begins(&mut self, run: &RunResult) {
        self.resource = message::resource(run);
    }

    fn point_begins(&mut self, point: &BeginningPoint<'_>) {
        self.point = message::point_attributes(point);
    }

    fn second(&mut self, second: &SecondView) {
        let message = message::of_second(self.resource.clone(), &self.point, second);
        self.delivery.offer(Kind::Second, message.encode_to_vec());
    }

    fn point_finished(&mut self, finished: &FinishedPoint<'_>) {
        let message = message::of_point(self.resource.clone(), finished, self.url.temporality);
        self.delivery.offer(Kind::Point, message.encode_to_vec());
    }

    fn run_finished(&mut self, _result: &RunResult, _page: &Path) {}

    fn end(self: Box<Self>) -> Vec<String> {
        let trust = if self.url.secure { TRUST } else { "" };
        let problem = self.delivery.end().map(|what| {
            format!(
                "--export {}: {what}; the bundle has them all: see that a collector listens there \
                 and takes OTLP over HTTP{trust}",
                self.url
            )
        });
        problem.into_iter().collect()
    }
}
