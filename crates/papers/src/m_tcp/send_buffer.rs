//! Figure 17, right: 1 MB by the size of the sender's buffer, without slow link or disconnections.

use super::undisturbed::{Undelayed, time};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// The right half of figure 17.
#[derive(Debug)]
pub struct SendBuffer;

/// In bytes. The paper begins at 512, the simulator's buffers at 1,000.
const BUFFERS: [u32; 5] = [1_024, 2_048, 4_096, 8_192, 16_384];

fn transfers(gateway: Mechanism) -> impl Iterator<Item = Undelayed> {
    BUFFERS.into_iter().map(move |buffer| Undelayed {
        is_far: false,
        kilobytes: 1_000,
        buffer,
        gateway,
    })
}

impl Figure for SendBuffer {
    fn name(&self) -> &'static str {
        "figure-17-right"
    }

    fn title(&self) -> &'static str {
        "Figure 17, right: 1 MB by the size of the sender's buffer"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        [Mechanism::None, Mechanism::MTcp]
            .into_iter()
            .flat_map(transfers)
            .flat_map(|transfer| transfer.jobs(extent))
            .collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let mut table = Table::new([
            Column::quantity("buffer_bytes", "Buffer", Unit::Bytes),
            Column::quantity("m_tcp_s", "M-TCP", Unit::Seconds),
            Column::quantity("tcp_s", "TCP", Unit::Seconds),
            Column::quantity("share", "M-TCP / TCP", Unit::Share),
        ])
        .titled(self.title());
        for (ours, plain) in transfers(Mechanism::MTcp).zip(transfers(Mechanism::None)) {
            let (m_tcp, tcp) = (time(runs, &ours), time(runs, &plain));
            let ratio = m_tcp.zip(tcp).map(|(m_tcp, tcp)| m_tcp / tcp);
            table.push([
                Cell::from(f64::from(ours.buffer)),
                Cell::from(m_tcp),
                Cell::from(tcp),
                Cell::from(ratio),
            ]);
        }
        table.note(
            "The window is bounded by the receiver's buffer, as the model's send buffers have one size; each packet \
             waits 81 µs in the supervisor host, which is the most that the paper measured for its transport layer. What M-TCP costs here \
             is therefore given, and nothing is judged.",
        );
        Part::new(self.title()).table(table)
    }
}
