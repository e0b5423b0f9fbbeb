//! Messages on standard input and output, a line of JSON each.
//!
//! The transport of the library answers nothing to what it cannot parse, takes the last of equal keys, and reads lines
//! of many MiB.

use std::io;
use std::sync::Arc;

use rmcp::model::{ErrorData, JsonRpcError, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::serve::{MAX_BODY_BYTES, check_body};

type Received = RxJsonRpcMessage<RoleServer>;
type Sent = TxJsonRpcMessage<RoleServer>;

/// A client that sends lines, and gets some.
pub(super) struct Lines<R, W> {
    input: BufReader<R>,
    output: Arc<Mutex<W>>,
    /// What is there of a line: a read may be given up before its end.
    line: Vec<u8>,
    /// Whether the line is too long. What follows of it is read and dropped.
    is_too_long: bool,
    /// The answer to a line that is no message, as it is written. The next line waits for it.
    refusing: Option<JoinHandle<io::Result<()>>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    pub(super) fn new(input: R, output: W) -> Self {
        Lines {
            input: BufReader::new(input),
            output: Arc::new(Mutex::new(output)),
            line: Vec::new(),
            is_too_long: false,
            refusing: None,
        }
    }

    /// Reads to the end of a line. None at the end of the input. It may be given up, and called again.
    async fn read_line(&mut self) -> Option<Result<Received, JsonRpcError>> {
        loop {
            let part = self.input.fill_buf().await.ok().filter(|part| !part.is_empty())?;
            let end = part.iter().position(|byte| *byte == b'\n');
            let (part, used) =
                (&part[..end.unwrap_or(part.len())], end.map_or(part.len(), |end| end + 1));
            self.is_too_long |= self.line.len() + part.len() > MAX_BODY_BYTES;
            match self.is_too_long {
                true => self.line = Vec::new(),
                false => self.line.extend_from_slice(part),
            }
            self.input.consume(used);
            if end.is_none() {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if std::mem::take(&mut self.is_too_long) {
                let text = format!("the message is longer than {MAX_BODY_BYTES} bytes");
                return Some(Err(JsonRpcError::new(None, ErrorData::parse_error(text, None))));
            }
            if !line.trim_ascii().is_empty() {
                return Some(parsed(&line));
            }
        }
    }

    fn write(&self, message: &Sent) -> impl Future<Output = io::Result<()>> + Send + use<R, W> {
        let line = serde_json::to_vec(message).map(|mut line| {
            line.push(b'\n');
            line
        });
        let output = Arc::clone(&self.output);
        async move {
            let line = line?;
            let mut output = output.lock().await;
            output.write_all(&line).await?;
            output.flush().await
        }
    }
}

impl<R: AsyncRead + Unpin + Send + 'static, W: AsyncWrite + Unpin + Send + 'static>
    Transport<RoleServer> for Lines<R, W>
{
    type Error = io::Error;

    fn send(&mut self, message: Sent) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.write(&message)
    }

    async fn receive(&mut self) -> Option<Received> {
        loop {
            if let Some(refusing) = &mut self.refusing {
                let is_written = matches!(refusing.await, Ok(Ok(())));
                self.refusing = None;
                if !is_written {
                    return None;
                }
            }
            match self.read_line().await? {
                Ok(message) => return Some(message),
                // In a task: half of an answer must not be given up.
                Err(refusal) => {
                    self.refusing = Some(tokio::spawn(self.write(&Sent::Error(refusal))))
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.lock().await.flush().await
    }
}

/// What can be read of a message that is not one, so that whoever waits for its answer gets it.
#[derive(Deserialize)]
struct Head {
    id: Option<RequestId>,
}

/// The message, or the error that is the answer. As for a service over HTTP.
pub(crate) fn parsed(json: &[u8]) -> Result<Received, JsonRpcError> {
    let error = match check_body(json).map(|()| serde_json::from_slice(json)) {
        Err(unfit) => ErrorData::invalid_request(unfit.text(), None),
        Ok(Ok(message)) => return Ok(message),
        Ok(Err(error)) if error.is_data() => {
            ErrorData::invalid_request("this is no message of the protocol", None)
        }
        Ok(Err(error)) => ErrorData::parse_error(format!("this is not JSON: {error}"), None),
    };
    // An array is no object with an id in its first place.
    let is_object = json.trim_ascii_start().starts_with(b"{");
    let head = Some(json).filter(|_| is_object).and_then(|json| serde_json::from_slice(json).ok());
    Err(JsonRpcError::new(head.and_then(|head: Head| head.id), error))
}
