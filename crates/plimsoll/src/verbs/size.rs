//! `plimsoll size RUN… --load N`: how big a server must be for a load.

use plimsoll_analysis::compare::RunInput;
use plimsoll_analysis::size::{price, size};
use plimsoll_model::size::{Ceilings, SizeAsked, Sizing};
use plimsoll_report::sizing_text;

use super::groups::{bundles, run_of};
use super::prices::Prices;
use crate::cli::SizeArgs;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Sizes and shows; exit code 1 where nothing is said of the load.
pub(crate) fn perform(args: &SizeArgs) -> Result<Exit, Failure> {
    let prices = Prices::read(args.prices.as_deref())?;
    let mut places = Vec::new();
    for run in &args.runs {
        places.extend(bundles(run)?);
    }
    let runs = places.iter().map(|bundle| run_of(bundle)).collect::<Result<Vec<RunInput>, _>>()?;
    let mut sizing = size(&runs, asked(args));
    if let (Some(prices), Some(first)) = (&prices, places.first()) {
        price(&mut sizing, prices.system_of(first)?);
    }
    show(&sizing, args.json);
    Ok(if sizing.refused.is_some() { Exit::Invalid } else { Exit::Valid })
}

fn asked(args: &SizeArgs) -> SizeAsked {
    SizeAsked {
        load_ops_per_s: args.load,
        within: args.within.clone(),
        headroom_ratio: args.headroom,
        think: args.think,
        stated: Ceilings {
            disk_transfers_per_s: args.disk_iops,
            disk_bytes_per_s: args.disk_rate.map(|rate| rate.0 as f64),
            adapter_bytes_per_s: args.adapter_rate.map(|rate| rate.0 as f64),
        },
    }
}

fn show(sizing: &Sizing, json: bool) {
    let text = sizing_text(sizing);
    if json {
        terminal::note(&text);
        let json = serde_json::to_string_pretty(sizing);
        terminal::print(&(json.expect("numbers and text become JSON") + "\n"));
    } else {
        terminal::print(&text);
    }
}
