//! `cargo lab pictures`: the pictures of the README, from real runs, so that they stay true.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use xtask::command::{find, output, run};
use xtask::verb::Result;
use xtask::workspace;

use crate::program;

/// What the terminal shows.
const TERMINAL: &str = "run web-url managed:nginx --rate 1000,2000,4000,8000 --for 5s --warm-up 1s";
/// The run that the report shows.
const REPORT: &str = "run web-url managed:nginx --points 1,2,4,8,16,32,64 --for 5s --warm-up 1s";
/// Of a picture of the terminal.
const COLUMNS_MAX: usize = 120;
const CHARACTER: (f64, f64) = (7.8, 18.0);
/// Of the browser's window: as far as the curve.
const WINDOW: &str = "1280,1440";
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Makes both; needs nginx and a Chromium.
pub fn pictures() -> Result<()> {
    let root = workspace::root();
    let browser = BROWSERS.into_iter().find_map(find);
    let browser = browser.ok_or("no Chromium is installed; install it (apt: chromium)")?;
    let program = program::plimsoll()?;
    let folder = root.join("target/pictures");
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    let pictures = root.join("docs/pictures");
    fs::create_dir_all(&folder).map_err(failed)?;
    fs::create_dir_all(&pictures).map_err(failed)?;
    let text = shown(&program, TERMINAL, &folder, "terminal")?;
    fs::write(pictures.join("terminal.svg"), svg(&text)).map_err(failed)?;
    shown(&program, REPORT, &folder, "report")?;
    let page = format!("file://{}", folder.join("report/report.html").display());
    let picture = format!("--screenshot={}", pictures.join("report.png").display());
    let window = format!("--window-size={WINDOW}");
    let flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"];
    run(Command::new(browser).args(flags).args([window, picture, page]))
}

/// The command, run in `folder`, and what it printed.
fn shown(program: &Path, arguments: &str, folder: &Path, out: &str) -> Result<String> {
    let mut command = Command::new(program);
    // The report shows its command: no path of the machine that made it belongs there.
    command.current_dir(folder).arg0("plimsoll").args(arguments.split(' '));
    command.args(["--out", out, "--progress", "none"]);
    let text = output(&mut command)?;
    let lines = text.lines().filter(|line| !line.starts_with("Report:"));
    let lines: Vec<&str> = lines.collect();
    Ok(format!("$ plimsoll {arguments}\n{}\n", lines.join("\n").trim_end()))
}

/// A text as a terminal shows it.
fn svg(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(cut).collect();
    let columns = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let width = (columns as f64 + 4.0) * CHARACTER.0;
    let height = (lines.len() as f64 + 2.0) * CHARACTER.1;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1c2128\"/>\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let y = (number as f64 + 1.7) * CHARACTER.1;
        let colour = match number {
            0 => "#8ddb8c",
            _ => "#e6edf3",
        };
        let escaped = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{y:.0}\" fill=\"{colour}\" xml:space=\"preserve\">{escaped}</text>",
            CHARACTER.0 * 2.0
        );
    }
    out.push_str("</svg>\n");
    out
}

fn cut(line: &str) -> String {
    match line.chars().count() > COLUMNS_MAX {
        true => line.chars().take(COLUMNS_MAX - 1).chain(['…']).collect(),
        false => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_terminal_is_text_of_the_picture() {
        let picture = svg("$ plimsoll run\np99 < 50 ms & more\n");
        assert!(picture.contains(">p99 &lt; 50 ms &amp; more</text>"), "{picture}");
        assert_eq!(cut(&"x".repeat(200)).chars().count(), COLUMNS_MAX);
    }
}
