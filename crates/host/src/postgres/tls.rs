//! TLS for control connections: rustls in the place that the client library leaves for it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use pgdyno_tls::rustls::pki_types::ServerName;
use pgdyno_tls::{Connector, TlsError, end_point};
use postgres::Socket;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;

/// Makes the connections of a [`Connector`].
#[derive(Clone)]
pub(super) struct MakeTls(pub(super) Connector);

/// One connection to be.
pub(super) struct Connect {
    connector: TlsConnector,
    name: ServerName<'static>,
}

/// An encrypted connection.
pub(super) struct Encrypted(Box<tokio_rustls::client::TlsStream<Socket>>);

impl MakeTlsConnect<Socket> for MakeTls {
    type Stream = Encrypted;
    type TlsConnect = Connect;
    type Error = TlsError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connect, TlsError> {
        Ok(Connect { connector: TlsConnector::from(self.0.config()), name: self.0.server_name(host)? })
    }
}

impl TlsConnect<Socket> for Connect {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        let connecting = self.connector.connect(self.name, socket);
        Box::pin(async move { Ok(Encrypted(Box::new(connecting.await?))) })
    }
}

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        let (_, tls) = self.0.get_ref();
        let certificate = tls.peer_certificates().and_then(|chain| chain.first());
        certificate
            .and_then(|der| end_point(der))
            .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
