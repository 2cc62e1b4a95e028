mod common;
use common::*;
use outlast_core::time::{Duration, Instant};
use outlast_tcp::profile::*;

#[test]
fn explore() {
    for (cc, secs) in [
        (Congestion::Cubic, 10u64),
        (Congestion::Cubic, 30),
        (Congestion::Cubic, 60),
        (Congestion::Reno, 10),
        (Congestion::Bbr, 10),
        (Congestion::Bbr, 30),
        (Congestion::Bbr, 60),
    ] {
        let mut link = link();
        link.outages = outage(5_000, secs * 1000);
        let mut c = config(&LINUX_6);
        c.congestion = Some(cc);
        let s = c.mirrored();
        let mut pair = Pair::new(c, s, link).recording();
        pair.client.send(pair.now, 100_000_000);
        pair.run_until(Instant::from_millis(4_999));
        println!(
            "== {cc:?} {secs}: before {:?} rcv {} drops {}",
            pair.client.trace(),
            pair.server.received(),
            pair.drops
        );
        pair.run_until(Instant::from_millis(5_000 + secs * 1000));
        println!("   up: {:?}", pair.client.trace());
        let before = pair.server.received();
        pair.run_to(before + 1, Duration::from_secs(200));
        println!("   resume {} ms", ms(pair.now) - 5000 - secs * 1000);
        let r = pair.retransmissions();
        println!(
            "   retrans at {:?}",
            r.iter()
                .filter(|(a, _)| ms(*a) > 5000)
                .map(|(a, _)| ms(*a) - 5000)
                .take(24)
                .collect::<Vec<_>>()
        );
        pair.run_until(pair.now + Duration::from_secs(2));
        println!(
            "   after 2s {:?} {:?}",
            pair.client.trace(),
            pair.client.counters()
        );
    }
}
#[test]
fn profiles() {
    for p in Profile::ALL {
        let mut pair = Pair::of(p, link()).recording();
        pair.client.send(pair.now, 2_000_000);
        pair.run_until(Instant::from_millis(3000));
        println!(
            "{} {:?} rcv {}",
            p.name,
            pair.client.trace(),
            pair.server.received()
        );
    }
}
