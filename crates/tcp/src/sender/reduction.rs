//! The window comes down: proportional rate reduction (RFC 6937, RFC 9937, section 6) or
//! halving the rate (Linux 2.4).

use super::Phase;
use crate::congestion::INFINITE;
use crate::endpoint::Endpoint;
use crate::profile::Reduction;

impl Endpoint {
    pub(crate) fn begin_reduction(&mut self) {
        self.snd.high_seq = self.snd.snd_nxt;
        self.snd.tlp_high_seq = None;
        self.snd.window.credit = 0;
        self.snd.prior_cwnd = self.snd.window.cwnd;
        self.snd.prr_delivered = 0;
        self.snd.prr_out = 0;
        self.lower_threshold();
    }

    /// The threshold after a loss.
    pub(crate) fn lower_threshold(&mut self) {
        let recovering = self.snd.phase >= Phase::Recovery;
        let snd = &mut self.snd;
        snd.window.ssthresh = snd.algorithm.threshold_after_loss(&snd.window, recovering);
    }

    /// `delivered` segments have arrived, `lost` more are known to be lost.
    pub(crate) fn reduce_window(&mut self, delivered: u32, lost: u32, advanced: bool) {
        if delivered == 0 || self.snd.prior_cwnd == 0 {
            return;
        }
        match *self.profile.reduction {
            Reduction::Proportional => self.reduce_proportionally(delivered, lost, advanced),
            Reduction::RateHalving => self.halve_rate(),
        }
    }

    //= RFC 6937, section 3
    fn reduce_proportionally(&mut self, delivered: u32, lost: u32, advanced: bool) {
        let snd = &mut self.snd;
        let in_flight = snd.queue.in_flight();
        snd.prr_delivered += delivered;
        let room = snd.window.ssthresh.saturating_sub(in_flight);
        let mut count = if in_flight > snd.window.ssthresh {
            // In proportion to what is delivered.
            let target = u64::from(snd.window.ssthresh) * u64::from(snd.prr_delivered);
            let target = target.div_ceil(u64::from(snd.prior_cwnd));
            u32::try_from(target)
                .unwrap_or(u32::MAX)
                .saturating_sub(snd.prr_out)
        } else {
            //= RFC 6937, section 3, reduction bound
            let conserved = snd.prr_delivered.saturating_sub(snd.prr_out);
            let extra = u32::from(advanced && lost == 0);
            (conserved.max(delivered) + extra).min(room)
        };
        if snd.prr_out == 0 {
            // The fast retransmission always goes out.
            count = count.max(1);
        }
        snd.window.set(in_flight + count);
    }

    fn halve_rate(&mut self) {
        let window = &mut self.snd.window;
        let steps = window.credit + 1;
        window.credit = steps & 1;
        let down = steps >> 1;
        if window.cwnd > window.ssthresh {
            window.set(window.cwnd - down);
        }
        let most = self.snd.queue.in_flight() + 1;
        self.snd.window.set(self.snd.window.cwnd.min(most));
    }

    pub(crate) fn end_reduction(&mut self) {
        if self.snd.algorithm.rules_alone() {
            return;
        }
        let reduced = self.snd.phase == Phase::Reduced || self.snd.undo_marker.is_some();
        if self.snd.window.ssthresh < INFINITE && reduced {
            let ssthresh = self.snd.window.ssthresh;
            self.snd.window.set(match *self.profile.reduction {
                Reduction::Proportional => ssthresh,
                Reduction::RateHalving => ssthresh.min(self.snd.window.cwnd),
            });
        }
    }
}
