//! Time-sequence diagrams in the manner of Scott and Mapp's figures 1 and 8 to 11: time to the
//! right, sequence numbers upwards, and the outages shaded.
//!
//! Upright lines are data segments from their first to their last byte, dots are ACKs on their way
//! back, crosses are packets that were dropped, circles are data that Outlast sent again, and plus
//! marks are ACKs that it put in. Diamonds, which the paper has no need of, are packets that Outlast
//! took from in front of the link to send them later.

use super::axis::{Axis, FittedAxis};
use super::canvas::{Area, Canvas, Path};
use super::frame::{Frame, WIDTH, X_TICKS, Y_TICKS};
use super::legend::{Key, Swatch};
use super::marks::Mark;
use super::thinning::{self, Stem};
use super::{Figure, curves::plural};
use crate::unit::Unit;

/// What became of a packet at the link, or that Outlast put it there.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Fate {
    /// It crossed the link.
    Passed,
    /// It was dropped: the link was down, its queue full, or the packet lost at random.
    Dropped,
    /// Outlast took it in front of the link that was down.
    Taken,
    /// Outlast put it on its way: a kept packet sent again, or an ACK delivered.
    FromOutlast,
    /// It was captured; what became of it is not known.
    Captured,
}

/// A segment with data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataSegment {
    /// When it was seen, in seconds from the start of the trace.
    pub time_s: f64,
    /// Its first byte, counted from the start of the stream.
    pub sequence: u64,
    /// The number of its bytes.
    pub length: u32,
    /// What became of it.
    pub fate: Fate,
}

/// A segment that carries an acknowledgement against the data's direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acknowledgement {
    /// When it was seen, in seconds from the start of the trace.
    pub time_s: f64,
    /// The next byte expected, counted from the start of the stream.
    pub number: u64,
    /// What became of it.
    pub fate: Fate,
}

/// A time without the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outage {
    /// When the link went down, in seconds from the start of the trace.
    pub start_s: f64,
    /// When it was back; `None` if the trace ended before.
    pub end_s: Option<f64>,
}

/// A trace of one flow across the disconnecting link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeSequence {
    /// The data segments, in any order.
    pub data: Vec<DataSegment>,
    /// The acknowledgements, in any order.
    pub acknowledgements: Vec<Acknowledgement>,
    /// The outages, in any order.
    pub outages: Vec<Outage>,
    /// The stretch of time to be shown, in seconds; `None` shows all of it.
    pub window_s: Option<(f64, f64)>,
}

impl Outage {
    /// From when to when each of `outages` is to be drawn on the axis, if it is.
    pub(super) fn within(outages: &[Self], x: &FittedAxis) -> impl Iterator<Item = (f64, f64)> {
        let (low, high) = (x.low, x.high);
        let clip = move |outage: &Self| {
            let end = outage.end_s.unwrap_or(high);
            (outage.start_s.max(low), end.min(high))
        };
        let clipped = outages.iter().map(clip);
        clipped.filter(|(start, end)| start < end)
    }

    /// Shades each of `outages` in the frame. One that would be too narrow to be seen is drawn wider,
    /// by no more than half of the time until the next, and darker unless the next is close.
    pub(super) fn shade(outages: &[Self], frame: &Frame, canvas: &mut Canvas) {
        let mut bands: Vec<(f64, f64)> = Self::within(outages, &frame.x)
            .map(|(start, end)| (frame.x(start), frame.x(end)))
            .collect();
        bands.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let next = bands.iter().skip(1).map(|(left, _)| *left);
        let ends: Vec<f64> = next.chain([frame.area.right]).collect();
        for ((left, right), end) in bands.into_iter().zip(ends) {
            let visible = (left + VISIBLE).min(f64::midpoint(left, end));
            let is_lost = right < visible && end - left > ALONE;
            let class = if is_lost { "slit" } else { "band" };
            canvas.rect(
                class,
                Area {
                    left,
                    right: right.max(visible),
                    ..frame.area
                },
            );
        }
    }
}

/// An outage that is narrower than this many pixels is easily overlooked,
const VISIBLE: f64 = 3.0;
/// if there is none within so many pixels behind it.
const ALONE: f64 = 24.0;

const HEIGHT: f64 = 440.0;
/// Room for signs at the ends of the axes.
const MARGIN: f64 = 7.0;
/// How many lines or dots of one kind are drawn at most: more than a figure has columns of half
/// pixels, so that a steadily rising trace is drawn in full.
const LINES: usize = 4_000;
/// How many crosses, circles or plus marks are drawn at most.
const SIGNS: usize = 1_500;
/// Signs closer than this many pixels look like one.
const SIGN_SPACING: f64 = 3.0;

/// The positions of everything in the window, by kind.
#[derive(Default)]
struct Kinds {
    segments: Vec<Stem>,
    acks: Vec<(f64, f64)>,
    dropped_data: Vec<(f64, f64)>,
    dropped_acks: Vec<(f64, f64)>,
    taken: Vec<(f64, f64)>,
    resent: Vec<(f64, f64)>,
    injected: Vec<(f64, f64)>,
}

impl TimeSequence {
    /// The diagram.
    #[must_use]
    pub fn draw(&self) -> Figure {
        let (x, y) = self.axes();
        // The legend needs the counts, the positions need the room that the legend leaves.
        let count = self.kinds(&Frame::new(x.clone(), y.clone(), &[], HEIGHT));
        let keys = count.keys(self.outages_in(&x).next().map(|_| self.silence()));
        let frame = Frame::new(x, y, &keys, HEIGHT).with_margin(MARGIN);
        let kinds = self.kinds(&frame);

        let mut canvas = Canvas::default();
        Outage::shade(&self.outages, &frame, &mut canvas);
        frame.draw_grid(&mut canvas);
        kinds.draw(&mut canvas);
        frame.draw_axes(&mut canvas, &keys);
        Figure {
            description: self.describe(&frame.x, &kinds),
            body: canvas.into_body(),
            width: WIDTH as u32,
            height: HEIGHT as u32,
        }
    }

    /// Time and sequence numbers, as far as the window shows them.
    fn axes(&self) -> (FittedAxis, FittedAxis) {
        let ends = |outage: &Outage| [Some(outage.start_s), outage.end_s];
        let times = (self.data.iter().map(|segment| segment.time_s))
            .chain(self.acknowledgements.iter().map(|ack| ack.time_s))
            .chain(self.outages.iter().flat_map(ends).flatten());
        let mut x = Axis::new("Time", Unit::Seconds);
        x.range = self.window_s.or_else(|| span(times));
        let x = x.fit([].into_iter(), X_TICKS);

        let inside = |time_s: f64| x.low <= time_s && time_s <= x.high;
        let data = self.data.iter().filter(|segment| inside(segment.time_s));
        let data = data.flat_map(|s| [s.sequence as f64, s.sequence as f64 + f64::from(s.length)]);
        let acks = self
            .acknowledgements
            .iter()
            .filter(|ack| inside(ack.time_s));
        let acks = acks.map(|ack| ack.number as f64);
        let y = Axis::new("Sequence number", Unit::Bytes).fit(data.chain(acks), Y_TICKS);
        (x, y)
    }

    /// Whether what became of the packets is not known.
    fn is_of_capture(&self) -> bool {
        let mut data = self.data.iter();
        data.any(|segment| segment.fate == Fate::Captured)
    }

    /// What the shaded times are called.
    fn silence(&self) -> &'static str {
        match self.is_of_capture() {
            true => "path silent",
            false => "link down",
        }
    }

    fn outages_in(&self, x: &FittedAxis) -> impl Iterator<Item = (f64, f64)> {
        Outage::within(&self.outages, x)
    }

    fn kinds(&self, frame: &Frame) -> Kinds {
        let inside = |time_s: f64| frame.x.low <= time_s && time_s <= frame.x.high;
        let mut kinds = Kinds::default();
        for segment in self.data.iter().filter(|segment| inside(segment.time_s)) {
            let x = frame.x(segment.time_s);
            let first = segment.sequence as f64;
            let (top, bottom) = (frame.y(first + f64::from(segment.length)), frame.y(first));
            match segment.fate {
                Fate::Passed | Fate::Captured => kinds.segments.push(Stem { x, top, bottom }),
                Fate::Dropped => kinds.dropped_data.push((x, f64::midpoint(top, bottom))),
                Fate::Taken => kinds.taken.push((x, f64::midpoint(top, bottom))),
                Fate::FromOutlast => kinds.resent.push((x, f64::midpoint(top, bottom))),
            }
        }
        for ack in self
            .acknowledgements
            .iter()
            .filter(|ack| inside(ack.time_s))
        {
            let at = (frame.x(ack.time_s), frame.y(ack.number as f64));
            match ack.fate {
                Fate::Passed | Fate::Captured => kinds.acks.push(at),
                Fate::Dropped => kinds.dropped_acks.push(at),
                Fate::Taken => kinds.taken.push(at),
                Fate::FromOutlast => kinds.injected.push(at),
            }
        }
        kinds
    }

    fn describe(&self, x: &FittedAxis, kinds: &Kinds) -> String {
        let outages = self.outages_in(x).count();
        if self.is_of_capture() {
            return format!(
                "Time-sequence diagram from {} to {} with {}: {} and {} were captured.",
                Unit::Seconds.show(x.low),
                Unit::Seconds.show(x.high),
                plural(outages, "outage"),
                plural(kinds.segments.len(), "data segment"),
                plural(kinds.acks.len(), "ACK"),
            );
        }
        format!(
            "Time-sequence diagram from {} to {} with {}: {} and {} crossed the link; {} and {} \
             were dropped; Outlast took {}, sent {} again and put in {}.",
            Unit::Seconds.show(x.low),
            Unit::Seconds.show(x.high),
            plural(outages, "outage"),
            plural(kinds.segments.len(), "data segment"),
            plural(kinds.acks.len(), "ACK"),
            plural(kinds.dropped_data.len(), "data segment"),
            plural(kinds.dropped_acks.len(), "ACK"),
            plural(kinds.taken.len(), "packet"),
            plural(kinds.resent.len(), "segment"),
            plural(kinds.injected.len(), "ACK"),
        )
    }
}

/// How a kind of sign looks and what it means.
struct Sign<'a> {
    class: &'static str,
    mark: Mark,
    reach: f64,
    meaning: &'static str,
    places: &'a [(f64, f64)],
}

impl Kinds {
    /// The kinds that are drawn as signs, those on top last.
    fn signs(&self) -> [Sign<'_>; 5] {
        let sign = |class, mark, reach, meaning, places| Sign {
            class,
            mark,
            reach,
            meaning,
            places,
        };
        [
            sign(
                "sign s5",
                Mark::Cross,
                2.5,
                "ACK dropped",
                &self.dropped_acks,
            ),
            sign(
                "sign s2",
                Mark::Cross,
                3.5,
                "data dropped",
                &self.dropped_data,
            ),
            sign(
                "sign s6",
                Mark::Diamond,
                2.8,
                "taken by Outlast",
                &self.taken,
            ),
            sign(
                "sign s4",
                Mark::Circle,
                3.2,
                "re-sent by Outlast",
                &self.resent,
            ),
            sign(
                "loud",
                Mark::Plus,
                6.0,
                "ACK put in by Outlast",
                &self.injected,
            ),
        ]
    }

    /// The legend, with the number of each kind that there is.
    fn keys(&self, outage: Option<&str>) -> Vec<Key> {
        let stem = Swatch::Stem {
            class: "line s1".to_owned(),
        };
        let dot = Swatch::Dot {
            class: "dot s3".to_owned(),
        };
        let lines = [
            (stem, "data segment", self.segments.len()),
            (dot, "ACK", self.acks.len()),
        ];
        let signs = self.signs().map(
            |Sign {
                 class,
                 mark,
                 reach,
                 meaning,
                 places,
             }| {
                let swatch = Swatch::Sign {
                    class: class.to_owned(),
                    mark,
                    reach,
                };
                (swatch, meaning, places.len())
            },
        );
        let kinds = lines
            .into_iter()
            .chain(signs)
            .filter(|(_, _, count)| *count > 0);
        let keys = kinds.map(|(swatch, meaning, count)| Key {
            swatch,
            text: format!("{meaning} ({count})"),
        });
        let outage = outage.map(|meaning| Key {
            swatch: Swatch::Band {
                class: "band".to_owned(),
            },
            text: meaning.to_owned(),
        });
        keys.chain(outage).collect()
    }

    fn draw(&self, canvas: &mut Canvas) {
        let mut path = Path::default();
        for (x, y) in thinning::points(&self.acks, 0.0, LINES) {
            path.dot(x, y);
        }
        canvas.path("dot s3", &path);

        let mut path = Path::default();
        for Stem { x, top, bottom } in thinning::stems(&self.segments, LINES) {
            // A segment far smaller than a pixel still leaves a trace.
            path.start(x, bottom.max(top + 1.0));
            path.line_to(x, top);
        }
        canvas.path("stem s1", &path);

        for Sign {
            class,
            mark,
            reach,
            places,
            ..
        } in self.signs()
        {
            let mut path = Path::default();
            for (x, y) in thinning::points(places, SIGN_SPACING, SIGNS) {
                mark.draw(&mut path, x, y, reach);
            }
            canvas.path(class, &path);
        }
    }
}

/// The least and the greatest finite value, if they differ.
fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let values = values.filter(|value| value.is_finite());
    let (low, high) = values.fold((0.0, 0.0), |(low, high): (f64, f64), value| {
        (low.min(value), high.max(value))
    });
    (low < high).then_some((low, high))
}
