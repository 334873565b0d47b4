//! SVG text with every string escaped and every coordinate finite.

use std::fmt::Write;

use super::scale::spread;
use crate::table::Mark;

/// Horizontal anchor of a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Corner and size, in pixels.
pub(super) type Area = ((f64, f64), (f64, f64));

/// An SVG image under construction.
pub(super) struct Drawing {
    body: String,
}

impl Drawing {
    pub(super) fn new() -> Self {
        Self { body: String::new() }
    }

    /// Wraps the marks in an accessible image.
    pub(super) fn finish(self, id: &str, size: (f64, f64), title: &str, desc: &str) -> String {
        let role = format!("role=\"img\" aria-labelledby=\"{id}-title {id}-desc\"");
        let (title, desc) = (escaped(title), escaped(desc));
        let head = format!(
            "<title id=\"{id}-title\">{title}</title><desc id=\"{id}-desc\">{desc}</desc>\n"
        );
        self.wrapped(size, &role, &head)
    }

    /// Wraps the marks in an image whose content the text next to it repeats.
    pub(super) fn finish_hidden(self, size: (f64, f64)) -> String {
        self.wrapped(size, "aria-hidden=\"true\"", "")
    }

    fn wrapped(self, (width, height): (f64, f64), role: &str, head: &str) -> String {
        let (width, height) = (coordinate(width), coordinate(height));
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" {role}>\n\
             {head}{}</svg>",
            self.body
        )
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ends = [("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)];
        self.element("line", class, &ends, None);
    }

    /// An area by its corner and size.
    pub(super) fn rect(&mut self, class: &str, (corner, size): Area, tip: Option<&str>) {
        let (width, height) = (size.0.max(0.0), size.1.max(0.0));
        let numbers = [("x", corner.0), ("y", corner.1), ("width", width), ("height", height)];
        self.element("rect", class, &numbers, tip);
    }

    /// A closed shape through these corners; an empty tip is none.
    pub(super) fn shape(&mut self, class: &str, corners: &[(f64, f64)], tip: &str) {
        self.path(class, &format!("{}Z", path_through(corners)), Some(tip));
    }

    /// Areas of one kind, each by its corner and size, as one mark.
    pub(super) fn areas(&mut self, class: &str, areas: &[Area], tip: &str) {
        if areas.is_empty() {
            return;
        }
        let mut path = String::with_capacity(areas.len() * 24);
        let c = coordinate;
        for ((x, y), (width, height)) in areas {
            let (width, height) = (c(width.max(0.0)), c(height.max(0.0)));
            let piece = format!("M{} {}h{width}v{height}h-{width}z", c(*x), c(*y));
            path.push_str(&piece);
        }
        self.path(class, &path, Some(tip));
    }

    /// A line through all points in order; nothing for fewer than two.
    pub(super) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() >= 2 {
            self.path(class, &path_through(points), None);
        }
    }

    pub(super) fn circle(&mut self, class: &str, at: (f64, f64), radius: f64, tip: Option<&str>) {
        self.element("circle", class, &[("cx", at.0), ("cy", at.1), ("r", radius)], tip);
    }

    /// A load point: a dot, a ring where it is not counted, a cross where it is invalid, so that
    /// they differ by shape, not colour alone.
    pub(super) fn point(&mut self, class: &str, (x, y): (f64, f64), mark: Mark, tip: &str) {
        const ARM: f64 = 4.5;
        match mark {
            Mark::Sound => self.circle(&format!("dot {class}"), (x, y), 3.2, Some(tip)),
            Mark::NotCounted => self.circle(&format!("ring {class}"), (x, y), 3.4, Some(tip)),
            Mark::Invalid => {
                let falling = path_through(&[(x - ARM, y - ARM), (x + ARM, y + ARM)]);
                let rising = path_through(&[(x - ARM, y + ARM), (x + ARM, y - ARM)]);
                self.path(&format!("cross {class}"), &format!("{falling}{rising}"), Some(tip));
            }
        }
    }

    /// The mark of a value above the axis: an arrow head at its upper edge.
    pub(super) fn arrow(&mut self, class: &str, (x, y): (f64, f64), tip: &str) {
        self.shape(class, &[(x, y), (x - 4.5, y + 8.0), (x + 4.5, y + 8.0)], tip);
    }

    /// Texts, each with its class and preferred position, moved apart between `top` and `bottom`.
    pub(super) fn texts_apart(
        &mut self,
        texts: &[(String, (f64, f64), String)],
        anchor: Anchor,
        spacing: f64,
        (top, bottom): (f64, f64),
    ) {
        let preferred: Vec<f64> = texts.iter().map(|(_, at, _)| at.1).collect();
        let positions = spread(&preferred, spacing, top, bottom);
        for ((class, (x, _), text), y) in texts.iter().zip(positions) {
            self.text(class, (*x, y), anchor, text);
        }
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.write(format_args!(
            "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>\n",
            coordinate(at.0),
            coordinate(at.1),
            escaped(text)
        ));
    }

    fn element(&mut self, name: &str, class: &str, numbers: &[(&str, f64)], tip: Option<&str>) {
        let numbers = numbers.iter().map(|(name, n)| format!(" {name}=\"{}\"", coordinate(*n)));
        let numbers: String = numbers.collect();
        self.write(format_args!("<{name} class=\"{class}\"{numbers}{}\n", end(name, tip)));
    }

    fn path(&mut self, class: &str, path: &str, tip: Option<&str>) {
        self.write(format_args!("<path class=\"{class}\" d=\"{path}\"{}\n", end("path", tip)));
    }

    fn write(&mut self, mark: std::fmt::Arguments<'_>) {
        self.body.write_fmt(mark).expect("a String takes all text");
    }
}

/// One decimal is a tenth of a pixel; a value that is no number is at the origin.
fn coordinate(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// The end of an element, with its tooltip inside.
fn end(name: &str, tip: Option<&str>) -> String {
    match tip {
        None => "/>".to_owned(),
        Some("") => format!("></{name}>"),
        Some(tip) => format!("><title>{}</title></{name}>", escaped(tip)),
    }
}

fn path_through(points: &[(f64, f64)]) -> String {
    let mut path = String::with_capacity(points.len() * 12);
    for (i, (x, y)) in points.iter().enumerate() {
        path.push(if i == 0 { 'M' } else { 'L' });
        path.push_str(&format!("{} {}", coordinate(*x), coordinate(*y)));
    }
    path
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_label_stays_text() {
        let mut drawing = Drawing::new();
        drawing.text("label", (0.0, f64::NAN), Anchor::Start, "<script>&\"");
        let svg = drawing.finish("c", (10.0, 10.0), "<b>", "d");
        assert!(svg.contains("&lt;script&gt;&amp;&quot;") && svg.contains("&lt;b&gt;"));
        assert!(!svg.contains("NaN"));
    }
}
