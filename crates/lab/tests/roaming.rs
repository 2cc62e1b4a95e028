//! What the lab leaves to the simulator: a mobile host that goes from gateway to gateway.

use outlast_lab::Lab;
use outlast_scenario::Scenario;
use std::path::Path;

#[test]
fn a_mobile_that_goes_from_gateway_to_gateway_is_the_simulators() {
    let plain = "[link]\nrate = \"5 Mbit/s\"\ndelay = \"5 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 kB\"\n";
    for (asked, more) in [
        ("[[handoffs]]", "[[handoffs]]\nat = \"1 s\"\nto = 2\n"),
        ("[[crashes]]", "[[crashes]]\nat = \"1 s\"\ngateway = 1\n"),
        (
            "[agents]",
            "[outlast]\ngateway = \"zero-window-ack\"\n[agents]\n",
        ),
        (
            "outlast.home_agent",
            "[outlast]\nhome_agent = \"retransmission-cache\"\n",
        ),
    ] {
        let text = format!("{plain}{more}");
        let scenario = Scenario::parse(&text, "test.toml", Path::new(".")).expect("sound");
        let refused = Lab::new(&scenario, 0).expect_err("it cannot be done");
        let message = refused.to_string();
        assert!(message.contains(&format!("no `{asked}`")), "{message}");
        assert!(message.contains("outlast sim"), "{message}");
    }
}
