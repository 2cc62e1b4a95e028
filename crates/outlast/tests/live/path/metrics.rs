//! Metrics, as somebody asks for them who watches the gateway.

use std::io::{Read, Write};

/// The gateway's end towards the fixed host.
pub(crate) const METRICS: &str = "192.0.2.1:9464";
pub(crate) const METRICS_PORT: u16 = 9464;

/// An answer by HTTP: its status line and headers, and its body.
pub(crate) fn ask(mut stream: impl Read + Write, request: &str) -> (String, String) {
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer by HTTP");
    (head.to_owned(), body.to_owned())
}
