//! SVG text with every string escaped and every coordinate finite.

use std::fmt::Write;

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
        let (width, height) = (coordinate(size.0), coordinate(size.1));
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" aria-labelledby=\"{id}-title {id}-desc\">\n\
             <title id=\"{id}-title\">{}</title><desc id=\"{id}-desc\">{}</desc>\n{}</svg>",
            escaped(title),
            escaped(desc),
            self.body
        )
    }

    /// Wraps the marks in an image that stands beside words which say the same.
    pub(super) fn finish_hidden(self, (width, height): (f64, f64)) -> String {
        let (width, height) = (coordinate(width), coordinate(height));
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             aria-hidden=\"true\">\n{}</svg>",
            self.body
        )
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.write(format_args!(
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n",
            coordinate(from.0),
            coordinate(from.1),
            coordinate(to.0),
            coordinate(to.1)
        ));
    }

    pub(super) fn rect(&mut self, class: &str, corner: (f64, f64), size: (f64, f64)) {
        self.write(format_args!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
            coordinate(corner.0),
            coordinate(corner.1),
            coordinate(size.0.max(0.0)),
            coordinate(size.1.max(0.0))
        ));
    }

    /// A closed shape through these corners; an empty tip is none.
    pub(super) fn shape(&mut self, class: &str, corners: &[(f64, f64)], tip: &str) {
        let mut path = String::with_capacity(corners.len() * 12);
        for (i, (x, y)) in corners.iter().enumerate() {
            path.push(if i == 0 { 'M' } else { 'L' });
            path.push_str(&format!("{} {}", coordinate(*x), coordinate(*y)));
        }
        self.write(format_args!("<path class=\"{class}\" d=\"{path}Z\">{}</path>\n", tipped(tip)));
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
        self.write(format_args!("<path class=\"{class}\" d=\"{path}\">{}</path>\n", tipped(tip)));
    }

    /// An area that tells what it stands for when pointed at.
    pub(super) fn cell(&mut self, class: &str, corner: (f64, f64), size: (f64, f64), tip: &str) {
        self.write(format_args!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">\
             <title>{}</title></rect>\n",
            coordinate(corner.0),
            coordinate(corner.1),
            coordinate(size.0.max(0.0)),
            coordinate(size.1.max(0.0)),
            escaped(tip)
        ));
    }

    /// A circle around a dot, which sets it apart from the others.
    pub(super) fn ring_around(&mut self, class: &str, at: (f64, f64), radius: f64) {
        self.write(format_args!(
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>\n",
            coordinate(at.0),
            coordinate(at.1),
            coordinate(radius)
        ));
    }

    /// A line through all points in order; nothing for fewer than two.
    pub(super) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() < 2 {
            return;
        }
        let mut path = String::with_capacity(points.len() * 12);
        for (i, (x, y)) in points.iter().enumerate() {
            path.push(if i == 0 { 'M' } else { 'L' });
            path.push_str(&coordinate(*x));
            path.push(' ');
            path.push_str(&coordinate(*y));
        }
        self.write(format_args!("<path class=\"{class}\" d=\"{path}\"/>\n"));
    }

    /// A round dot that tells its value when pointed at.
    pub(super) fn dot(&mut self, class: &str, at: (f64, f64), radius: f64, tip: &str) {
        self.write(format_args!(
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"><title>{}</title></circle>\n",
            coordinate(at.0),
            coordinate(at.1),
            coordinate(radius),
            escaped(tip)
        ));
    }

    /// The mark of an invalid point: a cross, so that it differs by shape, not colour alone.
    pub(super) fn cross(&mut self, class: &str, at: (f64, f64), tip: &str) {
        const ARM: f64 = 4.5;
        let (x, y) = at;
        let c = coordinate;
        self.write(format_args!(
            "<path class=\"{class}\" d=\"M{} {}L{} {}M{} {}L{} {}\"><title>{}</title></path>\n",
            c(x - ARM),
            c(y - ARM),
            c(x + ARM),
            c(y + ARM),
            c(x - ARM),
            c(y + ARM),
            c(x + ARM),
            c(y - ARM),
            escaped(tip)
        ));
    }

    /// The mark of a value above the axis: an arrow head at its upper edge.
    pub(super) fn arrow(&mut self, class: &str, at: (f64, f64), tip: &str) {
        let (x, y) = at;
        let c = coordinate;
        self.write(format_args!(
            "<path class=\"{class}\" d=\"M{} {}L{} {}L{} {}Z\"><title>{}</title></path>\n",
            c(x),
            c(y),
            c(x - 4.5),
            c(y + 8.0),
            c(x + 4.5),
            c(y + 8.0),
            escaped(tip)
        ));
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

    fn write(&mut self, mark: std::fmt::Arguments<'_>) {
        self.body.write_fmt(mark).expect("a String takes all text");
    }
}

/// One decimal is a tenth of a pixel; a value that is no number stands at the origin.
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

/// What a mark says when pointed at.
fn tipped(tip: &str) -> String {
    match tip {
        "" => String::new(),
        tip => format!("<title>{}</title>", escaped(tip)),
    }
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
