//! TCP options, well made and not.

use crate::common::hex;
use outlast_wire::SeqNumber;
use outlast_wire::tcp::{Experimental, SackBlock, TcpOptions, Timestamps, UserTimeout};

const STAMPS: Timestamps = Timestamps {
    value: 0x0102_0304,
    echo: 0x0506_0708,
};

fn sack<const N: usize>(blocks: [(u32, u32); N]) -> TcpOptions {
    let block = |(left, right)| SackBlock {
        left: SeqNumber(left),
        right: SeqNumber(right),
    };
    TcpOptions {
        sack: blocks.into_iter().map(block).collect(),
        ..TcpOptions::default()
    }
}

#[test]
fn layouts_of_linux() {
    let none = TcpOptions::default();
    let syn = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(STAMPS),
        ..none.clone()
    };
    let without_timestamps = TcpOptions {
        timestamps: None,
        ..syn.clone()
    };
    let without_sack = TcpOptions {
        sack_permitted: false,
        ..syn.clone()
    };
    let timestamps = TcpOptions {
        timestamps: Some(STAMPS),
        ..none.clone()
    };
    let both = TcpOptions {
        timestamps: Some(STAMPS),
        ..sack([(1, 2)])
    };
    let timeout = UserTimeout {
        minutes: true,
        value: 0x0102,
    };
    let user_timeout = TcpOptions {
        user_timeout: Some(timeout),
        ..none.clone()
    };
    for (options, bytes) in [
        (none, ""),
        (syn, "020405b4 0402 080a0102030405060708 01030307"),
        (without_timestamps, "020405b4 01010402 01030307"),
        (without_sack, "020405b4 0101 080a0102030405060708 01030307"),
        (timestamps, "0101 080a0102030405060708"),
        (both, "0101 080a0102030405060708 0101050a 0000000100000002"),
        (user_timeout, "1c048102"),
    ] {
        assert_eq!(options.emit()[..], hex(bytes)[..], "{options:?}");
        assert_eq!(TcpOptions::parse(&hex(bytes)), options, "{bytes}");
    }
}

#[test]
fn experimental_option_is_padded_behind() {
    for (length, bytes) in [
        (0, "fd02 0101"),
        (2, "fd04 aabb"),
        (3, "fd05 aabbaa 010101"),
    ] {
        let data = [0xaa, 0xbb, 0xaa].into_iter().take(length).collect();
        let experimental = Some(Experimental { kind: 253, data });
        let options = TcpOptions {
            experimental,
            ..TcpOptions::default()
        };
        assert_eq!(options.emit()[..], hex(bytes)[..]);
        assert_eq!(TcpOptions::parse(&hex(bytes)), options);
    }
}

#[test]
fn as_many_sack_blocks_as_fit() {
    let four = sack([(1, 2), (3, 4), (5, 6), (7, 8)]);
    assert_eq!(four.emit().len(), 36);
    let with_timestamps = TcpOptions {
        timestamps: Some(STAMPS),
        ..four.clone()
    };
    assert_eq!(with_timestamps.emit().len(), 40);
    assert_eq!(with_timestamps.fitted().sack[..], four.sack[..3]);
}

#[test]
fn what_cannot_be_said_is_left_out() {
    for value in [0, 0x8000] {
        let timeout = UserTimeout {
            minutes: false,
            value,
        };
        let options = TcpOptions {
            user_timeout: Some(timeout),
            ..TcpOptions::default()
        };
        assert_eq!(options.fitted(), TcpOptions::default(), "{value}");
    }
    let experimental = Some(Experimental {
        kind: 252,
        data: [1, 2].into_iter().collect(),
    });
    let options = TcpOptions {
        experimental,
        ..TcpOptions::default()
    };
    assert!(options.emit().is_empty());
}

#[test]
fn illegal_lengths_are_survived() {
    let read = TcpOptions {
        mss: Some(1460),
        malformed: true,
        ..TcpOptions::default()
    };
    for bytes in [
        // Zero, one, behind the end, and a kind without length: nothing more is read.
        "020405b4 0800 0402",
        "020405b4 0801 0402",
        "020405b4 080a 0402",
        "020405b4 01010108",
        // A length that the kind does not have: the next option is read.
        "0804aaaa 020405b4",
        "03040707 020405b4",
        "0403aa 020405b4",
        "0502 020405b4",
        "0509 01020304050607 020405b4",
        "1c03aa 020405b4",
    ] {
        assert_eq!(TcpOptions::parse(&hex(bytes)), read, "{bytes}");
    }
}

#[test]
fn end_of_list_and_unknown_kinds() {
    let read = TcpOptions {
        mss: Some(1460),
        ..TcpOptions::default()
    };
    for bytes in [
        "020405b4 00 ffffff",
        "1e04aabb 020405b4",
        "020405b4 1d02 0101",
    ] {
        assert_eq!(TcpOptions::parse(&hex(bytes)), read, "{bytes}");
    }
}

#[test]
fn of_equal_options_the_last_counts() {
    assert_eq!(TcpOptions::parse(&hex("02040001 02040002")).mss, Some(2));
    let experimental = TcpOptions::parse(&hex("fd04aaaa fe04bbbb")).experimental;
    assert_eq!(experimental.expect("two were there").kind, 253);
}

#[test]
fn user_timeout_of_zero_is_ignored() {
    assert_eq!(TcpOptions::parse(&hex("1c048000")), TcpOptions::default());
}
