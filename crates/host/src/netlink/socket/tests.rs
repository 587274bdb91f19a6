//! The protocol against a kernel that is a script: what a healthy one does only now and then.

use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};

use super::*;
use crate::netlink::link;

const MULTI: u16 = 2;

/// A socket whose other end answers the nth send with the datagrams that `script` makes from its sequence numbers.
fn scripted(script: impl Fn(usize, &[u32]) -> Vec<Vec<u8>> + Send + 'static) -> Socket {
    let family = AddressFamily::Unix;
    let pair = socketpair(family, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC);
    let (ours, theirs): (OwnedFd, OwnedFd) = pair.unwrap();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        for nth in 0.. {
            let length = recv(theirs.as_raw_fd(), &mut buffer, MsgFlags::empty()).unwrap_or(0);
            if length == 0 {
                break;
            }
            let sequences: Vec<_> = messages(&buffer[..length]).map(|m| m.sequence).collect();
            for datagram in script(nth, &sequences) {
                send(theirs.as_raw_fd(), &datagram, MsgFlags::empty()).unwrap();
            }
        }
    });
    // SAFETY: the descriptor is open, and nothing else owns it from here on.
    #[expect(unsafe_code, reason = "netlink-sys takes a descriptor only so")]
    let raw = unsafe { Raw::from_raw_fd(ours.into_raw_fd()) };
    Socket {
        raw,
        sequence: 0,
        buffer: Vec::new(),
    }
}

fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + body.len()).unwrap();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes.resize(wire::aligned(bytes.len()), 0);
    bytes
}

fn ack(sequence: u32, number: i32) -> Vec<u8> {
    let mut body = number.to_ne_bytes().to_vec();
    body.extend([0; HEADER]);
    message(ERROR, CAPPED, sequence, &body)
}

fn done(sequence: u32, flags: u16) -> Vec<u8> {
    message(DONE, MULTI | flags, sequence, &0_i32.to_ne_bytes())
}

fn entry(sequence: u32, flags: u16, text: &str) -> Vec<u8> {
    message(16, MULTI | flags, sequence, text.as_bytes())
}

#[expect(clippy::unnecessary_wraps, reason = "a reader answers so")]
fn text(body: &[u8]) -> Option<String> {
    Some(wire::string(body))
}

fn request() -> Request {
    Request {
        message: link::dump(),
        flags: 0,
        operation: "try".to_owned(),
    }
}

#[test]
fn a_dump_that_was_disturbed_starts_again() {
    let mut socket = scripted(|nth, sequences| {
        let sequence = sequences[0];
        // Marked on a part in the middle only.
        let flags = if nth < 2 { NLM_F_DUMP_INTR } else { 0 };
        vec![
            entry(sequence, 0, &format!("old{nth}")),
            entry(sequence, flags, "changing"),
            done(sequence, 0),
        ]
    });
    let found = socket.dump(link::dump(), "list", text).unwrap();
    assert_eq!(found, ["old2", "changing"]);
}

#[test]
fn a_dump_that_is_always_disturbed_is_an_error_that_passes() {
    let mut socket = scripted(|_, sequences| vec![done(sequences[0], NLM_F_DUMP_INTR)]);
    let error = socket.dump(link::dump(), "list", text).unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert!(error.to_string().contains("5 attempts"), "{error}");
}

#[test]
fn a_dump_that_fails_half_way_is_an_error() {
    let mut socket = scripted(|_, sequences| {
        let number = -nix::libc::ENODEV;
        let part = entry(sequences[0], 0, "one");
        vec![
            part,
            message(DONE, MULTI, sequences[0], &number.to_ne_bytes()),
        ]
    });
    let error = socket.dump(link::dump(), "list", text).unwrap_err();
    assert!(error.is_absent(), "{error:?}");
}

#[test]
fn what_is_left_of_an_earlier_request_is_passed_over() {
    let mut socket = scripted(|_, sequences| {
        let sequence = sequences[0];
        vec![
            entry(sequence.wrapping_sub(1), 0, "stale"),
            ack(sequence.wrapping_sub(1), -1),
            // Several messages in one datagram.
            [entry(sequence, 0, "one"), entry(sequence, 0, "two")].concat(),
            done(sequence, 0),
        ]
    });
    for _ in 0..3 {
        let found = socket.dump(link::dump(), "list", text).unwrap();
        assert_eq!(found, ["one", "two"]);
    }
}

#[test]
fn a_large_answer_is_read_whole() {
    let mut socket = scripted(|_, sequences| {
        let text = "x".repeat(100_000);
        vec![message(16, 0, sequences[0], text.as_bytes())]
    });
    let found = socket.get(link::dump(), "read", text).unwrap();
    assert_eq!(found.len(), 100_000);
}

#[test]
fn a_question_behind_changes_is_answered_in_the_same_send_unless_one_was_refused() {
    for refused in [None, Some(0), Some(1)] {
        let mut socket = scripted(move |nth, sequences| {
            assert_eq!((nth, sequences.len()), (0, 3), "one send");
            let number = |at| {
                if refused == Some(at) {
                    -nix::libc::EEXIST
                } else {
                    0
                }
            };
            vec![
                ack(sequences[0].wrapping_sub(1), -nix::libc::EPERM),
                [ack(sequences[0], number(0)), ack(sequences[1], number(1))].concat(),
                message(16, 0, sequences[2], b"found"),
            ]
        });
        let changes = [request(), request()];
        let found = socket.execute_and_get(&changes, link::dump(), "read", text);
        match refused {
            None => assert_eq!(found.unwrap(), "found"),
            Some(_) => assert!(found.unwrap_err().is_present(), "{refused:?}"),
        }
    }
}

#[test]
fn every_request_of_a_batch_gets_its_own_verdict() {
    let mut socket = scripted(|_, sequences| {
        let acks = sequences.iter().map(|sequence| {
            let number = if sequence % 10 == 0 {
                -nix::libc::EEXIST
            } else {
                0
            };
            ack(*sequence, number)
        });
        // All in one datagram, as the kernel may.
        vec![acks.collect::<Vec<_>>().concat()]
    });
    let verdicts = socket.execute((0..150).map(|_| request()).collect());
    assert_eq!(verdicts.len(), 150);
    for (nth, verdict) in verdicts.iter().enumerate() {
        assert_eq!(verdict.is_err(), (nth + 1) % 10 == 0, "{nth}: {verdict:?}");
    }
}

#[test]
fn a_kernel_that_goes_away_leaves_a_verdict_for_each() {
    let mut socket = scripted(|nth, sequences| {
        // Some of the second send is answered, and then comes what a closed socket gives: an empty datagram.
        let answered = if nth == 0 { sequences.len() } else { 10 };
        let acks = sequences.iter().map(|sequence| ack(*sequence, 0));
        let mut answers: Vec<_> = acks.take(answered).collect();
        if nth > 0 {
            answers.push(Vec::new());
        }
        answers
    });
    let verdicts = socket.execute((0..150).map(|_| request()).collect());
    assert_eq!(verdicts.len(), 150);
    let good = verdicts
        .iter()
        .take_while(|verdict| verdict.is_ok())
        .count();
    assert_eq!(good, 64 + 10);
    let rest = &verdicts[good..];
    assert!(
        rest.iter()
            .all(|v| matches!(v, Err(NetlinkError::Socket { .. })))
    );
}

#[test]
fn the_kernels_words_are_found_behind_a_whole_request_too() {
    for capped in [true, false] {
        let mut socket = scripted(move |_, sequences| {
            let mut body = (-nix::libc::EINVAL).to_ne_bytes().to_vec();
            let echoed = if capped { HEADER } else { 32 };
            body.extend(u32::try_from(echoed).unwrap().to_ne_bytes());
            body.resize(4 + echoed, 7);
            // The offset first, then the words.
            body.extend([8, 0, 2, 0, 0, 0, 0, 0]);
            body.extend([12, 0, 1, 0]);
            body.extend(b"Bad MTU\0");
            let flags = ACK_TLVS | if capped { CAPPED } else { 0 };
            vec![message(ERROR, flags, sequences[0], &body)]
        });
        let error = socket.execute(vec![request()]).remove(0).unwrap_err();
        assert_eq!(error.to_string(), "cannot try (the kernel says: Bad MTU)");
        assert_eq!(error.errno(), Some(nix::libc::EINVAL));
    }
}
