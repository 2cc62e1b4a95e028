//! Slow start and congestion avoidance (RFC 5681, section 3.1), with the three ways in which
//! stacks count: by acknowledgement, by acknowledgement and an eighth more (BSD), by segment
//! (RFC 3465 without its limit, as Linux does).

use super::Window;
use crate::profile::Growth;

/// A segment in units of BSD's growth, so that an eighth is whole.
const SEGMENT: u32 = 1 << 16;

/// Half the window, at least two segments.
//= RFC 5681, section 3.1, equation 4
pub(super) fn threshold_after_loss(window: &Window) -> u32 {
    (window.cwnd / 2).max(2)
}

pub(super) fn grow(window: &mut Window, acked: u32) {
    match window.growth {
        Growth::PerAck { extra_eighth } => grow_per_ack(window, extra_eighth),
        Growth::PerSegment => {
            if !window.is_limiting() {
                return;
            }
            let left = slow_start(window, acked);
            if left > 0 {
                let pace = window.cwnd;
                avoid(window, pace, left);
            }
        }
    }
}

fn grow_per_ack(window: &mut Window, extra_eighth: bool) {
    if window.cwnd <= window.ssthresh {
        //= RFC 5681, section 3.1, equation 2
        window.cwnd += 1;
        return;
    }
    //= RFC 5681, section 3.1, equation 3
    let eighth = if extra_eighth { SEGMENT / 8 } else { 0 };
    window.credit += SEGMENT / window.cwnd.max(1) + eighth;
    if window.credit >= SEGMENT {
        window.credit -= SEGMENT;
        window.cwnd += 1;
    }
}

/// Slow start for `acked` segments; those behind the threshold are left over.
pub(super) fn slow_start(window: &mut Window, acked: u32) -> u32 {
    if !window.in_slow_start() {
        return acked;
    }
    let cwnd = window.ssthresh.min(window.cwnd.saturating_add(acked));
    let left = acked - (cwnd - window.cwnd);
    window.cwnd = cwnd;
    left
}

/// A segment more for every `pace` acknowledged.
pub(super) fn avoid(window: &mut Window, pace: u32, acked: u32) {
    let pace = pace.max(1);
    // Credit from a larger window is used up at once.
    if window.credit >= pace {
        window.credit = 0;
        window.cwnd += 1;
    }
    window.credit += acked;
    if window.credit >= pace {
        window.cwnd += window.credit / pace;
        window.credit %= pace;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_doubles_and_stops_at_the_threshold() {
        //= RFC 5681, section 3.1, equation 2
        let mut window = Window::new(10, Growth::PerSegment);
        window.is_limiting = true;
        grow(&mut window, 10);
        assert_eq!(window.cwnd, 20);
        window.ssthresh = 25;
        grow(&mut window, 20);
        assert_eq!(
            window.cwnd, 25,
            "what is left over counts for congestion avoidance"
        );
        assert_eq!(window.credit, 15);
    }

    #[test]
    fn avoidance_adds_one_per_window() {
        //= RFC 5681, section 3.1, equation 3
        let mut window = Window::new(10, Growth::PerSegment);
        window.is_limiting = true;
        window.ssthresh = 10;
        for _ in 0..10 {
            grow(&mut window, 1);
        }
        assert_eq!(window.cwnd, 11);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        //= RFC 7661, section 4.4
        let mut window = Window::new(10, Growth::PerSegment);
        window.ssthresh = 5;
        grow(&mut window, 100);
        assert_eq!(window.cwnd, 10);
    }

    #[test]
    fn bsd_adds_an_eighth() {
        let mut window = Window::new(8, Growth::PerAck { extra_eighth: true });
        window.ssthresh = 4;
        // A quarter of a segment each time: an eighth for the window, an eighth on top.
        for _ in 0..4 {
            grow(&mut window, 2);
        }
        assert_eq!(window.cwnd, 9);
    }
}
