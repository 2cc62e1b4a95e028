//! The user's wishes, and the keys that say so.

use super::snapshot::{Flow, Snapshot};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::cmp::Ordering;

/// A filter is not longer.
const LONGEST_FILTER: usize = 60;
/// Rows that a page key goes on.
const PAGE: usize = 10;

/// Order of connections.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Sort {
    /// Those that stall first, of these the ones that keep the most.
    #[default]
    Stalled,
    Held,
    Unacked,
    Idle,
    Rtt,
    Far,
}

impl Sort {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stalled => "stalled",
            Self::Held => "held",
            Self::Unacked => "unacked",
            Self::Idle => "idle",
            Self::Rtt => "RTT",
            Self::Far => "far",
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Stalled => Self::Held,
            Self::Held => Self::Unacked,
            Self::Unacked => Self::Idle,
            Self::Idle => Self::Rtt,
            Self::Rtt => Self::Far,
            Self::Far => Self::Stalled,
        }
    }

    fn compare(self, a: &Flow, b: &Flow) -> Ordering {
        let largest = |of: fn(&Flow) -> f64| of(b).total_cmp(&of(a));
        match self {
            Self::Stalled => b
                .stalls()
                .cmp(&a.stalls())
                .then(largest(|one| one.held_bytes)),
            Self::Held => largest(|one| one.held_bytes),
            Self::Unacked => largest(|one| one.outstanding_bytes),
            Self::Idle => largest(|one| one.idle_s),
            Self::Rtt => largest(|one| one.rtt_s.unwrap_or_default()),
            Self::Far => a.far.cmp(&b.far).then_with(|| a.near.cmp(&b.near)),
        }
    }
}

/// The part of a history that is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) sort: Sort,
    pub(crate) is_reversed: bool,
    /// Only connections that stall.
    pub(crate) only_stalled: bool,
    /// Only connections in whose addresses, ports or state this stands.
    pub(crate) filter: String,
    /// The filter is being typed.
    pub(crate) is_typing: bool,
    /// The first connection that is shown.
    pub(crate) first: usize,
    /// Nothing new is shown.
    pub(crate) is_paused: bool,
    /// Error that keeps the newest status away.
    pub(crate) trouble: Option<String>,
}

/// A key's wish.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Next {
    Draw,
    Quit,
}

impl View {
    /// Does what the key says.
    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> Next {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if control => return Next::Quit,
            _ if self.is_typing => self.type_filter(key.code),
            KeyCode::Char('q') => return Next::Quit,
            KeyCode::Esc if self.filter.is_empty() => return Next::Quit,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            KeyCode::Char('a') => self.only_stalled = !self.only_stalled,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/' | 'f') => self.is_typing = true,
            KeyCode::Down | KeyCode::Char('j') => self.first = self.first.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.first = self.first.saturating_sub(1),
            KeyCode::PageDown => self.first = self.first.saturating_add(PAGE),
            KeyCode::PageUp => self.first = self.first.saturating_sub(PAGE),
            KeyCode::Home => self.first = 0,
            _ => {}
        }
        Next::Draw
    }

    fn type_filter(&mut self, key: KeyCode) {
        self.first = 0;
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) if !c.is_control() && self.filter.len() < LONGEST_FILTER => {
                self.filter.push(c);
            }
            _ => {}
        }
    }

    /// The connections that are wanted, in the order that is wanted.
    pub(crate) fn flows<'a>(&self, snapshot: &'a Snapshot) -> Vec<&'a Flow> {
        let has_filter = |flow: &Flow| {
            let texts = [&flow.near, &flow.far, &flow.doing];
            self.filter.is_empty() || texts.iter().any(|text| text.contains(&self.filter))
        };
        let flows = snapshot.flows.iter();
        let mut wanted: Vec<&Flow> = flows
            .filter(|flow| has_filter(flow) && (!self.only_stalled || flow.stalls()))
            .collect();
        // Those that are alike keep their places from one look to the next.
        wanted.sort_by(|a, b| {
            let by_name = || Sort::Far.compare(a, b);
            self.sort.compare(a, b).then_with(by_name)
        });
        if self.is_reversed {
            wanted.reverse();
        }
        wanted
    }
}
