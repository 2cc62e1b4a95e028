//! How the gateway behaves, one file per mechanism or claim.

mod path;

mod acknowledge_ahead;
mod attackers;
mod auto;
mod caps;
mod connections;
mod contest;
mod damping;
mod frozen;
mod gaps;
mod gathering;
mod handshakes;
mod hold;
mod holes;
mod hostile;
mod m_tcp;
mod misleading_ack;
mod model;
mod one_sided;
mod pace;
mod peers;
mod release;
mod reload;
mod retransmission_cache;
mod shares;
mod shown_holes;
mod silence;
mod smart_link;
mod stale_echo;
mod standstill;
mod timestamps;
mod tracker;
mod unseen;
mod wake;
mod zero_window_ack;
