//! Flags for those who look on while a run goes.

use clap::Args;

#[derive(Clone, Debug, Args)]
pub(crate) struct ObserverArgs {
    /// Hand each finished load point over to a collector: otlp=http://HOST:4318 (OpenTelemetry,
    /// protobuf over HTTP); may be given often. OTEL_EXPORTER_OTLP_HEADERS holds header fields
    #[arg(long, value_name = "otlp=URL")]
    pub export: Vec<String>,
}
