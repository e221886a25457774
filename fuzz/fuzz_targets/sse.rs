//! A stream of events, cut anywhere: the same chunks, whatever the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rackmath_measure::gauge::Chunk;
use rackmath_measure::sse::Events;

fuzz_target!(|input: (&[u8], u8)| {
    let (bytes, step) = input;
    let all = |step: usize| {
        let (mut events, mut chunks) = (Events::default(), Vec::new());
        for piece in bytes.chunks(step.max(1)) {
            if events.push(piece, |data| chunks.push(Chunk::read(data))).is_err() {
                break;
            }
        }
        chunks
    };
    assert_eq!(all(bytes.len()), all(usize::from(step)));
});
