//! The emulated Ethernet between two TAP devices.

use super::AirBroken;
use super::sight::{Heard, Sight};
use bytes::Bytes;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_link::{Frame, Link, LinkConfig, LinkEvent, PipeConfig, Way};
use outlast_linux::clock;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::priority::raise_current_thread;
use outlast_linux::timer::Timer;
use outlast_linux::tun::Tun;
use outlast_linux::waker::Waker;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

/// How the link goes away. What is queued or on its way is lost in each case.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Cut {
    /// Both ends lose their carrier.
    Carrier,
    /// The mobile host alone loses its carrier: the gateway's interface does not show it.
    MobileCarrier,
    /// Nothing crosses, and the interfaces do not show it: neighbours do not answer.
    Neighbour,
    /// Neighbours answer, and nothing else crosses, as if a hop behind them were gone.
    BlackHole,
}

/// Bytes of IP packets that were handed to the link towards the mobile host since it came back,
/// in each [`WINDOW`].
pub type Offered = Vec<u64>;

/// Time over which what is offered is summed.
pub const WINDOW: Duration = Duration::from_millis(10);
/// Windows that are kept.
const WINDOWS: usize = 6_000;
/// Frames taken from one end before the other one has its turn.
const BURST: usize = 64;
/// Destination, source and type.
const ETHERNET_HEADER: usize = 14;
/// An Ethernet frame without its check sum.
const LONGEST_FRAME: usize = 65_535;

const TIMER: Token = Token(2);
const ORDERS: Token = Token(3);

/// A running link. Dropped, it ends.
#[derive(Debug)]
pub struct Air {
    orders: Sender<Order>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

/// What the link has seen since it came back.
#[derive(Clone, Debug, Default)]
pub struct Since {
    /// At the gateway.
    pub heard_by_gateway: Heard,
    /// At the mobile host.
    pub heard_by_mobile: Heard,
    /// By how much the emulator was late at worst.
    pub worst_delay: Duration,
    /// IP packets that both ends sent into the void while the link was away; none where the kernel keeps them back for want
    /// of a carrier or of the neighbour's address.
    pub sent_while_away: u64,
    /// Frames towards the mobile host that found the link's queue full, in each [`WINDOW`].
    pub dropped: Vec<u64>,
    /// See [`Offered`].
    pub offered: Offered,
}

#[derive(Debug)]
enum Order {
    Cut(Cut, Sender<io::Result<Instant>>),
    Mend(Sender<io::Result<Instant>>),
    Tell(Sender<Since>),
    ResetDelay,
    Newest(Sender<Option<Bytes>>),
    End,
}

impl Air {
    /// A link with the same pipe each way, between the devices of a gateway and of a mobile host.
    ///
    /// # Errors
    /// When the process is out of descriptors or threads.
    pub fn between(
        taps: [Tun; 2],
        rate: BitRate,
        delay: Duration,
        queue: usize,
    ) -> io::Result<Self> {
        let pipe = PipeConfig {
            rate: Some(rate),
            delay,
            queue,
            ..PipeConfig::default()
        };
        let config = LinkConfig {
            to_mobile: pipe,
            to_fixed: pipe,
            ..LinkConfig::default()
        };
        Self::start(config, taps)
    }

    /// Begins, with the gateway's device and the mobile host's.
    fn start(config: LinkConfig, taps: [Tun; 2]) -> io::Result<Self> {
        let waker = Arc::new(Waker::new()?);
        let (orders, inbox) = mpsc::channel();
        let ether = Ether::new(config, taps, inbox, Arc::clone(&waker))?;
        let thread = thread::Builder::new().name("air".into()).spawn(move || {
            // Whoever gives the next order hears that nobody takes it.
            if let Err(error) = ether.run() {
                tracing::error!(%error, "the emulated link broke down");
            }
        })?;
        Ok(Self {
            orders,
            waker,
            thread: Some(thread),
        })
    }

    pub(super) fn cut(&self, how: Cut) -> io::Result<Instant> {
        self.ask(|reply| Order::Cut(how, reply))?
    }

    pub(super) fn mend(&self) -> io::Result<Instant> {
        self.ask(Order::Mend)?
    }

    /// What has crossed since the link came back.
    ///
    /// # Errors
    /// When the emulator broke down.
    pub fn since(&self) -> io::Result<Since> {
        self.ask(Order::Tell)
    }

    /// Counts [`Since::worst_delay`] from now on.
    ///
    /// # Errors
    /// When the emulator broke down.
    pub fn reset_delay(&self) -> io::Result<()> {
        self.orders.send(Order::ResetDelay).map_err(|_| AirBroken)?;
        self.waker.wake();
        Ok(())
    }

    /// The newest IP packet from the mobile host, be it that it was lost; `None` if there was none.
    ///
    /// # Errors
    /// When the emulator broke down.
    pub fn newest_of_mobile(&self) -> io::Result<Option<Bytes>> {
        self.ask(Order::Newest)
    }

    fn ask<T>(&self, order: impl FnOnce(Sender<T>) -> Order) -> io::Result<T> {
        let (reply, answer) = mpsc::channel();
        self.orders.send(order(reply)).map_err(|_| AirBroken)?;
        self.waker.wake();
        Ok(answer.recv().map_err(|_| AirBroken)?)
    }
}

impl Drop for Air {
    fn drop(&mut self) {
        // It has ended already if nobody hears it.
        let _ = self.orders.send(Order::End);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by then.
            let _ = thread.join();
        }
    }
}

/// A frame, by reference count.
#[derive(Clone, Debug)]
struct Ethernet(Bytes);

impl Frame for Ethernet {
    /// The length of the IP packet, as elsewhere in the lab.
    fn wire_len(&self) -> ByteCount {
        ByteCount(self.0.len().saturating_sub(ETHERNET_HEADER) as u64)
    }
}

/// The loop: descriptors, clock and timer around the pure link.
#[derive(Debug)]
struct Ether {
    config: LinkConfig,
    link: Link<Ethernet>,
    gone: Option<Cut>,
    /// The gateway's, and the mobile host's.
    taps: [Tun; 2],
    inbox: Receiver<Order>,
    waker: Arc<Waker>,
    poller: Poller,
    timer: Timer,
    back_at: Instant,
    /// See [`Since::sent_while_away`]: in the outage that goes on.
    sent_while_away: u64,
    since: Since,
    newest_of_mobile: Option<Ethernet>,
    buffer: Box<[u8]>,
}

/// Which way a frame goes that comes from this device.
const WAYS: [Way; 2] = [Way::ToMobile, Way::ToFixed];

impl Ether {
    fn new(
        config: LinkConfig,
        taps: [Tun; 2],
        inbox: Receiver<Order>,
        waker: Arc<Waker>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        let timer = Timer::new()?;
        for (tap, token) in taps.iter().zip([Token(0), Token(1)]) {
            poller.add(tap, token, Interest::Readable)?;
        }
        poller.add(&timer, TIMER, Interest::Readable)?;
        poller.add(&*waker, ORDERS, Interest::Readable)?;
        Ok(Self {
            link: Link::new(config.clone()),
            config,
            gone: None,
            taps,
            inbox,
            waker,
            poller,
            timer,
            back_at: clock::now(),
            sent_while_away: 0,
            since: Since::default(),
            newest_of_mobile: None,
            buffer: vec![0; LONGEST_FRAME].into(),
        })
    }

    fn run(mut self) -> io::Result<()> {
        raise_current_thread();
        loop {
            self.catch_up(clock::now())?;
            self.timer.set(self.link.poll_timeout().map(|(at, _)| at))?;
            let ready: Vec<Token> = self.poller.wait()?.map(|ready| ready.token).collect();
            for token in ready {
                match token {
                    TIMER => self.timer.note_expiry(),
                    ORDERS => {
                        if self.hear_orders()? {
                            return Ok(());
                        }
                    }
                    Token(end) => self.take_burst(usize::from(end == 1))?,
                }
            }
        }
    }

    /// Follows what was ordered; whether that is to end.
    fn hear_orders(&mut self) -> io::Result<bool> {
        self.waker.reset()?;
        while let Ok(order) = self.inbox.try_recv() {
            // Who asks waits for the answer; if it is gone, it does not care.
            match order {
                Order::Cut(how, reply) => drop(reply.send(self.cut(how))),
                Order::Mend(reply) => drop(reply.send(self.mend())),
                Order::Tell(reply) => drop(reply.send(self.since.clone())),
                Order::ResetDelay => self.since.worst_delay = Duration::ZERO,
                Order::Newest(reply) => {
                    let newest = self.newest_of_mobile.as_ref();
                    drop(reply.send(newest.map(|frame| frame.0.slice(ETHERNET_HEADER..))));
                }
                Order::End => return Ok(true),
            }
        }
        Ok(false)
    }

    fn cut(&mut self, how: Cut) -> io::Result<Instant> {
        self.set_carrier(how, false)?;
        self.gone = Some(how);
        self.sent_while_away = 0;
        self.link = Link::new(self.config.clone());
        Ok(clock::now())
    }

    fn mend(&mut self) -> io::Result<Instant> {
        // What the hosts have sent until now was sent into the void.
        for end in 0..self.taps.len() {
            while let Some(frame) = self.taps[end].read(&mut self.buffer)? {
                self.sent_while_away += u64::from(!Sight::of(frame).is_local());
            }
        }
        // No frame crosses the link in less than its delay, so that both ends have their carrier
        // before either hears of it.
        let gone = self.gone.take();
        self.link = Link::new(self.config.clone());
        self.since = Since {
            sent_while_away: self.sent_while_away,
            ..Since::default()
        };
        if let Some(how) = gone {
            self.set_carrier(how, true)?;
        }
        self.back_at = clock::now();
        Ok(self.back_at)
    }

    /// Takes the carrier from the ends that lose it, or gives it back.
    ///
    /// The mobile host's end first: who asks for a neighbour that has no carrier yet asks again
    /// only after a second.
    fn set_carrier(&self, how: Cut, is_there: bool) -> io::Result<()> {
        let losers = match how {
            Cut::Carrier => self.taps.len(),
            Cut::MobileCarrier => 1,
            Cut::Neighbour | Cut::BlackHole => 0,
        };
        for tap in self.taps.iter().rev().take(losers) {
            tap.set_carrier(is_there)?;
        }
        Ok(())
    }

    fn take_burst(&mut self, end: usize) -> io::Result<()> {
        for _ in 0..BURST {
            let Some(frame) = self.taps[end].read(&mut self.buffer)? else {
                return Ok(());
            };
            let frame = Ethernet(Bytes::copy_from_slice(frame));
            let now = clock::now();
            self.catch_up(now)?;
            if WAYS[end] == Way::ToFixed && matches!(Sight::of(&frame.0), Sight::Packet(_)) {
                self.newest_of_mobile = Some(frame.clone());
            }
            if self.crosses(&frame) {
                self.note_offer(now, end, &frame);
                self.link.handle_packet(now, WAYS[end], frame);
                self.deliver(now)?;
            } else {
                self.sent_while_away += u64::from(!Sight::of(&frame.0).is_local());
            }
        }
        Ok(())
    }

    fn crosses(&self, frame: &Ethernet) -> bool {
        match self.gone {
            None => true,
            Some(Cut::Carrier | Cut::MobileCarrier | Cut::Neighbour) => false,
            Some(Cut::BlackHole) => Sight::of(&frame.0).is_local(),
        }
    }

    fn note_offer(&mut self, now: Instant, end: usize, frame: &Ethernet) {
        if WAYS[end] == Way::ToMobile && self.gone.is_none() {
            let bytes = frame.wire_len().as_u64();
            count(&mut self.since.offered, now.since(self.back_at), bytes);
        }
    }

    fn catch_up(&mut self, now: Instant) -> io::Result<()> {
        let due = self.link.quiet_until();
        if due <= now {
            let late = now.since(due);
            self.since.worst_delay = self.since.worst_delay.max(late);
            self.link.handle_timeout(now);
            self.deliver(now)?;
        }
        Ok(())
    }

    fn deliver(&mut self, now: Instant) -> io::Result<()> {
        while let Some((way, Ethernet(frame))) = self.link.poll_transmit() {
            let (end, heard) = match way {
                Way::ToMobile => (1, &mut self.since.heard_by_mobile),
                Way::ToFixed => (0, &mut self.since.heard_by_gateway),
            };
            if self.gone.is_none() {
                heard.note(now, Sight::of(&frame));
            }
            // As a host that is too busy to take a frame from its network card; without carrier
            // nothing comes this far.
            let _written = self.taps[end].write(&frame)?;
        }
        // A queue that overflows drops, as queues do.
        while let Some(event) = self.link.poll_event() {
            if matches!(
                event,
                LinkEvent::Dropped {
                    way: Way::ToMobile,
                    ..
                }
            ) {
                count(&mut self.since.dropped, now.since(self.back_at), 1);
            }
        }
        Ok(())
    }
}

/// Adds to the window of this time.
fn count(windows: &mut Vec<u64>, after: Duration, more: u64) {
    let window = usize::try_from(after.as_nanos() / WINDOW.as_nanos()).unwrap_or(usize::MAX);
    if window >= WINDOWS {
        return;
    }
    if windows.len() <= window {
        windows.resize(window + 1, 0);
    }
    windows[window] += more;
}
