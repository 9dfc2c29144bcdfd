//! What contains what on a platform, as nested boxes: sockets, caches, cores, processors.
//!
//! The boxes are the groups of `model::hierarchy`; the first-level caches share the box of their
//! core. Filled boxes are processors; one that this process may not use has a dashed outline and no
//! filling.

use crate::sheet::{Paint, Place, Shape, Side, tenths, text_width, wrapped};
use crate::style::{Ink, SMALL, TEXT};
use crate::svg::Figure;
use crate::words;
use model::hierarchy::{self, Group, Hierarchy, Part};
use model::{Platform, Processor};

/// Between a box and what is in it, and between neighbors.
const GAP: f64 = 7.0;
/// Height of a line of labels.
const LINE: f64 = 16.0;
/// Around everything.
const MARGIN: f64 = 14.0;
/// Wanted width over height where boxes can be arranged in several ways: fits a page.
const ASPECT: f64 = 1.3;
/// The narrowest figure, so that its title has room.
const LEAST_WIDTH: f64 = 420.0;

/// The picture of a platform as an SVG file.
pub fn svg(platform: &Platform) -> String {
    figure("platform", platform).to_svg()
}

/// The picture of a platform.
pub fn figure(id: &str, platform: &Platform) -> Figure {
    let hierarchy = Hierarchy::of(platform);
    let tops: Vec<Node> = hierarchy
        .groups
        .iter()
        .map(|g| node_of(g, hierarchy.asymmetric))
        .collect();
    let layout = Layout::of(&tops, ASPECT);

    let mut foot: Vec<String> = Vec::new();
    if platform.processors.iter().any(|p| p.online && !p.usable) {
        foot.push("dashed: not for this process".to_owned());
    }
    if !hierarchy.offline.is_empty() {
        foot.push(format!("offline: {}", hierarchy.offline));
    }
    for (part, cpus) in &hierarchy.crossing {
        foot.push(format!("across boxes: {} of {cpus}", describe(part, false)));
    }

    let width = (layout.width + 2.0 * MARGIN).max(LEAST_WIDTH);
    let mut head = vec![(platform.name.clone(), TEXT, Ink::Black, true)];
    for line in wrapped(&platform.description, SMALL, width - 2.0 * MARGIN) {
        head.push((line, SMALL, Ink::Gray, false));
    }
    let mut drawing = Drawing { shapes: Vec::new() };
    let mut y = MARGIN;
    for (text, size, ink, bold) in head {
        drawing.text(&text, (MARGIN, y + 12.0), Side::Start, (size, ink, bold));
        y += LINE + 1.0;
    }
    y += GAP;
    drawing.boxes(&tops, &layout, (MARGIN, y), 0);
    y += layout.height;
    for text in &foot {
        y += LINE + 2.0;
        drawing.text(text, (MARGIN, y), Side::Start, (SMALL, Ink::Gray, false));
    }

    Figure {
        id: id.to_owned(),
        title: format!("Processors and caches of {}", platform.name),
        description: format!(
            "Nested boxes: {}. The same as text: `warmset platform`.",
            words::spaced(&platform.summary(), ' ')
        ),
        caption: "What lies within one box shares it: a job that moves between two processors keeps what is in the \
                  innermost box that holds both."
            .to_owned(),
        width: width.ceil(),
        height: (y + MARGIN).ceil(),
        shapes: drawing.shapes,
    }
}

/// What a part is, with its sizes written as in every figure.
fn describe(part: &Part, with_line: bool) -> String {
    words::spaced(&hierarchy::describe(part, with_line), ' ')
}

/// A box in the making.
struct Node {
    labels: Vec<String>,
    look: Look,
    children: Vec<Node>,
}

#[derive(Clone, Copy, PartialEq)]
enum Look {
    /// A socket or a node.
    Place,
    /// A cache.
    Cache,
    /// A core with its first-level caches.
    Core,
    /// A processor that this process may use.
    Usable,
    /// A processor that it may not use.
    Barred,
}

/// A group as one box for each of its outer parts, and one for the core with its first-level
/// caches.
fn node_of(group: &Group, asymmetric: bool) -> Node {
    let mut levels: Vec<(Look, Vec<String>)> = Vec::new();
    let mut core: Vec<String> = Vec::new();
    let mut processor: Option<&Processor> = None;
    for part in &group.parts {
        match part {
            Part::Socket(_) | Part::Node(_) => {
                levels.push((Look::Place, vec![describe(part, false)]))
            }
            Part::Cache(c) if c.level > 1 => {
                levels.push((Look::Cache, vec![describe(part, false)]))
            }
            Part::Cache(_) => core.push(describe(part, false)),
            // The core's own name stands first.
            Part::Core(_) => core.insert(0, describe(part, false)),
            Part::Processor(p) => processor = Some(p),
        }
    }
    if !core.is_empty() {
        let capacity = members(group).into_iter().find_map(|p| p.capacity);
        if let (true, Some(capacity)) = (asymmetric, capacity) {
            core.push(format!("capacity {capacity}"));
        }
        levels.push((Look::Core, core));
    }
    let mut children: Vec<Node> = group
        .children
        .iter()
        .map(|g| node_of(g, asymmetric))
        .collect();
    if let Some(p) = processor {
        children.push(Node {
            labels: vec![format!("P{}", p.id)],
            look: if p.usable { Look::Usable } else { Look::Barred },
            children: Vec::new(),
        });
    }
    for (look, labels) in levels.into_iter().rev() {
        children = vec![Node {
            labels,
            look,
            children,
        }];
    }
    match children.pop() {
        Some(only) if children.is_empty() => only,
        last => {
            // A group without a name of its own: no such part exists, but its contents must not be
            // lost.
            children.extend(last);
            Node {
                labels: Vec::new(),
                look: Look::Place,
                children,
            }
        }
    }
}

fn members(group: &Group) -> Vec<&Processor> {
    let own = group.parts.iter().filter_map(|p| match p {
        Part::Processor(p) => Some(p),
        _ => None,
    });
    own.chain(group.children.iter().flat_map(members)).collect()
}

impl Node {
    fn is_processor(&self) -> bool {
        matches!(self.look, Look::Usable | Look::Barred)
    }
    /// Height of the labels.
    fn head(&self) -> f64 {
        self.labels.len() as f64 * LINE + 2.0
    }
    /// Size of the box with what is in it.
    fn size(&self, inner: &Layout) -> (f64, f64) {
        let labels = self.labels.iter().map(|l| text_width(l, SMALL));
        let text = labels.fold(0.0_f64, f64::max);
        if self.is_processor() {
            return (text.max(22.0) + 12.0, 24.0);
        }
        (
            text.max(inner.width) + 2.0 * GAP,
            self.head() + 2.0 * GAP + inner.height,
        )
    }
}

/// Where the boxes of one parent stand: in rows, each box as wide as it must be and as high as its
/// row.
struct Layout {
    width: f64,
    height: f64,
    /// Left, top, width and height of each box, from the upper left corner of all.
    places: Vec<[f64; 4]>,
    inner: Vec<Layout>,
}

impl Layout {
    /// Arranges boxes so that they fit a sheet of this aspect best.
    fn of(nodes: &[Node], aspect: f64) -> Layout {
        let inner: Vec<Layout> = nodes.iter().map(|n| Layout::of(&n.children, 1.6)).collect();
        let sizes: Vec<(f64, f64)> = nodes.iter().zip(&inner).map(|(n, l)| n.size(l)).collect();
        // A sheet is as wide as the first box, the first two, and so on; the widest one comes first
        // among equals.
        let mut widths: Vec<f64> = sizes
            .iter()
            .scan(0.0, |sum, (w, _)| {
                *sum += w + GAP;
                Some(*sum)
            })
            .collect();
        widths.reverse();
        let best = widths
            .into_iter()
            .map(|width| Rows::of(&sizes, width))
            .min_by(|a, b| a.cost(aspect).total_cmp(&b.cost(aspect)))
            .unwrap_or_default();
        Layout {
            width: best.width,
            height: best.height,
            places: best.places,
            inner,
        }
    }
}

/// Boxes in rows.
#[derive(Default)]
struct Rows {
    width: f64,
    height: f64,
    narrowest: f64,
    places: Vec<[f64; 4]>,
}

impl Rows {
    /// Fills rows of at most this width, in order.
    fn of(sizes: &[(f64, f64)], limit: f64) -> Rows {
        let mut rows = Rows {
            narrowest: f64::INFINITY,
            ..Rows::default()
        };
        let (mut first, mut left, mut top) = (0, 0.0_f64, 0.0);
        for (index, (w, _)) in sizes.iter().enumerate() {
            if index > first && left + w > limit {
                top = rows.close(sizes, first, left, top);
                (first, left) = (index, 0.0);
            }
            rows.places.push([left, top, *w, 0.0]);
            left += w + GAP;
        }
        rows.close(sizes, first, left, top);
        rows
    }

    /// Makes the boxes of the last row equally high; gives the top of the next one.
    fn close(&mut self, sizes: &[(f64, f64)], first: usize, left: f64, top: f64) -> f64 {
        let row = &mut self.places[first..];
        let height = sizes[first..first + row.len()]
            .iter()
            .fold(0.0_f64, |h, size| h.max(size.1));
        for place in row {
            place[3] = height;
        }
        self.width = self.width.max(left - GAP);
        self.narrowest = self.narrowest.min(left - GAP);
        self.height = top + height;
        top + height + GAP
    }

    /// The size of the sheet, worse for a row that stays half empty: a gap looks like a missing
    /// part.
    fn cost(&self, aspect: f64) -> f64 {
        let ragged = if self.narrowest < 0.7 * self.width {
            1.4
        } else {
            1.0
        };
        (self.width / aspect).max(self.height) * ragged
    }
}

struct Drawing {
    shapes: Vec<Shape>,
}

impl Drawing {
    fn boxes(&mut self, nodes: &[Node], layout: &Layout, (x, y): (f64, f64), depth: usize) {
        for ((node, inner), [left, top, w, h]) in
            nodes.iter().zip(&layout.inner).zip(&layout.places)
        {
            self.one(node, inner, (x + left, y + top), (*w, *h), depth);
        }
    }

    fn one(
        &mut self,
        node: &Node,
        inner: &Layout,
        (x, y): (f64, f64),
        (w, h): (f64, f64),
        depth: usize,
    ) {
        let corners = [(x, y), (x + w, y), (x + w, y + h), (x, y + h)].map(place);
        // Light and dark by turns, so that nesting reads without the outlines too.
        let turn = if depth.is_multiple_of(2) {
            Ink::Wash
        } else {
            Ink::Paper
        };
        let (fill, outline, width, dash) = match node.look {
            Look::Usable => (Ink::Blue, Ink::Blue, 10, ""),
            Look::Barred => (Ink::Paper, Ink::Gray, 10, "3 2"),
            Look::Place => (turn, Ink::Gray, 16, ""),
            Look::Cache | Look::Core => (turn, Ink::Gray, 10, ""),
        };
        let solid = |ink| Paint { ink, opacity: 1.0 };
        self.shapes.push(Shape::Polygon {
            points: corners.to_vec(),
            paint: solid(fill),
        });
        self.shapes.push(Shape::Line {
            points: corners.into_iter().chain([corners[0]]).collect(),
            paint: solid(outline),
            width,
            dash,
        });
        if node.is_processor() {
            let ink = if node.look == Look::Usable {
                Ink::Paper
            } else {
                Ink::Black
            };
            let at = (x + w / 2.0, y + h / 2.0 + 4.2);
            let label = node.labels.first().map_or("", String::as_str);
            self.text(label, at, Side::Middle, (SMALL, ink, true));
            return;
        }
        for (line, label) in node.labels.iter().enumerate() {
            let bold = line == 0 && node.look != Look::Cache;
            let at = (x + GAP, y + GAP + line as f64 * LINE + 9.5);
            self.text(label, at, Side::Start, (SMALL, Ink::Black, bold));
        }
        // What is in it stands in the middle: labels may be wider.
        let left = x + ((w - inner.width) / 2.0).max(GAP);
        self.boxes(
            &node.children,
            inner,
            (left, y + GAP + node.head()),
            depth + 1,
        );
    }

    fn text(
        &mut self,
        text: &str,
        at: (f64, f64),
        side: Side,
        (size, ink, bold): (f64, Ink, bool),
    ) {
        self.shapes.push(Shape::Text {
            text: text.to_owned(),
            at: place(at),
            side,
            size,
            ink,
            bold,
            upwards: false,
            halo: false,
        });
    }
}

fn place((x, y): (f64, f64)) -> Place {
    (tenths(x), tenths(y))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::CpuSet;

    /// The processors that a figure draws as boxes.
    fn drawn(figure: &Figure) -> CpuSet {
        let texts = figure.shapes.iter().filter_map(|s| match s {
            Shape::Text { text, .. } => text.strip_prefix('P')?.parse().ok().map(model::CpuId),
            _ => None,
        });
        texts.collect()
    }

    #[test]
    fn every_online_processor_has_its_box_and_all_boxes_lie_within_the_figure() {
        let names = model::builtin::PLATFORMS.map(|b| b.name);
        for name in names
            .into_iter()
            .chain(["symmetric:m=8", "symmetric:m=257"])
        {
            let mut platform = Platform::builtin(name).unwrap();
            if let Some(last) = platform.processors.last_mut().filter(|p| p.id.0 > 0) {
                last.online = false;
            }
            let figure = figure("p", &platform);
            assert_eq!(drawn(&figure), platform.usable(), "{name}");
            for shape in &figure.shapes {
                if let Shape::Polygon { points, .. } | Shape::Line { points, .. } = shape {
                    for (x, y) in points {
                        assert!(*x >= 0 && *x <= tenths(figure.width), "{name}: x = {x}");
                        assert!(*y >= 0 && *y <= tenths(figure.height), "{name}: y = {y}");
                    }
                }
            }
        }
    }

    #[test]
    fn boxes_nest_or_lie_apart() {
        let figure = figure("p", &Platform::builtin("xeon-l7455").unwrap());
        let boxes: Vec<(Place, Place)> = figure
            .shapes
            .iter()
            .filter_map(|s| match s {
                Shape::Polygon { points, .. } => Some((*points.first()?, *points.get(2)?)),
                _ => None,
            })
            .collect();
        assert_eq!(boxes.len(), 4 + 4 + 12 + 24 + 24);
        for (i, a) in boxes.iter().enumerate() {
            for b in &boxes[i + 1..] {
                let apart = a.1.0 <= b.0.0 || b.1.0 <= a.0.0 || a.1.1 <= b.0.1 || b.1.1 <= a.0.1;
                let within = a.0.0 < b.0.0 && b.1.0 < a.1.0 && a.0.1 < b.0.1 && b.1.1 < a.1.1;
                assert!(apart || within, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_picture_names_what_it_shows() {
        let mut platform = Platform::builtin("i7-2600").unwrap();
        platform.name = "a<b".into();
        platform.processors[7].online = false;
        platform.processors[6].usable = false;
        let svg = svg(&platform);
        for text in [
            "a&lt;b",
            "L3 8 MiB 16-way",
            ">core 0<",
            ">P6<",
            "offline: 7",
            "dashed",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains(">P7<"));
    }
}
