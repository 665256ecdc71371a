//! Any bytes as a frame: parsed, or refused with somebody to answer. What is parsed keeps its promises, and its payload
//! becomes its type's struct or an error that names a field.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use protocol::{Frame, FrameError, MAX_ANSWERED_ID_BYTES, MAX_ID_BYTES, MessageType, encode_as, parse_payload};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    match Frame::parse(bytes) {
        Ok(frame) => {
            assert!((1..=MAX_ID_BYTES).contains(&frame.id.len()));
            assert!(frame.payload.get().starts_with('{'));
            survives_a_round_trip(&frame);
            payload_is_read(&frame);
            Corpus::Keep
        }
        Err(FrameError::Malformed { id, field, .. }) => {
            assert!((1..=MAX_ANSWERED_ID_BYTES).contains(&id.len()));
            assert!(!field.is_empty());
            Corpus::Keep
        }
        Err(FrameError::EndlessId { begins }) => {
            assert_eq!(begins.chars().count(), 64);
            Corpus::Keep
        }
        Err(FrameError::Unanswerable(_)) => Corpus::Keep,
    }
});

/// Whatever came in as type and id goes out in an answer that the other side reads the same.
fn survives_a_round_trip(frame: &Frame<'_>) {
    let version = frame.version.unwrap_or(protocol::PROTOCOL_VERSION);
    let text = encode_as(version, &frame.kind, &frame.id, frame.pending_capacity, &frame.payload)
        .expect("what was JSON can be written as JSON");
    let again = Frame::parse(text.as_bytes()).expect("what we wrote can be read");
    assert_eq!((&again.kind, &again.id), (&frame.kind, &frame.id));
    assert_eq!(again.payload.get(), frame.payload.get());
}

/// The payload as the struct of its type, where it is a request of files, commands or sessions.
fn payload_is_read(frame: &Frame<'_>) {
    macro_rules! read {
        ($($kind:ident as $payload:ty),* $(,)?) => {
            match frame.message_type() {
                $(Some(MessageType::$kind) => {
                    if let Err(error) = parse_payload::<$payload>(frame.payload) {
                        assert!(!error.field.is_empty());
                        // An error goes back to the platform: it may not carry a 16 MiB value along.
                        assert!(error.problem.chars().count() <= 301);
                    }
                })*
                _ => {}
            }
        };
    }
    read!(
        HelloAck as protocol::HelloAck,
        FileRead as protocol::FileRead,
        FileWrite as protocol::FileWrite,
        FileStat as protocol::FileStat,
        FileList as protocol::FileList,
        FileDelete as protocol::FileDelete,
        FileMove as protocol::FileMove,
        ExecuteCommand as protocol::ExecuteCommand,
    );
}
