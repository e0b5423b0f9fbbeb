//! The driver's client as one that waits for each answer, and that others can cancel or close meanwhile.

use std::future::{Future, poll_fn};
use std::io::{self, Cursor};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex as BlockingMutex, MutexGuard, PoisonError};
use std::task::{Poll, ready};
use std::thread;
use std::time::Duration;

use futures_util::{SinkExt, TryStreamExt};
use postgres::config::{SslMode, SslNegotiation, TargetSessionAttrs};
use postgres::tls::MakeTlsConnect;
use postgres::types::{ToSql, Type};
use postgres::{
    AsyncMessage, CancelToken, Config, CopyInSink, Error, NoTls, Row, RowStream,
    SimpleQueryMessage, SimpleQueryRow,
};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{self, Runtime};
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::stream::{Next, Stream};
use super::{Parameters, turns_left_out};

/// The longest that a cancel is waited for, from connecting until the server has closed the connection.
pub(super) const MAX_CANCEL: Duration = Duration::from_secs(5);

/// How long it may take. PgBouncer 1.18 ends as a whole where the connection is closed before a server that is slow has
/// got the cancel.
const MAX_SLOW_CANCEL: Duration = Duration::from_secs(60);

/// How long a server may take to answer what it was asked before a connection is closed in order.
const MAX_CLOSE: Duration = Duration::from_secs(5);

/// The connection's own part of the driver, which has to run for anything to be answered.
type Connection = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// How many turns the extension has last said are left out of an answer. Other notices are not kept.
type LeftOut = Arc<AtomicU64>;

/// Where a server is.
#[derive(Clone, Debug)]
pub(super) enum Address {
    Socket(PathBuf),
    Tcp(SocketAddr),
}

/// A connection.
pub(super) struct Client {
    runtime: Runtime,
    /// None when it is dropped.
    client: Option<postgres::Client>,
    /// None after its end.
    connection: Option<Connection>,
    closing: Arc<Notify>,
    left_out: LeftOut,
}

/// What cancels the statement that runs on a connection, and closes it.
#[derive(Clone)]
pub(super) struct Canceller {
    token: CancelToken,
    tls: Option<MakeRustlsConnect>,
    address: Address,
    /// What the server's certificate is for.
    name: String,
    config: Arc<Config>,
    closing: Arc<Notify>,
    /// Held while it is asked.
    asking: Arc<Mutex<()>>,
}

/// Why there is no connection.
pub(super) enum NoConnection {
    /// The host could not be reached, or is not as wanted.
    Unreachable(io::Error),
    /// The server, or what is there, has refused.
    Refused(Error),
}

impl From<io::Error> for NoConnection {
    fn from(error: io::Error) -> Self {
        NoConnection::Unreachable(error)
    }
}

impl From<Error> for NoConnection {
    fn from(error: Error) -> Self {
        NoConnection::Refused(error)
    }
}

fn new_runtime() -> Runtime {
    runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime needs no more than a few open files")
}

/// Sets what the configuration says of sockets.
fn set_options(stream: &TcpStream, config: &Config) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    #[cfg(target_os = "linux")]
    if let Some(most) = config.get_tcp_user_timeout() {
        socket.set_tcp_user_timeout(Some(*most))?;
    }
    if config.get_keepalives() {
        let mut keepalive = TcpKeepalive::new().with_time(config.get_keepalives_idle());
        if let Some(interval) = config.get_keepalives_interval() {
            keepalive = keepalive.with_interval(interval);
        }
        if let Some(retries) = config.get_keepalives_retries() {
            keepalive = keepalive.with_retries(retries);
        }
        socket.set_tcp_keepalive(&keepalive)?;
    }
    Ok(())
}

/// Opens a session over a stream.
async fn open<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    config: &Config,
    stream: S,
    name: &str,
    tls: Option<MakeRustlsConnect>,
    left_out: LeftOut,
) -> Result<(postgres::Client, Connection), NoConnection> {
    let next = match (config.get_ssl_mode(), config.get_ssl_negotiation()) {
        (SslMode::Disable, _) => Next::MESSAGE,
        (_, SslNegotiation::Direct) => Next::Any,
        _ => Next::Answer,
    };
    let stream = Stream::new(stream, next);
    match tls {
        None => {
            let (client, connection) = config.connect_raw(stream, NoTls).await?;
            Ok((client, running(connection, left_out)))
        }
        Some(mut connector) => {
            let Ok(tls) = MakeTlsConnect::<Stream<S>>::make_tls_connect(&mut connector, name);
            let tls = Stream::new(tls, Next::MESSAGE);
            let (client, connection) = config.connect_raw(stream, tls).await?;
            Ok((client, running(connection, left_out)))
        }
    }
}

/// The driver's own part until it ends.
fn running<S, T>(mut connection: postgres::Connection<S, T>, left_out: LeftOut) -> Connection
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    Box::pin(poll_fn(move |context| {
        while let Some(message) = ready!(connection.poll_message(context)?) {
            if let AsyncMessage::Notice(notice) = message
                && let Some(turns) = turns_left_out(&notice)
            {
                left_out.store(turns, Ordering::Relaxed);
            }
        }
        Poll::Ready(Ok(()))
    }))
}

impl Client {
    /// Connects to an address, whatever host the configuration has; `name` is that of the server's certificate.
    pub(super) fn connect(
        config: &Config,
        address: Address,
        name: &str,
        tls: Option<MakeRustlsConnect>,
    ) -> Result<(Self, Canceller), NoConnection> {
        let (runtime, left_out) = (new_runtime(), LeftOut::default());
        let end = config.get_connect_timeout().map(|most| Instant::now() + *most);
        let opened = async {
            match &address {
                Address::Socket(path) => {
                    open(
                        config,
                        UnixStream::connect(path).await?,
                        name,
                        tls.clone(),
                        Arc::clone(&left_out),
                    )
                    .await
                }
                Address::Tcp(address) => {
                    let stream = TcpStream::connect(address).await?;
                    set_options(&stream, config)?;
                    open(config, stream, name, tls.clone(), Arc::clone(&left_out)).await
                }
            }
        };
        let (client, connection) = runtime.block_on(until(end, opened))?;
        let closing = Arc::new(Notify::new());
        let canceller = Canceller {
            token: client.cancel_token(),
            tls,
            address,
            name: name.to_owned(),
            config: Arc::new(config.clone()),
            closing: Arc::clone(&closing),
            asking: Arc::default(),
        };
        let (client, connection) = (Some(client), Some(connection));
        let mut client = Client { runtime, client, connection, closing, left_out };
        client.check_attributes(config, end)?;
        Ok((client, canceller))
    }

    /// Whether the server is one of the wanted, as libpq asks it. Nobody can cancel that yet.
    fn check_attributes(
        &mut self,
        config: &Config,
        end: Option<Instant>,
    ) -> Result<(), NoConnection> {
        let wanted = config.get_target_session_attrs();
        if wanted == TargetSessionAttrs::Any {
            return Ok(());
        }
        let row = self.wait(|client| async move {
            let asked = client.query_typed_one("SHOW transaction_read_only", &[]);
            Ok(until(end, async { Ok(asked.await?) }).await)
        })?;
        // To close it in order would take a silent server's time once more.
        let row = row.inspect_err(|_| self.close())?;
        let is_read_only = row.try_get::<_, &str>(0)? == "on";
        let refused = match wanted {
            TargetSessionAttrs::ReadWrite if is_read_only => "the session is read-only",
            TargetSessionAttrs::ReadOnly if !is_read_only => "the session is not read-only",
            _ => return Ok(()),
        };
        Err(io::Error::new(io::ErrorKind::PermissionDenied, refused).into())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.connection.is_none() || self.client.as_ref().is_none_or(postgres::Client::is_closed)
    }

    /// Closes the connection in the midst of its transaction.
    pub(super) fn close(&mut self) {
        self.connection = None;
    }

    /// How many turns are left out of what was asked since this was called before.
    pub(super) fn take_left_out(&self) -> u64 {
        self.left_out.swap(0, Ordering::Relaxed)
    }

    /// Waits for what the client was asked.
    fn wait<'a, T, F: Future<Output = Result<T, Error>>>(
        &'a mut self,
        work: impl FnOnce(&'a postgres::Client) -> F,
    ) -> Result<T, Error> {
        let client = self.client.as_ref().expect("it is there until this is dropped");
        drive(&self.runtime, &mut self.connection, &self.closing, work(client))
    }

    /// Runs commands, and looks at each of their rows. None is held, as a server can send rows without end.
    pub(super) fn each_row(
        &mut self,
        commands: &str,
        mut look: impl FnMut(&SimpleQueryRow),
    ) -> Result<(), Error> {
        let stream = self.wait(|client| client.simple_query_raw(commands))?;
        let mut stream = pin!(stream);
        while let Some(message) = self.wait(|_| stream.try_next())? {
            if let SimpleQueryMessage::Row(row) = message {
                look(&row);
            }
        }
        Ok(())
    }

    pub(super) fn batch_execute(&mut self, commands: &str) -> Result<(), Error> {
        self.wait(|client| client.batch_execute(commands))
    }

    /// Runs commands. Whether only the first has been done, or some after it, and another one has failed.
    pub(super) fn is_only_begun(&mut self, commands: &str) -> Result<bool, Error> {
        let stream = self.wait(|client| client.simple_query_raw(commands))?;
        let mut stream = pin!(stream);
        let mut is_begun = false;
        loop {
            match self.wait(|_| stream.try_next()) {
                Ok(None) => return Ok(false),
                Ok(Some(_)) => is_begun = true,
                Err(_) if is_begun => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn execute_typed(
        &mut self,
        statement: &str,
        parameters: Parameters,
    ) -> Result<u64, Error> {
        self.wait(|client| client.execute_typed(statement, parameters))
    }

    pub(super) fn query_typed_one(
        &mut self,
        query: &str,
        parameters: Parameters,
    ) -> Result<Row, Error> {
        self.wait(|client| client.query_typed_one(query, parameters))
    }

    pub(super) fn rows(&mut self, query: &str, parameters: Parameters) -> Result<Rows<'_>, Error> {
        let parameters = parameters.iter().map(|(value, its_type)| (*value, its_type.clone()));
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> = parameters.collect();
        let stream = self.wait(|client| client.query_typed_raw(query, parameters))?;
        Ok(Rows { stream: Box::pin(stream), client: self })
    }

    pub(super) fn copy_in(&mut self, copy: &str) -> Result<CopyIn<'_>, Error> {
        let sink = self.wait(|client| client.copy_in(copy))?;
        Ok(CopyIn { sink: Box::pin(sink), client: self })
    }
}

/// Does work for a connection until the time, if there is one, at which it has to be made.
async fn until<T>(
    end: Option<Instant>,
    work: impl Future<Output = Result<T, NoConnection>>,
) -> Result<T, NoConnection> {
    let Some(end) = end else { return work.await };
    let late = || io::Error::new(io::ErrorKind::TimedOut, "connection timed out");
    timeout_at(end, work).await.unwrap_or_else(|_| Err(late().into()))
}

impl Drop for Client {
    /// Tells the server, and takes first what it still has to say.
    fn drop(&mut self) {
        self.client = None;
        if let Some(connection) = &mut self.connection {
            let closed = async {
                tokio::select! { _ = connection => {}, () = self.closing.notified() => {} }
            };
            _ = self.runtime.block_on(async { timeout(MAX_CLOSE, closed).await });
        }
    }
}

/// Runs the connection until work is done. Where it is closed meanwhile, the work fails.
fn drive<T>(
    runtime: &Runtime,
    connection: &mut Option<Connection>,
    closing: &Notify,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let (mut work, mut closing) = (pin!(work), pin!(closing.notified()));
    runtime.block_on(poll_fn(|context| {
        if let Some(running) = connection {
            if closing.as_mut().poll(context).is_ready() {
                *connection = None;
            } else if let Poll::Ready(ended) = running.as_mut().poll(context) {
                *connection = None;
                // The server may have said why before.
                return match (work.as_mut().poll(context), ended) {
                    (Poll::Pending, Err(error)) => Poll::Ready(Err(error)),
                    (Poll::Ready(Err(closed)), Err(error)) if closed.is_closed() => {
                        Poll::Ready(Err(error))
                    }
                    (done, _) => done,
                };
            }
        }
        work.as_mut().poll(context)
    }))
}

/// The rows of a query, one after the other.
pub(super) struct Rows<'a> {
    client: &'a mut Client,
    stream: Pin<Box<RowStream>>,
}

impl Rows<'_> {
    pub(super) fn next(&mut self) -> Result<Option<Row>, Error> {
        let Self { client, stream } = self;
        client.wait(|_| stream.try_next())
    }
}

/// A COPY to the server.
pub(crate) struct CopyIn<'a> {
    client: &'a mut Client,
    sink: Pin<Box<CopyInSink<Cursor<Vec<u8>>>>>,
}

impl CopyIn<'_> {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Self { client, sink } = self;
        client.wait(|_| sink.send(Cursor::new(bytes.to_vec())))
    }

    pub(crate) fn finish(mut self) -> Result<u64, Error> {
        let Self { client, sink } = &mut self;
        client.wait(|_| sink.as_mut().finish())
    }
}

impl Canceller {
    /// Asks the server to cancel, over a connection of its own that is encrypted as the first one. Whether it does is
    /// not said. One request is made at a time, and waited for no longer than `most`.
    pub(super) fn cancel(&self, most: Duration) {
        let Ok(asking) = Arc::clone(&self.asking).try_lock_owned() else { return };
        let (canceller, work, (done, is_done)) = (self.clone(), Cancelling::begin(), channel());
        thread::spawn(move || {
            _ = new_runtime()
                .block_on(async { timeout(MAX_SLOW_CANCEL, canceller.ask_to_cancel()).await });
            drop((asking, work));
            _ = done.send(());
        });
        _ = is_done.recv_timeout(most);
    }

    async fn ask_to_cancel(&self) -> io::Result<()> {
        match &self.address {
            Address::Tcp(address) => self.cancel_over(TcpStream::connect(address).await?).await,
            Address::Socket(path) => self.cancel_over(UnixStream::connect(path).await?).await,
        }
        Ok(())
    }

    async fn cancel_over<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, stream: S) {
        let stream = Stream::new(stream, Next::Any);
        _ = match self.tls.clone() {
            None => self.token.cancel_query_raw(stream, NoTls).await,
            Some(mut connector) => {
                let Ok(tls) =
                    MakeTlsConnect::<Stream<S>>::make_tls_connect(&mut connector, &self.name);
                self.token.cancel_query_raw(stream, Stream::new(tls, Next::Any)).await
            }
        };
    }

    /// Connects once more to where the connection is, and to no other host.
    pub(super) fn connect_again(&self, most: Duration) -> Result<(Client, Self), NoConnection> {
        let mut config = (*self.config).clone();
        config.connect_timeout(most).target_session_attrs(TargetSessionAttrs::Any);
        Client::connect(&config, self.address.clone(), &self.name, self.tls.clone())
    }

    /// Closes the connection, whatever the server does.
    pub(super) fn close(&self) {
        self.closing.notify_one();
    }
}

/// How many cancels are under way.
static CANCELLING: (BlockingMutex<usize>, Condvar) = (BlockingMutex::new(0), Condvar::new());

/// A cancel that is under way, until this is dropped.
pub(super) struct Cancelling(());

impl Cancelling {
    pub(super) fn begin() -> Self {
        *Self::count() += 1;
        Cancelling(())
    }

    fn count() -> MutexGuard<'static, usize> {
        CANCELLING.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cancelling {
    fn drop(&mut self) {
        *Self::count() -= 1;
        CANCELLING.1.notify_all();
    }
}

/// Waits, at the end of the program, for the cancels that are under way, but not without end.
pub(crate) fn wait_for_cancels() {
    _ = CANCELLING.1.wait_timeout_while(Cancelling::count(), MAX_CANCEL, |count| *count > 0);
}
