//! Connections in the order in which they were last heard of, in lines by how much they may tell yet.
//!
//! Doubly linked lists over the numbers of connections: each step takes constant time.

use alloc::vec::Vec;

/// The lines in which connections stand, those first that are forgotten first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Line {
    /// Only one host was heard, or nobody sent data.
    Opening,
    /// All is acknowledged, nothing was ever lost, and little was sent.
    Calm,
    /// All is acknowledged.
    Settled,
    /// Something is not acknowledged, or a silence has consequences yet.
    Running,
}

impl Line {
    const COUNT: usize = 4;
}

/// A connection between its neighbours.
#[derive(Clone, Copy, Debug)]
struct Link {
    line: Line,
    older: Option<usize>,
    newer: Option<usize>,
}

/// The lines, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seniority {
    links: Vec<Option<Link>>,
    oldest: [Option<usize>; Line::COUNT],
    newest: [Option<usize>; Line::COUNT],
}

impl Seniority {
    /// The connection of a line that has been quiet for longest.
    pub(crate) fn oldest(&self, line: Line) -> Option<usize> {
        self.oldest[line as usize]
    }

    /// Notes that connection `number`, new or not, was heard of and stands in `line`.
    #[inline]
    pub(crate) fn touch(&mut self, number: usize, line: Line) {
        if self.newest[line as usize] == Some(number) {
            return;
        }
        self.remove(number);
        if self.links.len() <= number {
            self.links.resize(number + 1, None);
        }
        let older = self.newest[line as usize].replace(number);
        self.links[number] = Some(Link {
            line,
            older,
            newer: None,
        });
        match older.and_then(|older| self.links[older].as_mut()) {
            Some(older) => older.newer = Some(number),
            None => self.oldest[line as usize] = Some(number),
        }
    }

    /// Takes connection `number` out of its line.
    pub(crate) fn remove(&mut self, number: usize) {
        let Some(link) = self.links.get_mut(number).and_then(Option::take) else {
            return;
        };
        let line = link.line as usize;
        match link.older.and_then(|older| self.links[older].as_mut()) {
            Some(older) => older.newer = link.newer,
            None => self.oldest[line] = link.newer,
        }
        match link.newer.and_then(|newer| self.links[newer].as_mut()) {
            Some(newer) => newer.older = link.older,
            None => self.newest[line] = link.older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_was_quiet_for_longest_is_the_oldest() {
        let mut lines = Seniority::default();
        for number in 0..4 {
            lines.touch(number, Line::Opening);
        }
        assert_eq!(lines.oldest(Line::Opening), Some(0));
        lines.touch(0, Line::Opening);
        assert_eq!(lines.oldest(Line::Opening), Some(1));
        lines.touch(1, Line::Running);
        assert_eq!(lines.oldest(Line::Running), Some(1));
        assert_eq!(lines.oldest(Line::Opening), Some(2));
        lines.remove(3);
        lines.remove(2);
        assert_eq!(lines.oldest(Line::Opening), Some(0));
        lines.remove(0);
        assert_eq!(lines.oldest(Line::Opening), None);
        lines.touch(0, Line::Running);
        lines.remove(1);
        assert_eq!(lines.oldest(Line::Running), Some(0));
    }
}
