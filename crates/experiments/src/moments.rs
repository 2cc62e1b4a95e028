//! Who has the machine when: runs whose outages last wait most of the time, and many go on at once;
//! but the moment in which one of them is measured belongs to it alone.
//!
//! Two kinds of time are booked. A [`Kind::Moment`] is when a link comes back and what follows is
//! timed; a [`Kind::Work`] is when places are made and programs started, or all of it is taken
//! down. No moment overlaps another booking, and no more work goes on at once than is allowed.
//! Whatever else a run does - a transfer at the link's rate, waiting - is booked by nobody.

use outlast_base::time::{Duration, Instant};
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How often who waits looks whether the user has asked for an end.
const LOOK: Duration = Duration::from_millis(100);

/// What a time is booked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Something is timed to the millisecond.
    Moment,
    /// Much is done at once.
    Work,
}

/// The bookings of one batch, shared by its runs.
#[derive(Debug)]
pub struct Moments {
    calendar: Mutex<Calendar>,
    changed: Condvar,
}

/// A booked time. Dropped, it is free again.
#[derive(Debug)]
pub struct Booking<'m> {
    moments: &'m Moments,
    number: u64,
    /// When it begins.
    pub begin: Instant,
}

/// Pure: what is booked.
#[derive(Debug)]
struct Calendar {
    entries: Vec<Entry>,
    next: u64,
    /// Works that may go on at once.
    most: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Entry {
    number: u64,
    kind: Kind,
    begin: Instant,
    end: Instant,
}

impl Moments {
    /// Nothing is booked. No more than `most` works go on at once.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            calendar: Mutex::new(Calendar {
                entries: Vec::new(),
                next: 0,
                most: most.max(1),
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits until work of about `length` can begin.
    ///
    /// # Errors
    /// When the user asks for an end.
    pub fn work(&self, length: Duration, cancel: &Cancel) -> Result<Booking<'_>, LabError> {
        let [work] = self.book(Kind::Work, [(Duration::ZERO, length)], cancel)?;
        Ok(work)
    }

    /// Waits until a moment of `length` is free `lead` from then on; so whoever has it may begin
    /// now what leads there.
    ///
    /// # Errors
    /// When the user asks for an end.
    pub fn moment(
        &self,
        lead: Duration,
        length: Duration,
        cancel: &Cancel,
    ) -> Result<Booking<'_>, LabError> {
        let [moment] = self.moments([(lead, length)], cancel)?;
        Ok(moment)
    }

    /// Waits until several moments are free, each with its lead and its length, as [`Self::moment`] does for one. They do
    /// not overlap each other.
    ///
    /// # Errors
    /// When the user asks for an end.
    pub fn moments<const N: usize>(
        &self,
        times: [(Duration, Duration); N],
        cancel: &Cancel,
    ) -> Result<[Booking<'_>; N], LabError> {
        self.book(Kind::Moment, times, cancel)
    }

    fn book<const N: usize>(
        &self,
        kind: Kind,
        times: [(Duration, Duration); N],
        cancel: &Cancel,
    ) -> Result<[Booking<'_>; N], LabError> {
        let mut calendar = self.calendar();
        loop {
            if cancel.is_cancelled() {
                return Err(LabError::Cancelled);
            }
            let now = clock::now();
            let pause = times.map(|(lead, length)| {
                let begin = now + lead;
                calendar.free_at(kind, begin, length).since(begin)
            });
            let pause = pause.into_iter().max().unwrap_or_default().min(LOOK);
            if pause == Duration::ZERO {
                return Ok(times.map(|(lead, length)| {
                    let begin = now + lead;
                    Booking {
                        moments: self,
                        number: calendar.enter(kind, begin, length),
                        begin,
                    }
                }));
            }
            let waited = self.changed.wait_timeout(calendar, pause);
            calendar = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A run that panicked has left the calendar as sound as it was.
    fn calendar(&self) -> MutexGuard<'_, Calendar> {
        self.calendar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Booking<'_> {
    /// Moves the booking: it lasts from `begin` for `length`.
    pub fn move_to(&mut self, begin: Instant, length: Duration) {
        self.begin = begin;
        self.moments.calendar().change(self.number, begin, length);
        self.moments.changed.notify_all();
    }
}

impl Drop for Booking<'_> {
    fn drop(&mut self) {
        self.moments.calendar().leave(self.number);
        self.moments.changed.notify_all();
    }
}

impl Calendar {
    /// The earliest time from `begin` on at which `length` is free for `kind`.
    fn free_at(&self, kind: Kind, mut begin: Instant, length: Duration) -> Instant {
        while let Some(end) = self.in_the_way(kind, begin, begin + length) {
            begin = end;
        }
        begin
    }

    /// When the first of those ends that are in the way; `None` if none is.
    fn in_the_way(&self, kind: Kind, begin: Instant, end: Instant) -> Option<Instant> {
        let meets = |entry: &&Entry| entry.begin < end && begin < entry.end;
        let met = || self.entries.iter().filter(meets);
        let of = |kind| move |entry: &&Entry| entry.kind == kind;
        let moments = met().filter(of(Kind::Moment));
        let works = met().filter(of(Kind::Work));
        let is_full = match kind {
            Kind::Moment => true,
            Kind::Work => works.clone().count() >= self.most,
        };
        let works = works.filter(|_| is_full);
        moments.chain(works).map(|entry| entry.end).min()
    }

    fn enter(&mut self, kind: Kind, begin: Instant, length: Duration) -> u64 {
        let number = self.next;
        self.next += 1;
        self.entries.push(Entry {
            number,
            kind,
            begin,
            end: begin + length,
        });
        number
    }

    fn change(&mut self, number: u64, begin: Instant, length: Duration) {
        for entry in &mut self.entries {
            if entry.number == number {
                (entry.begin, entry.end) = (begin, begin + length);
            }
        }
    }

    fn leave(&mut self, number: u64) {
        self.entries.retain(|entry| entry.number != number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn calendar() -> Calendar {
        Calendar {
            entries: Vec::new(),
            next: 0,
            most: 2,
        }
    }

    #[test]
    fn moments_follow_each_other_and_fill_the_gaps() {
        let mut calendar = calendar();
        calendar.enter(Kind::Moment, at(10_000), SECOND);
        calendar.enter(Kind::Moment, at(11_500), SECOND);
        let free = |begin| calendar.free_at(Kind::Moment, at(begin), SECOND);
        assert_eq!(free(8_000), at(8_000));
        assert_eq!(free(9_000), at(9_000), "the end is not part of it");
        // Half a second between the two is not enough.
        assert_eq!(free(9_500), at(12_500));
    }

    #[test]
    fn work_keeps_out_of_moments_and_to_its_number() {
        let mut calendar = calendar();
        let moment = calendar.enter(Kind::Moment, at(2_000), SECOND);
        let free = |calendar: &Calendar, kind, begin| calendar.free_at(kind, at(begin), SECOND);
        assert_eq!(free(&calendar, Kind::Work, 1_500), at(3_000));
        assert_eq!(free(&calendar, Kind::Work, 500), at(500));
        for _ in 0..2 {
            calendar.enter(Kind::Work, at(500), SECOND);
        }
        assert_eq!(free(&calendar, Kind::Work, 600), at(3_000));
        assert_eq!(free(&calendar, Kind::Moment, 600), at(3_000));
        calendar.leave(moment);
        assert_eq!(free(&calendar, Kind::Work, 600), at(1_500));
        assert_eq!(free(&calendar, Kind::Moment, 600), at(1_500));
    }

    #[test]
    fn several_moments_are_booked_together_once_all_are_free() {
        let moments = Moments::new(2);
        let cancel = Cancel::new().expect("a pipe");
        let hour = Duration::from_secs(3_600);
        let taken = moments.moment(2 * hour, hour, &cancel);
        let taken = taken.expect("nobody else");
        let times = [(Duration::ZERO, hour), (2 * hour, hour)];
        std::thread::scope(|scope| {
            let both = scope.spawn(|| {
                moments
                    .moments(times, &cancel)
                    .map(|all| all.map(|it| it.begin))
            });
            // The first of them is not booked before the second is free.
            let first = moments.moment(Duration::ZERO, hour, &cancel);
            drop(first.expect("nobody has booked it"));
            drop(taken);
            let [first, second] = both.join().expect("no panic").expect("both");
            assert_eq!(second.since(first), 2 * hour);
        });
    }

    #[test]
    fn a_time_that_moves_makes_room() {
        let mut calendar = calendar();
        let number = calendar.enter(Kind::Moment, at(1_000), 3 * SECOND);
        let free = |calendar: &Calendar| calendar.free_at(Kind::Work, at(1_000), SECOND);
        assert_eq!(free(&calendar), at(4_000));
        calendar.change(number, at(2_500), SECOND);
        assert_eq!(free(&calendar), at(1_000));
    }

    #[test]
    fn who_waits_goes_on_when_a_booking_ends_and_gives_up_when_asked() {
        let moments = Moments::new(1);
        let cancel = Cancel::new().expect("a pipe");
        let hour = Duration::from_secs(3_600);
        let first = moments.work(hour, &cancel).expect("nobody else");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| moments.work(hour, &cancel).map(drop));
            drop(first);
            assert!(second.join().expect("no panic").is_ok());
        });
        let _first = moments.work(hour, &cancel).expect("nobody else");
        cancel.cancel();
        assert!(matches!(
            moments.work(hour, &cancel),
            Err(LabError::Cancelled)
        ));
    }
}
