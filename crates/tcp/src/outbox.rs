//! What waits to be taken by the driver.

use alloc::vec::Vec;

/// Things that leave in the order in which they came. Drivers take all there is before anything more
/// happens: the place of what has been taken is used again when nothing is left.
#[derive(Clone, Debug)]
pub(crate) struct Outbox<T> {
    items: Vec<T>,
    /// As many of them are gone.
    taken: usize,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            taken: 0,
        }
    }
}

impl<T: Copy> Outbox<T> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// The one that came last.
    #[inline]
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.items.last_mut()
    }

    /// The one that leaves next.
    #[inline]
    pub(crate) fn first(&self) -> Option<&T> {
        self.items.get(self.taken)
    }

    /// The first has left.
    #[inline]
    pub(crate) fn drop_first(&mut self) {
        self.taken += 1;
        if self.taken >= self.items.len() {
            self.items.clear();
            self.taken = 0;
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = *self.first()?;
        self.drop_first();
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.pop(), None);
        outbox.push(1);
        outbox.push(2);
        assert_eq!(outbox.pop(), Some(1));
        outbox.push(3);
        assert_eq!(outbox.pop(), Some(2));
        assert!(!outbox.is_empty());
        assert_eq!(outbox.pop(), Some(3));
        assert!(outbox.is_empty());
        assert_eq!(outbox.pop(), None);
    }
}
