//! Several runs on one page: a curve each, with the way to its report.

use plimsoll_model::result::RunResult;
use serde::Serialize;

use crate::html::{Chart, ReportError, chart, environment};
use crate::svg::load_chart;
use crate::view::CLOSING;

#[derive(Serialize)]
struct OverviewPage {
    title: String,
    subtitle: String,
    runs: Vec<Run>,
    closing: &'static str,
}

#[derive(Serialize)]
struct Run {
    title: String,
    /// Its directory, below the page's.
    bundle: String,
    verdict: &'static str,
    limit: String,
    /// Named apart from the templates' own `chart`.
    chart_of: Option<Chart>,
}

/// Renders runs, each in a directory below the page's, as one page that needs no network.
///
/// # Errors
/// When the embedded template does not render, which no result should be able to cause.
pub fn overview_html(title: &str, runs: &[(String, &RunResult)]) -> Result<String, ReportError> {
    let run = |(bundle, result): &(String, &RunResult)| Run {
        title: result.suite.as_ref().map_or_else(|| bundle.clone(), |suite| suite.title.clone()),
        bundle: bundle.clone(),
        verdict: if result.verdict.valid { "Valid" } else { "Invalid" },
        limit: result.summary.limit.clone().map(sentence).unwrap_or_default(),
        chart_of: chart(&format!("load-{bundle}"), |frame| load_chart(frame, result)),
    };
    let page = OverviewPage {
        title: title.to_owned(),
        subtitle: format!("{} runs; each title leads to its report", runs.len()),
        runs: runs.iter().map(run).collect(),
        closing: CLOSING,
    };
    let mut environment = environment()?;
    environment.add_template("overview.html", include_str!("../templates/overview.html"))?;
    Ok(environment.get_template("overview.html")?.render(minijinja::value::Serde(&page))?)
}

fn sentence(text: String) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str() + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_its_link_and_nothing_is_taken_for_markup() {
        let mut result = RunResult::default();
        result.summary.limit = Some("a <core> was full".to_owned());
        let page = overview_html("Two runs", &[("a".into(), &result), ("b".into(), &result)]);
        let page = page.unwrap();
        assert!(page.contains("href=\"a/report.html\"") && page.contains("href=\"b/report.html\""));
        assert!(page.contains("A &lt;core&gt; was full."), "{page}");
    }
}
