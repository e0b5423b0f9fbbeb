//! A stream from a server, whose messages are bounded, and which the server closes first.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use postgres::types::Type;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest message with data, in bytes.
pub(super) const MAX_DATA_BYTES: usize = 1 << 28;

/// The longest of any other message, in bytes. Errors repeat what they are about, and code of a table's owner raises
/// errors and notices of any length.
const MAX_OTHER_BYTES: usize = 1 << 24;

/// The bytes of a message's type and length.
const HEADER_BYTES: usize = 5;

/// About what it takes to keep a message, beside its bytes.
const KEPT_BYTES: usize = 64;

/// A message from the server that is longer than is held in memory.
#[derive(Debug)]
pub(super) struct MessageTooLong {
    bytes: usize,
}

impl Display for MessageTooLong {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "a message of {} bytes is longer than is held in memory", self.bytes)
    }
}

impl Error for MessageTooLong {}

impl MessageTooLong {
    /// Whether an error of the driver has this cause.
    pub(super) fn is_in(error: &postgres::Error) -> bool {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        cause.and_then(io::Error::get_ref).is_some_and(|cause| cause.is::<MessageTooLong>())
    }
}

/// What comes next from the server.
#[derive(Clone, Copy)]
pub(super) enum Next {
    /// What is not looked at, as it is encrypted.
    Any,
    /// The byte that says whether the server will encrypt.
    Answer,
    /// A message's type and length, of which these bytes have come.
    Header([u8; HEADER_BYTES], usize),
    /// So many bytes of a message.
    Body(usize),
    /// So many bytes of one of this type, which is looked into.
    Known(u8, usize),
}

impl Next {
    pub(super) const MESSAGE: Next = Next::Header([0; HEADER_BYTES], 0);
}

/// What has come from the server.
struct Messages {
    next: Next,
    /// The bytes of messages that the driver keeps: all until queries may come, as notices of the login, and the
    /// settings that the server tells, of which there may be any number.
    kept: usize,
    /// What of these is of each setting. One that is told again takes the place of what was told before.
    settings: HashMap<Vec<u8>, usize>,
    /// Whether queries may come.
    is_ready: bool,
    /// The bytes that have come of a message that is looked into.
    body: Vec<u8>,
}

impl Messages {
    fn new(next: Next) -> Self {
        Messages { next, kept: 0, settings: HashMap::new(), is_ready: false, body: Vec::new() }
    }

    /// Looks at the bytes that come next.
    fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some((&first, rest)) = bytes.split_first() {
            self.next = match self.next {
                Next::Any => return Ok(()),
                Next::Answer if first == b'S' => Next::Any,
                Next::Answer => {
                    bytes = rest;
                    Next::MESSAGE
                }
                Next::Header(mut header, filled) => {
                    bytes = rest;
                    header[filled] = first;
                    if filled + 1 == HEADER_BYTES {
                        self.begin(header).map_err(io::Error::other)?
                    } else {
                        Next::Header(header, filled + 1)
                    }
                }
                Next::Body(left) => {
                    let taken = left.min(bytes.len());
                    bytes = &bytes[taken..];
                    if taken == left { Next::MESSAGE } else { Next::Body(left - taken) }
                }
                Next::Known(kind, left) => {
                    let (taken, rest) = bytes.split_at(left.min(bytes.len()));
                    bytes = rest;
                    self.body.extend(taken);
                    if taken.len() == left {
                        let body = std::mem::take(&mut self.body);
                        match kind {
                            b'S' => self.keep_setting(&body)?,
                            _ => check_types(kind, &body)?,
                        }
                        Next::MESSAGE
                    } else {
                        Next::Known(kind, left - taken.len())
                    }
                }
            };
        }
        Ok(())
    }

    /// What follows the header of a message.
    fn begin(&mut self, header: [u8; HEADER_BYTES]) -> Result<Next, MessageTooLong> {
        let (kind, length) = (header[0], length(header)?);
        if !self.is_ready {
            self.keep(HEADER_BYTES + length)?;
        }
        self.is_ready |= kind == b'Z';
        Ok(match kind {
            b'T' | b't' | b'S' => Next::Known(kind, length),
            _ => Next::Body(length),
        })
    }

    /// Counts a message that the driver keeps.
    fn keep(&mut self, bytes: usize) -> Result<(), MessageTooLong> {
        self.kept += KEPT_BYTES + bytes;
        if self.kept > MAX_OTHER_BYTES { Err(MessageTooLong { bytes: self.kept }) } else { Ok(()) }
    }

    /// Counts a setting, whose name ends with the first zero byte.
    fn keep_setting(&mut self, body: &[u8]) -> io::Result<()> {
        let name = body.split(|byte| *byte == 0).next().unwrap_or_default();
        let before = self.settings.insert(name.to_vec(), KEPT_BYTES + body.len());
        self.kept -= before.unwrap_or_default();
        self.keep(body.len()).map_err(io::Error::other)
    }
}

/// Refuses types in a description of columns (`T`) or parameters (`t`) that the driver would look up. No query of the
/// program has such a one, and each that is looked up may name another one, without end.
fn check_types(kind: u8, description: &[u8]) -> io::Result<()> {
    // A count comes first. Where that is another one, the driver refuses the message.
    let mut rest = description.get(2..).unwrap_or_default();
    loop {
        if kind == b'T' {
            // The name, and after it a table and the place in that.
            let Some(end) = rest.iter().position(|byte| *byte == 0) else { return Ok(()) };
            rest = rest.get(end + 7..).unwrap_or_default();
        }
        let Some((oid, after)) = rest.split_first_chunk() else { return Ok(()) };
        let oid = u32::from_be_bytes(*oid);
        if Type::from_oid(oid).is_none() {
            let text =
                format!("a column or a parameter has type {oid}, which is none that was asked for");
            return Err(io::Error::other(text));
        }
        // The size, the modifier and the format of a column follow.
        rest = if kind == b'T' { after.get(8..).unwrap_or_default() } else { after };
    }
}

/// How long the rest of a message is.
fn length([kind, length @ ..]: [u8; HEADER_BYTES]) -> Result<usize, MessageTooLong> {
    let most = if kind == b'D' { MAX_DATA_BYTES } else { MAX_OTHER_BYTES };
    // The length counts itself, but not the type.
    let bytes = (u32::from_be_bytes(length) as usize).saturating_sub(length.len());
    if bytes > most { Err(MessageTooLong { bytes }) } else { Ok(bytes) }
}

/// A stream, or what makes one. PgBouncer 1.18 ends as a whole where a client closes the connection of a cancel before
/// it has done so itself.
pub(super) struct Stream<T> {
    inner: T,
    messages: Messages,
}

impl<T> Stream<T> {
    pub(super) fn new(inner: T, next: Next) -> Self {
        Stream { inner, messages: Messages::new(next) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Stream { inner, messages } = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(inner).poll_read(context, buffer))?;
        Poll::Ready(messages.take(&buffer.filled()[before..]))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut bytes = [0; 64];
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Pin::new(&mut self.inner).poll_shutdown(context);
            }
        }
    }
}

impl<S: TlsStream + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.inner.channel_binding()
    }
}

impl<S: 'static, T: TlsConnect<S>> TlsConnect<S> for Stream<T>
where
    T::Future: Send + 'static,
{
    type Stream = Stream<T::Stream>;
    type Error = T::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, Self::Error>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let (made, next) = (self.inner.connect(stream), self.messages.next);
        Box::pin(async move { made.await.map(|inner| Stream::new(inner, next)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, length: u32) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend(length.to_be_bytes());
        bytes.resize(bytes.len() + length.saturating_sub(4).min(300) as usize, b'x');
        bytes
    }

    /// Whether all of it is taken, in pieces of this many bytes.
    fn is_taken(next: Next, bytes: &[u8], piece: usize) -> bool {
        let mut messages = Messages::new(next);
        bytes.chunks(piece).all(|bytes| messages.take(bytes).is_ok())
    }

    #[test]
    fn settings_and_what_comes_with_the_login_are_bounded() {
        let ready = message(b'Z', 5);
        for length in [304, 4] {
            let told = message(b'N', length);
            let many = told.repeat(MAX_OTHER_BYTES / (told.len() + KEPT_BYTES));
            assert!(is_taken(Next::MESSAGE, &many, 1000));
            assert!(!is_taken(Next::MESSAGE, &[&many[..], &told].concat(), 1000));
            // One that comes later is not kept.
            assert!(is_taken(Next::MESSAGE, &[&ready[..], &many, &told].concat(), 1000));
        }
        let settings = |count: usize, names: usize| -> Vec<u8> {
            let setting = |n: usize| {
                let body = format!("{:032}\0value\0", n % names);
                [b"S", &(body.len() as u32 + 4).to_be_bytes()[..], body.as_bytes()].concat()
            };
            (0..count).flat_map(setting).collect()
        };
        let most = (MAX_OTHER_BYTES - 100) / (39 + KEPT_BYTES);
        let taken = |settings: &[u8]| is_taken(Next::MESSAGE, &[&ready[..], settings].concat(), 99);
        assert!(taken(&settings(most, most)));
        assert!(!taken(&settings(most + 2, most + 2)));
        // One that changes is kept once.
        assert!(taken(&settings(2 * most, 3)));
        assert!(!is_taken(Next::MESSAGE, &settings(most, 3), 1000), "at the login");
    }

    #[test]
    fn types_that_would_be_looked_up_are_refused() {
        let described = |kind: u8, types: &[u32]| {
            let mut body = (types.len() as u16).to_be_bytes().to_vec();
            for oid in types {
                let (before, after) = (&b"name\0\0\x01\x86\xa0\0\x01"[..], &[0xff; 8][..]);
                let column = [before, &oid.to_be_bytes(), after].concat();
                body.extend(if kind == b'T' { &column[..] } else { &column[11..15] });
            }
            let head = [&[kind][..], &(body.len() as u32 + 4).to_be_bytes()].concat();
            [head, body, message(b'C', 9)].concat().repeat(2)
        };
        let own = [25, 2950, 1184, 1009, 3802, 2278, 18];
        for (kind, other) in [(b'T', 16384), (b't', 16384), (b'T', 12345), (b't', 0)] {
            for piece in [1, 3, 7, 1000] {
                let taken = |types: &[u32]| is_taken(Next::MESSAGE, &described(kind, types), piece);
                assert!(taken(&[]) && taken(&own), "{kind}");
                for place in 0..=own.len() {
                    let mut types = own.to_vec();
                    types.insert(place, other);
                    assert!(!taken(&types), "{kind} {place}");
                }
            }
        }
        // What is cut short, as the driver then says.
        for kind in [b'T', b't'] {
            let whole = described(kind, &own);
            for length in 0..(whole.len() / 2 - 15) as u32 {
                let mut cut = [&[kind][..], &(length + 4).to_be_bytes()].concat();
                cut.extend(&whole[5..5 + length as usize]);
                assert!(is_taken(Next::MESSAGE, &cut, 1000), "{kind} {length}");
            }
        }
    }

    #[test]
    fn messages_are_bounded_however_they_come() {
        let short = [message(b'Z', 5), message(b'N', 204), message(b'C', 0), message(b'n', 4)];
        for piece in [1, 3, 5, 7, 1000] {
            for (kind, most) in
                [(b'D', MAX_DATA_BYTES), (b'E', MAX_OTHER_BYTES), (b'N', MAX_OTHER_BYTES)]
            {
                let most = u32::try_from(most).unwrap() + 4;
                for (length, taken) in [(most, true), (most + 1, false), (u32::MAX, false)] {
                    let bytes = [short.concat(), message(kind, length)].concat();
                    assert_eq!(is_taken(Next::MESSAGE, &bytes, piece), taken, "{kind} {length}");
                    // A server that does not encrypt, and one that does.
                    let bytes = [b"N", &bytes[..]].concat();
                    assert_eq!(is_taken(Next::Answer, &bytes, piece), taken, "{kind} {length}");
                    let bytes = [b"S", &bytes[1..]].concat();
                    assert!(is_taken(Next::Answer, &bytes, piece), "{kind} {length}");
                }
            }
        }
    }
}
