//! Server-sent events, piece by piece: bytes as the socket gives them in, the data of whole events out.
//!
//! An event ends with an empty line; lines end with LF, CR LF or CR; `data:` may be followed by one blank; lines that begin with a colon
//! are comments (servers send them to keep a connection open); several data lines are one text with line ends between them.
//! Source: HTML Living Standard, section 9.2.6.

/// An event longer than this is no answer of a language model.
pub const MOST_BYTES: usize = 4 << 20;

/// Takes a stream apart.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// A CR was the last byte: an LF behind it belongs to it.
    after_cr: bool,
    /// Comments seen: pings.
    pub comments: u64,
}

/// The event grew beyond [`MOST_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl Events {
    /// Hands the data of each event that `bytes` complete to `take`.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), TooLong> {
        for &byte in bytes {
            match byte {
                b'\n' if self.after_cr => self.after_cr = false,
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    self.end_line(&mut take);
                }
                _ => {
                    self.after_cr = false;
                    self.line.push(byte);
                    if self.line.len() + self.data.len() > MOST_BYTES {
                        return Err(TooLong);
                    }
                }
            }
        }
        Ok(())
    }

    /// Bytes of an event that has not ended.
    pub fn pending(&self) -> usize {
        self.line.len() + self.data.len()
    }

    fn end_line(&mut self, take: &mut impl FnMut(&[u8])) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            if self.has_data {
                take(&self.data);
            }
            self.data.clear();
            self.has_data = false;
        } else if line[0] == b':' {
            self.comments += 1;
        } else if let Some(rest) = line.strip_prefix(b"data") {
            let value = match rest {
                [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
                [] => Some(rest),
                _ => None,
            };
            if let Some(value) = value {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
        }
        // Other fields (event, id, retry) say nothing about tokens. The allocation is kept.
        self.line = line;
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(pieces: &[&[u8]]) -> Vec<String> {
        let (mut events, mut out) = (Events::default(), Vec::new());
        for piece in pieces {
            events.push(piece, |data| out.push(String::from_utf8_lossy(data).into_owned())).expect("short");
        }
        out
    }

    #[test]
    fn events_with_every_line_end_and_pings_between_them() {
        let text = b": ping\n\ndata: {\"a\":1}\n\ndata:{\"b\":2}\r\n\r\ndata: x\rdata: y\r\rid: 7\n\ndata: [DONE]\n\n";
        assert_eq!(all(&[text]), ["{\"a\":1}", "{\"b\":2}", "x\ny", "[DONE]"]);
    }

    #[test]
    fn an_event_without_end_is_none_and_a_long_one_is_refused() {
        assert_eq!(all(&[b"data: half"]), Vec::<String>::new());
        let mut events = Events::default();
        let block = vec![b'a'; 1 << 20];
        let mut pushes = (0..10).map(|_| events.push(&block, |_| ()));
        assert!(pushes.any(|done| done == Err(TooLong)));
    }

    proptest! {
        #[test]
        fn where_the_reads_end_changes_nothing(bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), Just(b'a'), Just(b't'), any::<u8>()], 0..400), cut in 0usize..400) {
            let cut = cut.min(bytes.len());
            let whole = all(&[&bytes]);
            prop_assert_eq!(&whole, &all(&[&bytes[..cut], &bytes[cut..]]));
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&whole, &all(&single));
        }

        #[test]
        fn what_is_written_as_events_is_read_back(texts in proptest::collection::vec("[^\r\n]{0,40}", 0..20)) {
            let stream = texts.iter().fold(String::new(), |all, t| all + "data: " + t + "\n\n");
            prop_assert_eq!(all(&[stream.as_bytes()]), texts);
        }
    }
}
