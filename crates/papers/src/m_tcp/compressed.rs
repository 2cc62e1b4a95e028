//! Figures 15 and 16: transfers of 1 MB with compression between supervisor host and mobile.

use super::claim;
use super::testbed::{DISCONNECTIONS, Detection, PROCESSES, Sender, Transfer, interval, trials};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::mean;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Judged, Measured, Published, Tolerance};
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::{Content, Mechanism};

/// Transfers from one sender.
#[derive(Debug)]
pub struct Compressed {
    name: &'static str,
    title: &'static str,
    place: &'static str,
    sender: Sender,
}

/// Figure 15.
pub static NEAR: Compressed = Compressed {
    name: "figure-15",
    title: "Figure 15: 1 MB from five hops away, compressed",
    place: "figure 15",
    sender: Sender::Near,
};

/// Figure 16.
pub static FAR: Compressed = Compressed {
    name: "figure-16",
    title: "Figure 16: 1 MB from fifteen hops away, compressed",
    place: "figure 16",
    sender: Sender::Far,
};

fn transfers(sender: Sender, compressed: Option<Content>) -> impl Iterator<Item = Transfer> {
    let processes = PROCESSES.into_iter();
    processes.flat_map(move |process| {
        DISCONNECTIONS.map(|down_ms| Transfer {
            sender,
            kilobytes: 1_000,
            process,
            up_ms: 5_000,
            down_ms,
            gateway: Mechanism::MTcp,
            compressed,
            detection: Detection::Told,
        })
    })
}

const FORMS: [Option<Content>; 3] = [None, Some(Content::Text), Some(Content::Binary)];

impl Figure for Compressed {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        // The other sender's are compared, too.
        [Sender::Near, Sender::Far]
            .into_iter()
            .flat_map(|sender| FORMS.map(|form| transfers(sender, form)))
            .flatten()
            .flat_map(|transfer| transfer.jobs(trials(extent)))
            .collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        Part::new(self.title)
            .table(self.table(runs))
            .claims(self.claims(runs))
    }
}

/// The mean time of a transfer whose content is `compressed`.
fn time(runs: &Runs, of: Transfer, compressed: Option<Content>) -> Option<f64> {
    Some(Transfer { compressed, ..of }.times(runs)?.mean)
}

/// Compressed transfer times as shares of those without.
fn shares(runs: &Runs, sender: Sender, content: Content) -> impl Iterator<Item = f64> {
    transfers(sender, None)
        .filter_map(move |one| Some(time(runs, one, Some(content))? / time(runs, one, None)?))
}

impl Compressed {
    fn table(&self, runs: &Runs) -> Table {
        let mut table = Table::new([
            Column::text("distribution", "Distribution"),
            Column::quantity("disconnection_s", "Disconnection", Unit::Seconds),
            Column::quantity("plain_s", "M-TCP", Unit::Seconds),
            Column::quantity("text_s", "Text", Unit::Seconds),
            Column::quantity("text_interval_s", "± 95 %", Unit::Seconds),
            Column::quantity("text_share", "of M-TCP", Unit::Share),
            Column::quantity("binary_s", "Binary", Unit::Seconds),
            Column::quantity("binary_interval_s", "± 95 %", Unit::Seconds),
            Column::quantity("binary_share", "of M-TCP", Unit::Share),
        ]);
        for one in transfers(self.sender, None) {
            let plain = time(runs, one, None);
            let mut row = vec![
                Cell::from(one.process),
                Cell::from(f64::from(one.down_ms) / 1_000.0),
                Cell::from(plain),
            ];
            for content in [Content::Text, Content::Binary] {
                let compressed = Some(content);
                let sample = Transfer { compressed, ..one }.times(runs);
                let mean = sample.map(|sample| sample.mean);
                row.extend([
                    Cell::from(mean),
                    Cell::from(sample.and_then(|sample| interval(&sample))),
                    Cell::from(mean.zip(plain).map(|(mean, plain)| mean / plain)),
                ]);
            }
            table.push(row);
        }
        table.note(
            "Text is English, binary a stand-in for programs that compresses as GNU Bash does; packet by packet, \
             level 6. Means of completed transfers.",
        );
        table.titled(self.title)
    }

    fn claims(&self, runs: &Runs) -> Vec<Judged> {
        let ordered = transfers(self.sender, None).filter_map(|one| {
            let [plain, text, binary] = FORMS.map(|form| time(runs, one, form));
            Some((plain?, text?, binary?))
        });
        let ordered: Vec<bool> = ordered
            .map(|(plain, text, binary)| text < binary && binary < plain)
            .collect();
        let in_order = ordered.iter().filter(|is_so| **is_so).count();
        let share = (!ordered.is_empty()).then(|| Measured {
            value: in_order as f64 / ordered.len() as f64,
            standard_deviation: None,
            count: ordered.len(),
        });
        let mut claims = vec![
            claim(
                self.place,
                "Compressed text is faster than compressed binaries, and both than M-TCP (share of cells).",
                Unit::Share,
                Published::AtLeast(1.0),
                Tolerance::Absolute(0.0),
            )
            .judge(share),
        ];
        if self.sender == Sender::Far {
            let of = |sender| mean(shares(runs, sender, Content::Text)).map(|mean| mean.value);
            let less = of(Sender::Far).zip(of(Sender::Near));
            claims.push(
                claim(
                    self.place,
                    "Packets of 512 bytes give a smaller margin: share of the time without compression that text \
                     takes over 15 hops, over that over 5 hops.",
                    Unit::Factor,
                    Published::AtLeast(1.0),
                    Tolerance::Absolute(0.0),
                )
                .judge(less.map(|(far, near)| Measured {
                    value: far / near,
                    standard_deviation: None,
                    count: ordered.len(),
                })),
            );
        }
        claims
    }
}
