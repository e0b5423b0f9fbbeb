//! Who is connected. Where there are as many clients as there may be, one that is not being answered gives its place to
//! a new one, so that those without the token cannot keep the others out; and one that takes nothing of an answer is
//! closed.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::{Instant, Sleep, sleep};

/// How many clients are connected at once, where the process may open twice as many files.
const MAX_CLIENTS: usize = 256;

/// How long a client may take nothing of an answer, and may send on after the last one.
const MAX_STUCK: Duration = Duration::from_secs(30);

/// How long a client may send nothing after the last answer.
const MAX_SILENT: Duration = Duration::from_secs(1);

/// The clients.
pub(super) struct Clients {
    /// The longest connected first.
    list: Mutex<VecDeque<Arc<Client>>>,
    /// How many there may be.
    most: usize,
    /// That one has left.
    left: Notify,
}

/// A client.
#[derive(Default)]
pub(super) struct Client {
    /// How many of its requests, which have the token, are being answered.
    answered: Arc<AtomicUsize>,
    /// Those of them whose answers are all hyper's, but not in the socket yet.
    unsent: Unsent,
    /// That another one has its place.
    displaced: Notify,
}

/// A client that is connected, until this is dropped, which is when its stream has been.
pub(super) struct Place {
    clients: Arc<Clients>,
    client: Arc<Client>,
}

/// A request that is being answered, until this is dropped.
pub(super) struct Answering {
    answered: Arc<AtomicUsize>,
    _permit: OwnedSemaphorePermit,
}

type Unsent = Arc<Mutex<Vec<Answering>>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many clients there may be: half of the files are left to the database.
fn most() -> usize {
    #[cfg(unix)]
    if let Some(files) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        return usize::try_from(files / 2).map_or(MAX_CLIENTS, |half| half.clamp(1, MAX_CLIENTS));
    }
    MAX_CLIENTS
}

impl Default for Clients {
    fn default() -> Self {
        Clients { list: Mutex::default(), most: most(), left: Notify::new() }
    }
}

impl Clients {
    /// A place for a new client; none where every one has a client that is being answered. Waits until the client whose
    /// place it is has left: those that come faster than others are closed would take all files.
    pub(super) async fn enter(self: &Arc<Self>) -> Option<Place> {
        loop {
            {
                let mut list = locked(&self.list);
                if list.len() < self.most {
                    let client = Arc::<Client>::default();
                    list.push_back(Arc::clone(&client));
                    return Some(Place { clients: Arc::clone(self), client });
                }
                let mut clients = list.iter();
                let idle = clients.find(|client| client.answered.load(Ordering::Relaxed) == 0)?;
                idle.displaced.notify_one();
            }
            self.left.notified().await;
        }
    }
}

impl Place {
    pub(super) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Waits until another client has this place.
    pub(super) async fn displaced(&self) {
        self.client.displaced.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        locked(&self.clients.list).retain(|client| !Arc::ptr_eq(client, &self.client));
        self.clients.left.notify_one();
    }
}

impl Client {
    /// Begins to answer a request, whose permit is held until the answer is sent.
    pub(super) fn answer(&self, permit: OwnedSemaphorePermit) -> Answering {
        self.answered.fetch_add(1, Ordering::Relaxed);
        Answering { answered: Arc::clone(&self.answered), _permit: permit }
    }

    /// The body of the answer.
    pub(super) fn body(&self, body: Body, answering: Answering) -> Body {
        let unsent = Arc::clone(&self.unsent);
        Body::new(Holding { body, answering: Some(answering), unsent })
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.answered.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer. Hyper drops it when it has taken its bytes, long before the client has taken them.
struct Holding {
    body: Body,
    /// None when this is dropped.
    answering: Option<Answering>,
    unsent: Unsent,
}

impl Drop for Holding {
    fn drop(&mut self) {
        locked(&self.unsent).extend(self.answering.take());
    }
}

impl HttpBody for Holding {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that ends where its client takes nothing.
pub(super) struct Taking {
    stream: TcpStream,
    client: Arc<Client>,
    /// The end, while the client takes nothing.
    end: Option<Pin<Box<Sleep>>>,
    /// After the last answer.
    rest: Option<Rest>,
}

/// What a client still sends after the last answer, which nobody needs.
struct Rest {
    end: Pin<Box<Sleep>>,
    silence: Pin<Box<Sleep>>,
}

impl Taking {
    pub(super) fn new(stream: TcpStream, client: Arc<Client>) -> Self {
        Taking { stream, client, end: None, rest: None }
    }

    /// What became of a write.
    fn written(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if done.is_ready() {
            self.end = None;
            return done;
        }
        let end = self.end.get_or_insert_with(|| Box::pin(sleep(MAX_STUCK)));
        ready!(end.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Taking {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Taking {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.written(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called by hyper when it has written all that it has.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        locked(&self.client.unsent).clear();
        Poll::Ready(Ok(()))
    }

    /// Ends what is sent, and reads what still comes, such as a body that is too long: to close a socket with unread
    /// bytes resets the connection, and the client may lose the answer.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Taking { stream, rest, .. } = &mut *self;
        let mut stream = Pin::new(stream);
        if rest.is_none() {
            ready!(stream.as_mut().poll_shutdown(context))?;
        }
        let rest = rest.get_or_insert_with(|| Rest {
            end: Box::pin(sleep(MAX_STUCK)),
            silence: Box::pin(sleep(MAX_SILENT)),
        });
        let mut room = [0; 16 * 1024];
        while rest.end.as_mut().poll(context).is_pending() {
            let mut bytes = ReadBuf::new(&mut room);
            match stream.as_mut().poll_read(context, &mut bytes) {
                Poll::Ready(Ok(())) if !bytes.filled().is_empty() => {
                    rest.silence.as_mut().reset(Instant::now() + MAX_SILENT);
                }
                Poll::Ready(_) => break,
                Poll::Pending => {
                    ready!(rest.silence.as_mut().poll(context));
                    break;
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::response::Response;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::Semaphore;
    use tokio::time::timeout;

    use super::*;

    /// A connection, and a client that reads nothing yet.
    async fn connected() -> (Taking, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Taking::new(listener.accept().await.unwrap().0, Arc::default()), client)
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_free_when_the_client_that_had_it_has_left() {
        let clients = Arc::new(Clients { most: 2, ..Clients::default() });
        let first = clients.enter().await.unwrap();
        let second = clients.enter().await.unwrap();
        let requests = Arc::new(Semaphore::new(2));
        let answer =
            |place: &Place| place.client().answer(requests.clone().try_acquire_owned().unwrap());
        let answering = answer(&first);
        let moment = Duration::from_secs(1);
        // The second one has to go, and is still there.
        assert!(timeout(moment, clients.enter()).await.is_err());
        timeout(moment, second.displaced()).await.unwrap();
        assert!(timeout(moment, clients.enter()).await.is_err());
        drop(second);
        let third = timeout(moment, clients.enter()).await.unwrap().unwrap();
        // Both are being answered.
        let _answering = (answering, answer(&third));
        assert!(clients.enter().await.is_none());
        assert!(timeout(moment, first.displaced()).await.is_err());
    }

    #[tokio::test]
    async fn a_request_is_being_answered_until_the_socket_has_the_answer() {
        const BYTES: usize = 64 << 20;
        let (stream, mut client) = connected().await;
        let (known, requests) = (Arc::clone(&stream.client), Arc::new(Semaphore::new(1)));
        let permits = Arc::clone(&requests);
        let service = service_fn(move |_| {
            let permit = Arc::clone(&permits).try_acquire_owned().unwrap();
            let body = known.body(Body::from(vec![0; BYTES]), known.answer(permit));
            async { Ok::<_, Infallible>(Response::new(body)) }
        });
        let answered = Arc::clone(&stream.client.answered);
        let builder = hyper::server::conn::http1::Builder::new();
        tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
        let state = || (answered.load(Ordering::Relaxed), requests.available_permits());
        let is_over = async || {
            while state() != (0, 1) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let end = Duration::from_secs(10);
        for _ in 0..2 {
            client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            let mut answer = vec![0; BYTES];
            client.read_exact(&mut answer[..BYTES / 4]).await.unwrap();
            sleep(Duration::from_millis(100)).await;
            assert_eq!(state(), (1, 0));
            client.read_exact(&mut answer[BYTES / 4..]).await.unwrap();
            // What is left is the head's length.
            timeout(end, is_over()).await.unwrap();
            let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
            client.read_exact(&mut answer[..head]).await.unwrap();
        }
        // Also where the client goes away.
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        client.read_exact(&mut [0; 100]).await.unwrap();
        assert_eq!(state(), (1, 0));
        drop(client);
        timeout(end, is_over()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_for_long_is_closed() {
        let (mut stream, mut client) = connected().await;
        let begun = Instant::now();
        // The clock goes on by itself where nothing else does.
        let reads = tokio::spawn(async move {
            let mut room = vec![0; 8 << 20];
            for _ in 0..3 {
                sleep(MAX_STUCK * 2 / 3).await;
                client.read_exact(&mut room).await.unwrap();
            }
            client
        });
        let answer = vec![0; 64 << 20];
        let error = stream.write_all(&answer).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // Each time that it took something, it had as long again.
        assert!(begun.elapsed() >= MAX_STUCK * 3, "{:?}", begun.elapsed());
        drop(reads.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_client_sends_after_the_last_answer_is_read_for_a_while() {
        let (mut stream, mut client) = connected().await;
        let sends = tokio::spawn(async move {
            let mut sent = 0;
            while client.write_all(&[0; 1024]).await.is_ok() {
                sent += 1;
                sleep(MAX_SILENT / 2).await;
            }
            sent
        });
        let begun = Instant::now();
        stream.shutdown().await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), MAX_STUCK.as_secs());
        drop(stream);
        assert!(sends.await.unwrap() >= 50);
        let (mut stream, client) = connected().await;
        let begun = Instant::now();
        stream.shutdown().await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), MAX_SILENT.as_secs());
        drop(client);
    }
}
