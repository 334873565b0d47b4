//! The same content as text for a repository: tables in place of charts.

mod supplements;

use plimsoll_model::result::RunResult;

use crate::table::Table;
use crate::view::{CLOSING, FindingView, RunView, Section, Supplements, SupplementsView};

pub use supplements::published_comparison_markdown;

/// Renders a run as Markdown with tables (GitHub's dialect). Text of the result is escaped, so that
/// nothing a server sent becomes markup.
pub fn markdown(run: &RunResult) -> String {
    markdown_with_supplements(run, &Supplements::default())
}

/// The same with supplements to the run.
pub fn markdown_with_supplements(run: &RunResult, supplements: &Supplements) -> String {
    page(run, supplements, &[])
}

/// The same with pictures: `dir` is the directory of the files of [`crate::charts`], relative to
/// the page.
pub fn markdown_with_charts(run: &RunResult, supplements: &Supplements, dir: &str) -> String {
    page(run, supplements, &pictures_of(run, dir))
}

fn page(run: &RunResult, supplements: &Supplements, pictures: &[String]) -> String {
    let mut page = MarkdownPage::default();
    page.run(&RunView::new(run), &SupplementsView::new(supplements), pictures);
    page.end(CLOSING)
}

/// A page in the making. All text is escaped.
#[derive(Default)]
pub(crate) struct MarkdownPage {
    text: String,
}

/// The charts before the details, in their order.
fn pictures_of(run: &RunResult, dir: &str) -> Vec<String> {
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
    let dir = dir.trim_end_matches('/').replace(['<', '>', '\n', '\r'], "");
    let drawn = shown.into_iter().filter(|(file, _)| is_drawn(file));
    drawn.map(|(file, title)| format!("![{title}](<{dir}/{file}>)")).collect()
}

impl MarkdownPage {
    fn line(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// The title of the page is at depth 0.
    pub(crate) fn heading(&mut self, depth: usize, title: &str) {
        self.line(&format!("{} {}", "#".repeat(1 + depth), escaped(title)));
    }

    fn list(&mut self, items: impl IntoIterator<Item = String>) {
        let items: Vec<_> = items.into_iter().map(|item| format!("- {item}")).collect();
        if !items.is_empty() {
            self.line(&items.join("\n"));
        }
    }

    pub(crate) fn items(&mut self, items: &[String]) {
        self.list(items.iter().map(|item| escaped(item)));
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        self.line(&escaped(text));
    }

    pub(crate) fn emphasised(&mut self, text: &str) {
        self.line(&format!("*{}*", escaped(text)));
    }

    pub(crate) fn strong(&mut self, text: &str) {
        self.line(&format!("**{}**", escaped(text)));
    }

    /// What follows is shown on demand.
    pub(crate) fn fold(&mut self, summary: &str) {
        self.line(&format!("<details><summary>{}</summary>", escaped(summary)));
    }

    pub(crate) fn end_of_fold(&mut self) {
        self.line("</details>");
    }

    pub(crate) fn end(mut self, closing: &str) -> String {
        self.line("---");
        self.line(closing);
        self.text
    }

    fn run(&mut self, view: &RunView, supplements: &SupplementsView, pictures: &[String]) {
        self.heading(0, &view.title);
        self.emphasised(&view.subtitle);
        self.list(view.targets.iter().map(|t| format!("Target {}", code(t))));
        self.verdict(view);
        self.figures(view);
        self.warnings(view);
        if !view.hints.is_empty() {
            self.heading(1, "Hints");
            self.items(&view.hints);
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
                self.paragraph(&view.points_note);
            }
            if !view.generator_note.is_empty() {
                self.line(&format!("Health of the generator: {}", escaped(&view.generator_note)));
            }
            self.table(&view.per_target);
            self.table(&view.sessions);
            self.table(&view.compound_calls);
            self.table(&view.journeys);
            self.table(&view.pages);
            self.table(&view.session_steps);
            self.limits(view);
        }
        self.generation(view);
        if !view.generator.rows.is_empty() {
            self.heading(1, "Health of the generator");
            self.table(&view.generator);
        }
        self.costs(view);
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
            self.paragraph(view.budget_note);
        }
        if !view.probes.rows.is_empty() || !view.peak_search.is_empty() {
            self.heading(1, "Search for the peak");
            if !view.peak_search.is_empty() {
                self.paragraph(&view.peak_search);
            }
            self.table(&view.probes);
        }
        self.method(view);
        self.supplements(supplements);
        self.disclosure(view);
    }

    fn costs(&mut self, view: &RunView) {
        if !view.costs.is_empty() {
            self.heading(1, "What an op costs");
            self.paragraph(view.cost_note);
            view.costs.iter().for_each(|table| self.table(table));
        }
        if !view.page_cache.table.rows.is_empty() {
            self.heading(1, "Memory and disks");
            self.paragraph(&view.page_cache.note);
            self.table(&view.page_cache.table);
        }
    }

    fn generation(&mut self, view: &RunView) {
        let all = &view.generation;
        if !all.output.rows.is_empty() || !all.goodput.rows.is_empty() {
            self.heading(1, "Generation and goodput");
        }
        [&all.output, &all.times, &all.goodput].into_iter().for_each(|table| self.table(table));
        if !all.note.is_empty() {
            self.paragraph(&all.note);
        }
        if let Some(endpoints) = &all.endpoints {
            self.heading(2, "By the rules of MLPerf Endpoints");
            self.paragraph(&endpoints.lead);
            self.table(&endpoints.points);
            self.paragraph(endpoints.note);
        }
    }

    fn consumers(&mut self, view: &RunView) {
        if !view.consumers.shown.is_empty() {
            self.heading(1, "Where the processor time went");
            for host in &view.consumers.shown {
                self.table(&host.consumers);
                self.table(&host.interrupts);
            }
            self.paragraph(view.consumers.note);
        }
        if let Some(profile) = &view.profile {
            self.heading(1, "Profile of the server");
            self.table(&profile.functions);
            self.paragraph(&profile.note);
        }
    }

    fn method(&mut self, view: &RunView) {
        if view.method.table.rows.is_empty() {
            return;
        }
        self.heading(1, "The method");
        self.paragraph(&view.method.note);
        self.table(&view.method.table);
    }

    fn verdict(&mut self, view: &RunView) {
        self.line(&format!("**{} {}**", view.symbol, escaped(&view.verdict)));
        self.findings("Connections were lost:", &view.connections);
        self.findings(view.reasons_lead, &view.reasons);
        if !view.executive.is_empty() {
            self.paragraph(&view.executive.join(" "));
        }
    }

    /// Behind the headline, and folded where there is more than one.
    fn warnings(&mut self, view: &RunView) {
        if !view.gates.is_empty() {
            self.line("Conditions under which the run fails:");
            self.list(view.gates.iter().map(|(sign, text)| format!("{sign} {}", escaped(text))));
        }
        match view.warnings.len() {
            0 => {}
            1 => self.findings("Warning:", &view.warnings),
            n => {
                self.fold(&format!("{n} warnings"));
                self.list(view.warnings.iter().map(finding));
                self.end_of_fold();
            }
        }
    }

    fn findings(&mut self, lead: &str, findings: &[FindingView]) {
        if !findings.is_empty() {
            self.line(lead);
            self.list(findings.iter().map(finding));
        }
    }

    fn figures(&mut self, view: &RunView) {
        self.list(view.figures.iter().map(|f| {
            let figure = format!("{} {}", f.value, f.unit);
            let weight = if f.main { "**" } else { "" };
            format!("{}: {weight}{}{weight}", escaped(&f.label), escaped(figure.trim()))
        }));
        self.paragraph(&view.figures_note);
        self.list(view.facts.iter().map(|(n, v)| format!("{}: {}", escaped(n), escaped(v))));
        if !view.departures.is_empty() {
            self.line(&format!("{}:", view.departures_lead));
            self.items(&view.departures);
        }
        if !view.command.is_empty() {
            self.line("To repeat it:");
            self.fenced(&view.command);
            self.paragraph(&view.repeat_note);
        }
    }

    fn limits(&mut self, view: &RunView) {
        if !view.limit_texts.is_empty() || !view.evidence.rows.is_empty() {
            self.heading(2, "What limited each load point");
        }
        self.list(view.limit_texts.iter().map(|(points, text)| match text.is_empty() {
            true => escaped(points),
            false => format!("{}: {}", escaped(points), escaped(text)),
        }));
        self.table(&view.evidence);
    }

    fn capacity(&mut self, view: &RunView) {
        let Some(capacity) = &view.capacity else { return };
        self.heading(1, "Capacity");
        self.strong(&capacity.claim);
        if !capacity.limit.is_empty() {
            self.line(&format!("What limited it beyond: {}", escaped(&capacity.limit)));
        }
        if !capacity.how.is_empty() {
            self.paragraph(&capacity.how);
        }
        self.table(&capacity.tries);
        self.paragraph(capacity.note);
    }

    fn errors(&mut self, view: &RunView) {
        let nothing = view.errors.rows.is_empty() && view.unexpected.rows.is_empty();
        if nothing && view.error_samples.is_empty() {
            return;
        }
        self.heading(1, "Errors");
        self.table(&view.errors);
        self.table(&view.unexpected);
        for (point, samples) in &view.error_samples {
            self.line(&format!("Samples of {}:", escaped(point)));
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
            self.items(&view.not_verified);
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

    pub(crate) fn table(&mut self, table: &Table) {
        if table.rows.is_empty() {
            return;
        }
        self.emphasised(&table.caption);
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

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

fn finding(finding: &FindingView) -> String {
    let location =
        if finding.place.is_empty() { String::new() } else { format!(" ({})", finding.place) };
    format!("**{}**{}: {}", escaped(&finding.rule), escaped(&location), escaped(&finding.text))
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
