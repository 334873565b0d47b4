//! The same content as text for a repository: tables in place of charts.

mod beside;

use plimsoll_model::prices::PriceComparison;
use plimsoll_model::result::RunResult;

use crate::table::Table;
use crate::view::{Beside, BesideView, CLOSING, FindingView, Findings, RunView, Section};

pub use beside::published_comparison_markdown;

/// Renders a run as Markdown with tables (GitHub's dialect). Text of the result is escaped, so that
/// nothing a server sent becomes markup.
pub fn markdown(run: &RunResult) -> String {
    markdown_beside(run, &Beside::default())
}

/// The same with what stands beside the run.
pub fn markdown_beside(run: &RunResult, beside: &Beside) -> String {
    page(run, beside, &[])
}

/// The same with pictures: `place` is where the files of [`crate::charts`] lie, as the page sees
/// them.
pub fn markdown_with_charts(run: &RunResult, beside: &Beside, place: &str) -> String {
    page(run, beside, &pictures_of(run, place))
}

fn page(run: &RunResult, beside: &Beside, pictures: &[String]) -> String {
    let mut page = MarkdownText::default();
    page.run(&RunView::new(run), &BesideView::new(beside), pictures);
    page.line("---");
    page.line(CLOSING);
    page.text
}

#[derive(Default)]
struct MarkdownText {
    text: String,
}

/// The charts that stand before the details, in their order.
fn pictures_of(run: &RunResult, place: &str) -> Vec<String> {
    let shown = [
        ("output-tokens-over-those-of-a-user.svg", "Output tokens/s over those of a user"),
        ("first-output.svg", "Time to first output over load"),
        ("throughput.svg", "Throughput over load"),
        ("response-over-throughput.svg", "Response time over throughput"),
        ("response.svg", "Response time over load"),
        ("response-over-time.svg", "Response time across the run"),
        ("ops.svg", "Ops by kind over load"),
    ];
    let charts = crate::svg::charts(run);
    let is_drawn = |file: &str| charts.iter().any(|(name, _)| name == file);
    let place = place.trim_end_matches('/').replace(['<', '>', '\n', '\r'], "");
    let drawn = shown.into_iter().filter(|(file, _)| is_drawn(file));
    drawn.map(|(file, title)| format!("![{title}](<{place}/{file}>)")).collect()
}

impl MarkdownText {
    fn line(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn heading(&mut self, depth: usize, title: &str) {
        self.line(&format!("{} {}", "#".repeat(1 + depth), escaped(title)));
    }

    fn list(&mut self, items: impl IntoIterator<Item = String>) {
        let items: Vec<_> = items.into_iter().map(|item| format!("- {item}")).collect();
        if !items.is_empty() {
            self.line(&items.join("\n"));
        }
    }

    fn run(&mut self, view: &RunView, beside: &BesideView, pictures: &[String]) {
        self.heading(0, &view.title);
        self.line(&format!("*{}*", escaped(&view.subtitle)));
        self.list(view.targets.iter().map(|t| format!("Target {}", code(t))));
        self.verdict(view);
        self.figures(view);
        self.warnings(view);
        if !view.hints.is_empty() {
            self.heading(1, "Hints");
            self.list(view.hints.iter().map(|hint| escaped(hint)));
        }
        pictures.iter().for_each(|picture| self.line(picture));
        self.capacity(view);
        if !view.points.rows.is_empty() {
            self.heading(1, "Load points");
            self.table(&view.moved);
            self.table(&view.points);
            if !view.curve.is_empty() {
                self.line(&format!("Shape of the curve: {}", escaped(&view.curve)));
            }
            if !view.points_note.is_empty() {
                self.line(&escaped(&view.points_note));
            }
            if !view.generator_note.is_empty() {
                self.line(&format!("Health of the generator: {}", escaped(&view.generator_note)));
            }
            self.table(&view.per_target);
            self.table(&view.sessions);
            self.table(&view.session_steps);
            self.limits(view);
        }
        self.generation(view);
        if !view.generator.rows.is_empty() {
            self.heading(1, "Health of the generator");
            self.table(&view.generator);
        }
        if !view.costs.is_empty() {
            self.heading(1, "What an op costs");
            self.line(&escaped(view.cost_note));
            view.costs.iter().for_each(|table| self.table(table));
        }
        if !view.resources.rows.is_empty() {
            self.heading(1, "Resources over load");
            self.table(&view.resources);
        }
        self.consumers(view);
        self.errors(view);
        if !view.percentiles.rows.is_empty() {
            self.heading(1, "Distribution of response times");
            self.table(&view.percentiles);
        }
        if !view.ops.is_empty() {
            self.heading(1, "Ops of each point");
            view.ops.iter().for_each(|table| self.table(table));
        }
        if !view.budget.rows.is_empty() {
            self.heading(1, "What the uncertainty intervals are made of");
            self.table(&view.budget);
            self.line(&escaped(view.budget_note));
        }
        if !view.probes.rows.is_empty() || !view.peak_search.is_empty() {
            self.heading(1, "Search for the peak");
            if !view.peak_search.is_empty() {
                self.line(&escaped(&view.peak_search));
            }
            self.table(&view.probes);
        }
        self.method(view);
        self.beside(beside);
        self.disclosure(view);
    }

    fn generation(&mut self, view: &RunView) {
        let all = &view.generation;
        if !all.output.rows.is_empty() || !all.goodput.rows.is_empty() {
            self.heading(1, "Generation and goodput");
        }
        [&all.output, &all.times, &all.goodput].into_iter().for_each(|table| self.table(table));
        if !all.note.is_empty() {
            self.line(&escaped(&all.note));
        }
        if let Some(endpoints) = &all.endpoints {
            self.heading(2, "By the rules of MLPerf Endpoints");
            self.line(&escaped(&endpoints.lead));
            self.table(&endpoints.points);
            self.line(&escaped(endpoints.note));
        }
    }

    fn consumers(&mut self, view: &RunView) {
        if !view.consumers.shown.is_empty() {
            self.heading(1, "Where the processor time went");
            for host in &view.consumers.shown {
                self.table(&host.consumers);
                self.table(&host.interrupts);
            }
            self.line(&escaped(view.consumers.note));
        }
        if let Some(profile) = &view.profile {
            self.heading(1, "Profile of the server");
            self.table(&profile.functions);
            self.line(&escaped(&profile.note));
        }
    }

    fn method(&mut self, view: &RunView) {
        if view.method.table.rows.is_empty() {
            return;
        }
        self.heading(1, "The method");
        self.line(&escaped(&view.method.note));
        self.table(&view.method.table);
    }

    fn verdict(&mut self, view: &RunView) {
        self.line(&format!("**{} {}**", view.symbol, escaped(&view.verdict)));
        self.findings("Connections were lost:", &view.connections);
        self.findings(view.reasons_lead, &view.reasons);
        if !view.executive.is_empty() {
            self.line(&escaped(&view.executive.join(" ")));
        }
    }

    /// Behind the headline, and folded where there is more than one.
    fn warnings(&mut self, view: &RunView) {
        if !view.gates.is_empty() {
            self.line("Conditions under which the run fails:");
            self.list(view.gates.iter().map(|(sign, text)| format!("{sign} {}", escaped(text))));
        }
        match view.warnings.first.len() + view.warnings.rest.len() {
            0 => {}
            1 => self.findings("Warning:", &view.warnings),
            n => {
                let all = view.warnings.first.iter().chain(&view.warnings.rest);
                self.folded(&format!("{n} warnings"), all);
            }
        }
    }

    fn findings(&mut self, lead: &str, findings: &Findings) {
        if findings.first.is_empty() {
            return;
        }
        self.line(lead);
        self.list(findings.first.iter().map(finding));
        if !findings.rest.is_empty() {
            let more = format!("{} more of the same at other load points", findings.rest.len());
            self.folded(&more, findings.rest.iter());
        }
    }

    /// What GitHub shows when it is clicked at.
    fn folded<'f>(&mut self, summary: &str, findings: impl Iterator<Item = &'f FindingView>) {
        self.line(&format!("<details><summary>{summary}</summary>"));
        self.list(findings.map(finding));
        self.line("</details>");
    }

    fn figures(&mut self, view: &RunView) {
        self.list(view.figures.iter().map(|f| {
            let figure = format!("{} {}", f.value, f.unit);
            let weight = if f.main { "**" } else { "" };
            format!("{}: {weight}{}{weight}", escaped(&f.label), escaped(figure.trim()))
        }));
        self.line(&escaped(&view.figures_note));
        self.list(view.facts.iter().map(|(n, v)| format!("{}: {}", escaped(n), escaped(v))));
        if !view.departures.is_empty() {
            self.line(&format!("{}:", view.departures_lead));
            self.list(view.departures.iter().map(|d| escaped(d)));
        }
        if !view.command.is_empty() {
            self.line("To repeat it:");
            self.fenced(&view.command);
            self.line(&escaped(&view.repeat_note));
        }
    }

    fn limits(&mut self, view: &RunView) {
        if !view.limit_texts.is_empty() || !view.evidence.rows.is_empty() {
            self.heading(2, "What limited each load point");
        }
        self.list(view.limit_texts.iter().map(|(place, text)| match text.is_empty() {
            true => escaped(place),
            false => format!("{}: {}", escaped(place), escaped(text)),
        }));
        self.table(&view.evidence);
    }

    fn capacity(&mut self, view: &RunView) {
        let Some(capacity) = &view.capacity else { return };
        self.heading(1, "Capacity");
        self.line(&format!("**{}**", escaped(&capacity.claim)));
        if !capacity.limit.is_empty() {
            self.line(&format!("What limited it beyond: {}", escaped(&capacity.limit)));
        }
        if !capacity.how.is_empty() {
            self.line(&escaped(&capacity.how));
        }
        self.table(&capacity.tries);
        self.line(&escaped(capacity.note));
    }

    fn errors(&mut self, view: &RunView) {
        let nothing = view.errors.rows.is_empty() && view.unexpected.rows.is_empty();
        if nothing && view.error_samples.is_empty() {
            return;
        }
        self.heading(1, "Errors");
        self.table(&view.errors);
        self.table(&view.unexpected);
        for (place, samples) in &view.error_samples {
            self.line(&format!("Samples of {}:", escaped(place)));
            self.list(samples.iter().map(|s| code(s)));
        }
    }

    fn disclosure(&mut self, view: &RunView) {
        if !view.disclosure.is_empty() || !view.not_verified.is_empty() {
            self.heading(1, "Disclosure");
        }
        self.table(&view.networks);
        view.disclosure.iter().for_each(|section| self.section(section));
        if !view.not_verified.is_empty() {
            self.heading(2, "Not verified");
            self.list(view.not_verified.iter().map(|n| escaped(n)));
        }
    }

    fn section(&mut self, section: &Section) {
        self.heading(2, &section.title);
        self.list(section.settings.iter().map(|e| {
            let note = if e.note.is_empty() { String::new() } else { format!(" ({})", e.note) };
            format!("{}: {}{}", escaped(&e.name), escaped(&e.value), escaped(&note))
        }));
        if let Some((name, content)) = &section.file {
            self.line(&format!("{}:", escaped(name)));
            self.fenced(content);
        }
    }

    /// A fence longer than any run of backticks inside.
    fn fenced(&mut self, content: &str) {
        let fence = "`".repeat(longest_ticks(content).max(2) + 1);
        self.line(&format!("{fence}\n{}\n{fence}", content.trim_end()));
    }

    fn table(&mut self, table: &Table) {
        if table.rows.is_empty() {
            return;
        }
        self.line(&format!("*{}*", escaped(&table.caption)));
        let names = table.columns.iter().map(|c| match c.unit.is_empty() {
            true => escaped(&c.name),
            false => escaped(&format!("{}, {}", c.name, c.unit)),
        });
        let rules = table.columns.iter().map(|c| if c.numeric { "---:" } else { "---" }.to_owned());
        let mut lines = vec![row(names), row(rules)];
        lines.extend(table.rows.iter().map(|r| row(r.cells.iter().map(|c| escaped(c)))));
        self.line(&lines.join("\n"));
    }
}

/// A page of another kind, in the same dialect. All text is escaped.
#[derive(Default)]
pub(crate) struct MarkdownPage(MarkdownText);

impl MarkdownPage {
    pub(crate) fn title(&mut self, title: &str) {
        self.0.heading(0, title);
    }

    pub(crate) fn section(&mut self, title: &str) {
        self.0.heading(1, title);
    }

    pub(crate) fn priced(&mut self, prices: &PriceComparison) {
        self.0.priced(prices);
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        self.0.line(&escaped(text));
    }

    pub(crate) fn emphasised(&mut self, text: &str) {
        self.0.line(&format!("*{}*", escaped(text)));
    }

    pub(crate) fn strong(&mut self, text: &str) {
        self.0.line(&format!("**{}**", escaped(text)));
    }

    pub(crate) fn items(&mut self, items: &[String]) {
        self.0.list(items.iter().map(|item| escaped(item)));
    }

    pub(crate) fn table(&mut self, table: &Table) {
        self.0.table(table);
    }

    /// What follows is shown on demand.
    pub(crate) fn fold(&mut self, summary: &str) {
        self.0.line(&format!("<details><summary>{}</summary>", escaped(summary)));
    }

    pub(crate) fn end_of_fold(&mut self) {
        self.0.line("</details>");
    }

    pub(crate) fn end(mut self, closing: &str) -> String {
        self.0.line("---");
        self.0.line(closing);
        self.0.text
    }
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

fn finding(finding: &FindingView) -> String {
    let place =
        if finding.place.is_empty() { String::new() } else { format!(" ({})", finding.place) };
    format!("**{}**{}: {}", escaped(&finding.rule), escaped(&place), escaped(&finding.text))
}

/// Characters that could begin markup are escaped; line ends become spaces.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Inline code, in which nothing else is markup.
fn code(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let ticks = "`".repeat(longest_ticks(&text) + 1);
    let room = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{room}{text}{room}{ticks}")
}

fn longest_ticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_server_cannot_become_markup() {
        assert_eq!(escaped("<b>*x*|[y]\n# z"), r"&lt;b&gt;\*x\*\|\[y\] \# z");
        assert_eq!(code("a``b"), "```a``b```");
        assert_eq!(code("`"), "`` ` ``");
    }
}
