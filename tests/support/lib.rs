//! What the tests share: finding data, reading it, reaching a server.
