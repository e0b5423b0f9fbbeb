//! A stream from a server, whose messages are bounded, and which the server closes first.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest message with data, in bytes.
pub(super) const MAX_DATA_BYTES: usize = 1 << 28;

/// The longest of any other message, in bytes. Errors repeat what they are about, and code of a table's owner raises
/// errors and notices of any length.
const MAX_OTHER_BYTES: usize = 1 << 24;

/// The bytes of a message's type and length.
const HEADER_BYTES: usize = 5;

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
}

impl Next {
    pub(super) const MESSAGE: Next = Next::Header([0; HEADER_BYTES], 0);

    /// What comes next after these bytes. `settings` are the bytes of settings that the server has told: the driver
    /// keeps them under their names, of which there may be any number, as long as it is connected.
    fn after(mut self, mut bytes: &[u8], settings: &mut usize) -> Result<Next, MessageTooLong> {
        while let Some((&first, rest)) = bytes.split_first() {
            self = match self {
                Next::Any => return Ok(self),
                Next::Answer if first == b'S' => return Ok(Next::Any),
                Next::Answer => {
                    bytes = rest;
                    Next::MESSAGE
                }
                Next::Header(mut header, filled) => {
                    bytes = rest;
                    header[filled] = first;
                    if filled + 1 == HEADER_BYTES {
                        let length = length(header)?;
                        if header[0] == b'S' {
                            *settings += HEADER_BYTES + length;
                        }
                        if *settings > MAX_OTHER_BYTES {
                            return Err(MessageTooLong { bytes: *settings });
                        }
                        Next::Body(length)
                    } else {
                        Next::Header(header, filled + 1)
                    }
                }
                Next::Body(left) => {
                    let taken = left.min(bytes.len());
                    bytes = &bytes[taken..];
                    if taken == left { Next::MESSAGE } else { Next::Body(left - taken) }
                }
            };
        }
        Ok(self)
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
    next: Next,
    settings: usize,
}

impl<T> Stream<T> {
    pub(super) fn new(inner: T, next: Next) -> Self {
        Stream { inner, next, settings: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Stream { inner, next, settings } = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(inner).poll_read(context, buffer))?;
        *next = next.after(&buffer.filled()[before..], settings).map_err(io::Error::other)?;
        Poll::Ready(Ok(()))
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
        let (made, next) = (self.inner.connect(stream), self.next);
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
    fn is_taken(mut next: Next, bytes: &[u8], piece: usize) -> bool {
        let mut settings = 0;
        let mut take = |bytes| next.after(bytes, &mut settings).map(|after| next = after);
        bytes.chunks(piece).all(|bytes| take(bytes).is_ok())
    }

    #[test]
    fn settings_are_bounded() {
        let told = message(b'S', 304);
        let many = told.repeat(MAX_OTHER_BYTES / told.len());
        assert!(is_taken(Next::MESSAGE, &many, 1000));
        assert!(!is_taken(Next::MESSAGE, &[&many[..], &told].concat(), 1000));
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
