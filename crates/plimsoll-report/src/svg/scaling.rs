//! Throughput ratio and efficiency over the sizes of a server.

use plimsoll_model::scaling::{Scaling, ScalingStep};

use super::Frame;
use super::stacked::{Dot, Guide, Panel, Series, Stack, draw};
use crate::table::Mark;
use crate::text::three_digits;

/// One step has nothing to be compared with.
const STEPS_MIN: usize = 2;

/// Ratio with the line of straight growth above, efficiency below. Nothing for fewer than two steps
/// with a figure.
pub(crate) fn scaling_chart(frame: Frame<'_>, scaling: &Scaling) -> Option<String> {
    let first = scaling.steps.iter().find(|step| step.throughput.is_some())?;
    let of = |value: fn(&ScalingStep) -> Option<f64>, text: fn(f64) -> String| -> Vec<Dot> {
        let dot = |(position, step): (u32, &ScalingStep)| {
            let (x, y) = (step.value / first.value, value(step).filter(|y| y.is_finite())?);
            let mark = if step.valid { Mark::Sound } else { Mark::Invalid };
            Some(Dot { x, y, mark, position, text: text(y) })
        };
        (1..).zip(&scaling.steps).filter_map(dot).collect()
    };
    let ratio = of(|step| step.ratio, three_digits);
    let efficiency =
        of(|step| step.efficiency.map(|e| e * 100.0), |e| format!("{} %", three_digits(e)));
    if ratio.len() < STEPS_MIN {
        return None;
    }
    let loads: Vec<f64> = ratio.iter().map(|dot| dot.x).collect();
    let largest = |dots: &[Dot]| dots.iter().map(|dot| dot.y).fold(0.0, f64::max);
    let widest = loads.iter().copied().fold(0.0, f64::max);
    let panel = |title: &str, height, top: f64, class, label: &str, dots, guide| Panel {
        title: title.to_owned(),
        height,
        top,
        series: vec![Series { class, label: label.to_owned(), dots }],
        guides: Vec::from_iter(guide),
        ..Panel::default()
    };
    let straight = Some(Guide::Diagonal("straight growth"));
    let panels = vec![
        panel(
            "Throughput, times the first step",
            240.0,
            largest(&ratio).max(widest),
            "s1",
            "measured",
            ratio,
            straight,
        ),
        panel(
            "Efficiency, % of straight growth",
            130.0,
            largest(&efficiency).max(100.0),
            "s2",
            "efficiency",
            efficiency,
            None,
        ),
    ];
    let desc = "Steps whose run is invalid are crosses. The table of steps holds the same figures.";
    Some(draw(
        frame,
        &Stack {
            title: format!("Throughput and efficiency over {}", scaling.over),
            desc: desc.to_owned(),
            axis: format!("{}, times the first step", scaling.over),
            loads,
            panels,
            strip: None,
        },
    ))
}
