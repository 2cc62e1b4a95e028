//! The rules of `hold`, each with a switch: what a rule is worth shows when it is off.
//!
//! A gateway obeys all of them; tests, benchmarks and trials switch one off at a time
//! (`docs/results/hold-rules.md`).

/// One rule of `hold`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum HoldRule {
    /// The newest acknowledgement that the link dropped goes out, before all data.
    NewestAck,
    /// The far host is told first without timestamps of data that it may not know to have arrived, before it is asked or woken;
    /// nothing that follows echoes a timestamp from before the outage.
    UntimedFirst,
    /// Before that, a far host that was told little at a time is sent ICMP errors about each number that it may stand at.
    WakeThinSender,
    /// An acknowledgement that would make a far host's timeout look spurious does not go out.
    WithholdMisleading,
    /// What may have arrived before the outage waits for the far host's first answer.
    DoubtTransmitted,
    /// After mere silence only a repeated acknowledgement ends that doubt.
    DoubtAfterSilence,
    /// Without SACK an answer ends that doubt for the oldest segment only, as long as the link delivers.
    DoubtWithoutSack,
    /// Without SACK one new segment is dropped where the link delivers what it had kept: its queue is full.
    SignalOnce,
    /// The oldest segment goes out at once, though it may have arrived.
    OldestAtOnce,
    /// The first copy of a segment goes out, as long as its timestamp is taken.
    FirstCopy,
    /// Of several segments the one with the oldest timestamp goes out first.
    OldestStampFirst,
    /// Few segments with older timestamps go before the one that the far host lacks next.
    FewBeforeWanted,
    /// What is behind a segment that passed unseen goes out once all before that is acknowledged.
    GapInOrder,
    /// What the far host would reject for its timestamp is given up.
    GiveUpStale,
    /// A kick that does not work is repeated.
    RepeatKick,
    /// The repeated kick is the freshest copy.
    FreshKick,
    /// What was re-sent and lost again goes out once more, when later segments have arrived.
    ResendOvertaken,
    /// Without SACK holes are filled for a sender that stands still after an outage.
    FillForSender,
    /// With SACK a hole that the far host shows and its sender leaves open after an outage is filled.
    FillShownHoles,
    /// A fresh segment waits behind what is kept of its own connection.
    WaitBehindOwn,
    /// New data goes no faster than what was kept, until the first answers have come.
    PaceNewData,
    /// A repetition of what was just re-sent is not forwarded.
    SuppressRepetition,
    /// The first answers after an outage go to the near host together, and echo nothing from before.
    GatherAnswers,
    /// A sender measures its round trip while the link is down.
    Nudge,
    /// A sender is handed a duplicate acknowledgement for the hole that only it can fill.
    DuplicateForHole,
    /// A far host that waits for its timeout is sent ICMP errors.
    WakeFar,
    /// Such errors go at once to a few far hosts of which it is not known yet whether they wait.
    WakeUnasked,
    /// A near host of whose data nothing is kept is sent ICMP errors.
    WakeNear,
    /// A far host that may wait is asked, if nothing else draws its answer.
    AskFar,
    /// Handshakes wait for the link, and are repeated until they are answered: the gateway obeys it for every mechanism
    /// that keeps other traffic.
    Handshakes,
}

/// Which rules of `hold` are obeyed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HoldRules(u32);

impl HoldRule {
    /// Every rule.
    pub const ALL: [Self; 30] = [
        Self::NewestAck,
        Self::UntimedFirst,
        Self::WakeThinSender,
        Self::WithholdMisleading,
        Self::DoubtTransmitted,
        Self::DoubtAfterSilence,
        Self::DoubtWithoutSack,
        Self::SignalOnce,
        Self::OldestAtOnce,
        Self::FirstCopy,
        Self::OldestStampFirst,
        Self::FewBeforeWanted,
        Self::GapInOrder,
        Self::GiveUpStale,
        Self::RepeatKick,
        Self::FreshKick,
        Self::ResendOvertaken,
        Self::FillForSender,
        Self::FillShownHoles,
        Self::WaitBehindOwn,
        Self::PaceNewData,
        Self::SuppressRepetition,
        Self::GatherAnswers,
        Self::Nudge,
        Self::DuplicateForHole,
        Self::WakeFar,
        Self::WakeUnasked,
        Self::WakeNear,
        Self::AskFar,
        Self::Handshakes,
    ];
}

impl HoldRules {
    /// All rules but `rule`.
    #[must_use]
    pub const fn without(self, rule: HoldRule) -> Self {
        Self(self.0 & !(1 << rule as u8))
    }

    /// Whether `rule` is obeyed.
    #[must_use]
    pub const fn has(self, rule: HoldRule) -> bool {
        self.0 & 1 << rule as u8 != 0
    }
}

impl Default for HoldRules {
    /// All rules are on.
    fn default() -> Self {
        Self(u32::MAX)
    }
}
