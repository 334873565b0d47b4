//! Draws a testbed: the agents, the segments of the network, and the systems.

use plimsoll_model::disclosure::{AgentDisclosure, Disclosure};
use plimsoll_model::inventory::{DeclaredAgent, DeclaredSystem};
use plimsoll_model::result::RunResult;

use super::Frame;
use super::draw::{Anchor, Drawing};

const NODE_HEIGHT: f64 = 46.0;
const NODE_DISTANCE: f64 = 12.0;
/// Above the first node, for the names of segments, of which every second one is higher.
const TOP: f64 = 42.0;
/// Mean width of a character of a label, in pixels.
const CHARACTER_WIDTH: f64 = 7.0;
/// Of a bold one.
const BOLD_WIDTH: f64 = 8.0;

/// A box: a host or a device.
struct Node {
    name: String,
    detail: String,
    segments: Vec<String>,
    /// Written at its line to each segment.
    speed: Option<String>,
}

/// The drawing; `None` unless a testbed names the segments of its hosts.
pub(crate) fn testbed_drawing(frame: Frame<'_>, run: &RunResult) -> Option<String> {
    let disclosure = run.disclosure.as_ref()?;
    let declared = disclosure.stated.as_ref()?;
    let left: Vec<Node> =
        declared.agent.iter().flat_map(|agent| of_agent(agent, disclosure)).collect();
    let right: Vec<Node> = declared.system.iter().map(of_system).collect();
    let mut segments: Vec<&str> = Vec::new();
    for segment in left.iter().chain(&right).flat_map(|node| &node.segments) {
        if !segments.contains(&segment.as_str()) {
            segments.push(segment);
        }
    }
    if segments.is_empty() {
        return None;
    }
    let rows = left.len().max(right.len()) as f64;
    let height = TOP + rows * (NODE_HEIGHT + NODE_DISTANCE) + 4.0;
    let plan = Plan { frame, segments: &segments };
    let mut drawing = Drawing::new();
    for (at, segment) in segments.iter().enumerate() {
        let x = plan.segment_x(at);
        drawing.line("base", (x, TOP - 6.0), (x, height - 8.0));
        let y = TOP - 12.0 - 14.0 * (at % 2) as f64;
        drawing.text("axis-name", (x, y), Anchor::Middle, segment);
    }
    for (side, nodes) in [(Side::Left, &left), (Side::Right, &right)] {
        for (row, node) in nodes.iter().enumerate() {
            plan.draw(&mut drawing, side, row, node);
        }
    }
    let title = "The testbed: hosts, segments of the network, and links";
    let names: Vec<&str> = left.iter().chain(&right).map(|node| node.name.as_str()).collect();
    let description = format!("{}, on {}", names.join(", "), segments.join(", "));
    Some(drawing.finish(frame.id, (frame.width, height), title, &description))
}

/// The agents that one table stands for.
fn of_agent(declared: &DeclaredAgent, disclosure: &Disclosure) -> Vec<Node> {
    let base = declared.at.split_once('*').map_or(declared.at.as_str(), |(base, _)| base);
    let is_one = |agent: &&AgentDisclosure| {
        agent.agent.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
    };
    let node = |agent: &AgentDisclosure| {
        let route = agent.ways.first();
        Node {
            name: agent.agent.clone(),
            detail: format!("agent on {}", agent.host),
            segments: declared.segment.clone().into_iter().collect(),
            speed: route.and_then(|it| it.speed_mbit_per_s).map(|it| format!("{it} Mbit/s")),
        }
    };
    disclosure.agents.iter().filter(is_one).map(node).collect()
}

fn of_system(system: &DeclaredSystem) -> Node {
    let facts = [system.role.as_deref(), system.hardware.as_deref(), system.monitor.as_deref()];
    Node {
        name: system.name.clone(),
        detail: facts.into_iter().flatten().collect::<Vec<_>>().join(" · "),
        segments: system.segments.clone(),
        speed: None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// Where everything is.
struct Plan<'a> {
    frame: Frame<'a>,
    segments: &'a [&'a str],
}

impl Plan<'_> {
    fn node_width(&self) -> f64 {
        (self.frame.width * 0.32).min(260.0)
    }

    fn segment_x(&self, at: usize) -> f64 {
        let (from, to) = (self.node_width(), self.frame.width - self.node_width());
        from + (to - from) * (at + 1) as f64 / (self.segments.len() + 1) as f64
    }

    fn draw(&self, drawing: &mut Drawing, side: Side, row: usize, node: &Node) {
        let width = self.node_width();
        let y = TOP + row as f64 * (NODE_HEIGHT + NODE_DISTANCE);
        let (x, edge) = match side {
            Side::Left => (1.0, width),
            Side::Right => (self.frame.width - width - 1.0, self.frame.width - width - 1.0),
        };
        for (number, segment) in node.segments.iter().enumerate() {
            let Some(at) = self.segments.iter().position(|name| name == segment) else { continue };
            // Several lines of one node lie below each other.
            let line_y = y + NODE_HEIGHT * (number + 1) as f64 / (node.segments.len() + 1) as f64;
            let end = self.segment_x(at);
            drawing.line("base", (edge, line_y), (end, line_y));
            drawing.circle("dot s1", (end, line_y), 3.2, Some(segment));
            if let Some(speed) = node.speed.as_ref().filter(|_| !self.frame.is_narrow()) {
                let anchor = if side == Side::Left { Anchor::Start } else { Anchor::End };
                drawing.text("tick", (edge + 6.0, line_y - 4.0), anchor, speed);
            }
        }
        let tip = format!("{}: {}", node.name, node.detail);
        drawing.rect("cell none", ((x, y), (width, NODE_HEIGHT)), Some(&tip));
        let room = |character_width| ((width - 12.0) / character_width) as usize;
        let (name, detail) = (room(BOLD_WIDTH), room(CHARACTER_WIDTH));
        drawing.text("name", (x + 6.0, y + 19.0), Anchor::Start, &shortened(&node.name, name));
        drawing.text("tick", (x + 6.0, y + 36.0), Anchor::Start, &shortened(&node.detail, detail));
    }
}

/// The text, cut at this number of characters.
fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters.saturating_sub(1)) {
        Some((at, _)) if text[at..].chars().count() > 1 => format!("{}…", &text[..at]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::disclosure::RouteDisclosure;
    use plimsoll_model::inventory::DeclaredFacts;

    use super::*;

    fn run(declared: DeclaredFacts) -> RunResult {
        let agent = |number| AgentDisclosure {
            agent: format!("ssh://gen#{number}"),
            host: "gen".to_owned(),
            ways: vec![RouteDisclosure {
                speed_mbit_per_s: Some(10_000),
                ..RouteDisclosure::default()
            }],
            ..AgentDisclosure::default()
        };
        let disclosure = Disclosure {
            agents: vec![agent(1), agent(2)],
            stated: Some(declared),
            ..Disclosure::default()
        };
        RunResult { disclosure: Some(disclosure), ..RunResult::default() }
    }

    fn declared(segments: &[&str]) -> DeclaredFacts {
        let segments: Vec<String> = segments.iter().map(|it| (*it).to_owned()).collect();
        let system = DeclaredSystem {
            name: "nas <1>".to_owned(),
            role: Some("server".to_owned()),
            segments: segments.clone(),
            ..DeclaredSystem::default()
        };
        let agent =
            DeclaredAgent { at: "ssh://gen*2".to_owned(), segment: segments.first().cloned() };
        DeclaredFacts { system: vec![system], agent: vec![agent], ..DeclaredFacts::default() }
    }

    #[test]
    fn hosts_segments_and_speeds_are_drawn() {
        for width in [340.0, 1000.0] {
            let frame = Frame { id: "t", width };
            let svg = testbed_drawing(frame, &run(declared(&["lan a", "lan b"]))).unwrap();
            for part in ["gen#1", "gen#2", "nas &lt;1&gt;", "lan b"] {
                assert!(svg.contains(part), "{part}: {svg}");
            }
            assert_eq!(svg.contains("10000 Mbit/s"), width > 500.0, "{svg}");
            assert_eq!(svg.matches("<circle").count(), 4, "two agents, two links of the server");
            assert!(!svg.contains("NaN") && !svg.contains("=\"-"), "{svg}");
        }
    }

    #[test]
    fn without_segments_there_is_no_drawing() {
        let frame = Frame { id: "t", width: 600.0 };
        assert_eq!(testbed_drawing(frame, &run(declared(&[]))), None);
        assert_eq!(testbed_drawing(frame, &RunResult::default()), None);
    }

    #[test]
    fn a_long_name_is_cut() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("abcdefg", 6), "abcde…");
        assert_eq!(shortened("", 0), "");
    }
}
