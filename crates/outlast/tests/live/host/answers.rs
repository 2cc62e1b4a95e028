//! An outage takes the answer to a question that has arrived. The host that has asked runs the agent, and the other one,
//! which has to send the answer again, nothing.

use super::requests::{MOBILE, Network, REMOTE};
use super::{AT_ONCE, Agent, OUTAGE, PATIENCE, pause};
use crate::support::{Place, again};
use outlast_base::time::Duration;
use outlast_linux::clock;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Questions before the one whose answer is lost.
const ROUNDS: usize = 8;
const LENGTH: usize = 64;

/// Answers each question at once; before the last answer the link goes.
fn serve(listener: &TcpListener, network: &Network) {
    let (mut stream, _) = listener.accept().expect("the mobile host comes");
    for round in 0..=ROUNDS {
        let mut question = [0; LENGTH];
        stream.read_exact(&mut question).expect("it asks");
        if round == ROUNDS {
            network.cut();
        }
        stream.write_all(&question).expect("a connection");
    }
    // It stays until the mobile host has the answer.
    let rest = again(|| stream.read(&mut [0]));
    assert_eq!(rest.expect("it ends"), 0);
}

fn ask(stream: &mut TcpStream) {
    stream.write_all(&[7; LENGTH]).expect("a connection");
}

fn hear(stream: &mut TcpStream) {
    stream.read_exact(&mut [0; LENGTH]).expect("an answer");
}

/// From the link's return until the mobile host has the answer.
fn wait(network: &Network) -> Duration {
    let listen = || TcpListener::bind((REMOTE, 0)).expect("a port");
    let listener = network.remote.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    thread::scope(|scope| {
        scope.spawn(|| serve(&listener, network));
        let connect = || TcpStream::connect(to).expect("it listens");
        let mut stream = network.mobile.run(connect).expect("enter");
        assert_eq!(stream.local_addr().expect("bound").ip().to_string(), MOBILE);
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        for _ in 0..ROUNDS {
            ask(&mut stream);
            hear(&mut stream);
            pause(Duration::from_millis(100));
        }
        ask(&mut stream);
        pause(OUTAGE);
        network.mend();
        let back = clock::now();
        hear(&mut stream);
        clock::now().since(back)
    })
}

#[test]
fn an_answer_that_was_lost_comes_at_once_from_a_host_without_the_agent() {
    let mut tried = Vec::new();
    // The acknowledgement of the question has to be lost, too; a busy machine may send it before the link is cut.
    for _ in 0..3 {
        let (Some(with), Some(without)) = (Network::new(true), Network::new(true)) else {
            return;
        };
        let place = Place::new();
        let agent = Agent::start(&place, &with.mobile, &[]);
        let waits = thread::scope(|scope| {
            let both = [&with, &without].map(|network| scope.spawn(|| wait(network)));
            both.map(|wait| wait.join().expect("it is measured"))
        });
        drop(agent);
        let [with, without] = waits;
        if with <= AT_ONCE && without > AT_ONCE * 4 {
            return;
        }
        tried.push(waits);
    }
    panic!("with the agent and without: {tried:?}");
}
