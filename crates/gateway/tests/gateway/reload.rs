//! What changes while a gateway runs: nothing that is kept is lost by it. And what it tells of each
//! connection.

use crate::path::{LINK, MSS, Path};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::gateway::Activity;
use outlast_gateway::limits::Limits;
use outlast_gateway::links::LinkState;
use outlast_gateway::mechanisms::path::{PathMechanismKind, TakeReason};
use outlast_gateway::tracking::Phase;

#[test]
fn lower_caps_keep_what_is_kept_and_take_no_more() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.down();
    for n in 0..10 {
        path.data(n * MSS, MSS);
    }
    let held = path.gateway.held();
    path.gateway.set_limits(Limits {
        held_in_all: ByteCount(held.0 / 2),
        held_per_flow: ByteCount(held.0 / 2),
        flows: 1,
        ..Limits::default()
    });
    assert_eq!(path.gateway.held(), held);
    path.up();
    path.after_ms(2_000);
    assert!(path.sent().len() >= 10, "all that was kept went out");
    path.far_ack(10 * MSS);
    assert!(path.gateway.held() < held, "and is given back");
}

#[test]
fn a_smaller_table_lets_no_further_flow_in_and_loses_none_at_once() {
    let mut path = Path::new(PathMechanismKind::Hold);
    for port in 0..5 {
        path.use_port(10_000 + port);
        path.open();
    }
    path.gateway.set_limits(Limits {
        flows: 2,
        ..Limits::default()
    });
    assert_eq!(path.gateway.flows(), 5);
    path.use_port(20_000);
    path.open();
    // One gave way to the new flow, one more to its being established.
    assert_eq!(path.gateway.flows(), 4);
    assert_eq!(path.gateway.counters().flows_displaced, 2);
}

#[test]
fn another_mechanism_is_for_connections_that_begin_later() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.down();
    assert_eq!(path.data(0, MSS), Some(TakeReason::LinkDown));
    path.gateway.set_mechanism(PathMechanismKind::None);
    assert_eq!(path.data(MSS, MSS), Some(TakeReason::LinkDown));
    path.use_port(20_000);
    assert_eq!(path.data(0, MSS), None, "a new connection takes its chance");
    assert_eq!(path.gateway.flows(), 1);
    path.up();
    path.after_ms(2_000);
    assert!(path.sent().len() >= 2, "what was kept went out");
    path.far_ack(2 * MSS);
}

#[test]
fn another_rate_holds_at_once_and_drops_nothing() {
    let rate = |bits| BitRate::from_bits_per_second(bits);
    let mut path = Path::with_rate(PathMechanismKind::Hold, Limits::default(), rate(10_000));
    path.open();
    path.down();
    for n in 0..30 {
        path.data(n * MSS, MSS);
    }
    path.up();
    path.far_ack(0);
    path.after_ms(1_000);
    let slow = path.sent().len();
    assert!(slow < 15, "{slow} at 10 kbit/s");
    let now = path.now();
    path.gateway
        .set_rate(now, LINK.interface, rate(100_000_000));
    path.after_ms(100);
    assert!(slow + path.sent().len() >= 30);
}

#[test]
fn a_report_says_what_is_kept_and_what_is_done_for_each_flow() {
    let mut path = Path::established(PathMechanismKind::Hold);
    let only = |path: &Path| {
        let mut reports = path.gateway.flow_reports();
        let report = reports.next().expect("one flow");
        assert!(reports.next().is_none());
        report
    };
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    let report = only(&path);
    assert_eq!(report.activity, Activity::Passing);
    assert_eq!((report.phase, report.outstanding), (Phase::Established, 0));
    assert_eq!(report.rtt, Some(std::time::Duration::from_millis(40)));
    path.down();
    path.data(MSS, MSS);
    path.data(2 * MSS, MSS);
    let report = only(&path);
    assert_eq!(report.activity, Activity::Holding);
    assert_eq!(report.outstanding, 2 * MSS);
    assert_eq!(report.held, path.gateway.held());
    assert_eq!(report.last_packet, path.now());
    path.up();
    path.after_ms(5);
    assert_eq!(only(&path).activity, Activity::Awaiting);
    path.far_ack(3 * MSS);
    let report = only(&path);
    assert_eq!(report.activity, Activity::Passing);
    assert_eq!(report.held, path.gateway.held());
    assert_eq!(
        path.gateway.link_state(LINK).map(|link| link.state),
        Some(LinkState::Up)
    );
}

#[test]
fn a_report_says_what_was_acknowledged_ahead() {
    let mut path = Path::established(PathMechanismKind::AcknowledgeAhead);
    path.down();
    path.data(0, MSS);
    let report = path.gateway.flow_reports().next().expect("one flow");
    assert!(report.account.acknowledged_ahead);
    assert!(!report.account.why.is_empty());
}
