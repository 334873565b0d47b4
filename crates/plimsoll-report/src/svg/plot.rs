//! A chart of one panel: its title, its axes, and the area between them.

use super::Frame;
use super::draw::{Anchor, Drawing};
use super::scale::{Axis, Scale};

const TOP: f64 = 26.0;
const FOOT: f64 = 44.0;

/// The part of a drawing that a panel takes, with its scales.
pub(super) struct PanelArea {
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) edge: f64,
}

impl PanelArea {
    pub(super) fn pixels(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.pixel(x), self.y.pixel(y))
    }

    /// Grid and texts of the upright axis, and the marks of the other.
    pub(super) fn axes(&self, drawing: &mut Drawing, x: &Axis, y: &Axis) {
        for (number, (tick, text)) in y.ticks.iter().enumerate() {
            let at = self.y.pixel(*tick);
            let class = if number == 0 { "base" } else { "grid" };
            drawing.line(class, (self.left, at), (self.right, at));
            drawing.text("tick", (self.left - 8.0, at + 4.0), Anchor::End, text);
        }
        for (tick, _) in &x.ticks {
            let at = self.x.pixel(*tick);
            drawing.line("base", (at, self.bottom), (at, self.bottom + 4.0));
        }
    }

    /// Texts of the level axis and its name, below `bottom`.
    pub(super) fn foot(&self, drawing: &mut Drawing, (x, name): (&Axis, &str), bottom: f64) {
        let mut free = f64::NEG_INFINITY;
        for (tick, text, half) in x.texts() {
            let at = self.x.pixel(tick);
            if at - half >= free {
                drawing.text("tick", (at, bottom + 17.0), Anchor::Middle, text);
                free = at + half;
            }
        }
        drawing.text("axis-name", (self.right, bottom + 36.0), Anchor::End, name);
    }
}

/// What is around the area of a plot.
pub(super) struct Outline<'a> {
    pub(super) title: &'a str,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// Name of the level axis.
    pub(super) x_name: &'a str,
    pub(super) height: f64,
    /// Room left of the upright axis, at least, and right of the area.
    pub(super) margins: (f64, f64),
}

/// A chart of one panel under construction.
pub(super) struct Plot<'f> {
    pub(super) drawing: Drawing,
    pub(super) area: PanelArea,
    frame: Frame<'f>,
}

impl<'f> Plot<'f> {
    /// Draws title and axes.
    pub(super) fn new(frame: Frame<'f>, outline: &Outline<'_>) -> Self {
        let Outline { title, x, y, x_name, height, margins } = outline;
        let (left, right) = (y.room(margins.0), frame.width - margins.1);
        let (top, bottom, edge) = (TOP, TOP + height, frame.width);
        let (x_scale, y_scale) = (x.scale(left, right), y.scale(bottom, top));
        let area = PanelArea { x: x_scale, y: y_scale, left, right, top, bottom, edge };
        let mut drawing = Drawing::new();
        drawing.text("panel", (0.0, top - 11.0), Anchor::Start, title);
        area.axes(&mut drawing, x, y);
        area.foot(&mut drawing, (x, x_name), bottom);
        Self { drawing, area, frame }
    }

    pub(super) fn finish(self, title: &str, desc: &str) -> String {
        let size = (self.frame.width, self.area.bottom + FOOT);
        self.drawing.finish(self.frame.id, size, title, desc)
    }
}
