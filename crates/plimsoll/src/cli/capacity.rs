//! Flags of `plimsoll capacity`.

use clap::Args;
use plimsoll_model::capacity::Within;
use plimsoll_model::units::Nanos;

use super::RunArgs;
use super::values::{parse_span_arg, parse_users};

#[derive(Debug, Args)]
pub(crate) struct CapacityArgs {
    /// Limits the load must stay within, for example p99<50ms,errors<0.1% or
    /// first_output.p90<500ms,tpot.p90<50ms; figures: mean, p50, p90, p95, p99, p999, max of the
    /// response, of first_output, first_visible, chunk_gap, tpot; errors, goodput (goodput>0.95);
    /// that the load is held is a limit always
    #[arg(long, required = true, value_name = "LIMITS")]
    pub within: Within,
    /// Pause of a user between two requests: of the clients of a closed suite, taken as it is in
    /// every profile; of an open one it turns ops into users
    #[arg(long, value_name = "SPAN", value_parser = parse_span_arg)]
    pub think: Option<Nanos>,
    /// For how many users one client stands [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_users)]
    pub users_per_client: Option<f64>,
    #[command(flatten)]
    pub run: RunArgs,
}
