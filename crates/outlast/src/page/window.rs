//! The stretch of time that shows one outage of a connection.

/// An outage that is longer than so many times what follows it would hide that: then only the link's
/// return is shown.
const LONGEST: f64 = 20.0;
/// A stretch that is more than this share of the whole shows nothing that the whole does not.
const LARGEST_SHARE: f64 = 0.7;

/// An outage as one connection has met it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outage {
    pub(super) down_s: f64,
    pub(super) up_s: f64,
    /// From link-up until something new crossed the link; `None` if nothing did.
    pub(super) resume_s: Option<f64>,
}

/// From when to when to look at `outage` on a path with this round trip, if `until_s` is all that
/// there is; `None` if the whole shows it as well.
pub(super) fn around(outage: Outage, round_trip_s: f64, until_s: f64) -> Option<(f64, f64)> {
    let Outage {
        down_s,
        up_s,
        resume_s,
    } = outage;
    let resume = resume_s.unwrap_or(until_s - up_s).max(0.0);
    let length = up_s - down_s;
    let is_shown = length <= LONGEST * (resume + round_trip_s);
    let (from, span) = match is_shown {
        true => (down_s, length + resume),
        false => (up_s, resume),
    };
    let lead = (span * 0.15).max(round_trip_s * 2.0);
    let rest = (span * 0.3).max(round_trip_s * 5.0);
    let (from, to) = ((from - lead).max(0.0), (up_s + resume + rest).min(until_s));
    (from < to && to - from <= LARGEST_SHARE * until_s).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(down_s: f64, up_s: f64, resume_s: Option<f64>) -> Outage {
        Outage {
            down_s,
            up_s,
            resume_s,
        }
    }

    #[test]
    fn a_short_outage_fills_a_good_part_of_its_window() {
        let short = outage(3.0, 3.08, Some(0.04));
        let (from, to) = around(short, 0.04, 30.0).expect("far less than the whole");
        assert!(from < 3.0 && to > 3.12, "{from} {to}");
        assert!(0.08 / (to - from) > 0.15, "{from} {to}");
    }

    #[test]
    fn a_long_resume_is_shown_to_its_end() {
        let stalled = outage(3.0, 3.08, Some(6.34));
        let (from, to) = around(stalled, 0.04, 60.0).expect("less than the whole");
        assert!(from < 3.0 && to > 9.42, "{from} {to}");
    }

    #[test]
    fn of_a_long_outage_the_return_is_shown() {
        let long = outage(5.0, 50.0, Some(0.05));
        let (from, to) = around(long, 0.04, 80.0).expect("less than the whole");
        assert!(from > 49.0 && from < 50.0, "{from}");
        assert!(to > 50.05 && to < 51.0, "{to}");
    }

    #[test]
    fn what_never_resumes_is_shown_to_the_end_and_what_fills_the_whole_not_again() {
        let never = outage(50.0, 51.0, None);
        assert_eq!(around(never, 0.04, 60.0).map(|(_, to)| to), Some(60.0));
        assert_eq!(around(outage(1.0, 9.0, Some(0.5)), 0.04, 10.0), None);
    }
}
