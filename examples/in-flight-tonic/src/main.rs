//! Makes a hundred calls at a time of tonic over one UNIX socket, and prints the calls a second, for `in-flight --peer tonic=PROGRAM`.
//!
//! `in-flight-tonic [--calls N]`: N calls, 200,000 by default. Server and client have a thread each, as those of the example in-flight. Their
//! code is what `tonic-prost-build` generates from a service with one operation, but written by hand, so that no `protoc` is needed.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "it uses no crate of rtorb")]
use anyhow::Context as _;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io::{Write as _, stdout};
use std::path::PathBuf;
use std::thread;
use std::time::Instant;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::{Body, BoxFuture, Context, Poll, Service, StdError, http};
use tonic::server::{NamedService, UnaryService};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

const IN_FLIGHT: u64 = 100;

#[derive(Clone, PartialEq, prost::Message)]
struct Degrees {
    #[prost(int32, tag = "1")]
    degrees: i32,
}

/// The operation: it returns its argument.
struct Turn;

impl UnaryService<Degrees> for Turn {
    type Response = Degrees;
    type Future = Ready<Result<Response<Degrees>, Status>>;

    fn call(&mut self, request: Request<Degrees>) -> Self::Future {
        ready(Ok(Response::new(request.into_inner())))
    }
}

/// The service with that operation.
#[derive(Clone)]
struct Motor;

impl NamedService for Motor {
    const NAME: &'static str = "plotter.Motor";
}

impl<B> Service<http::Request<B>> for Motor
where
    B: Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::default());
            Ok(grpc.unary(Turn, request).await)
        })
    }
}

/// Makes so many calls, one after the other.
async fn call(channel: Channel, calls: u64) -> anyhow::Result<()> {
    let mut client = tonic::client::Grpc::new(channel);
    for degrees in 0..calls as i32 {
        client.ready().await?;
        let request = Request::new(Degrees { degrees });
        let path = PathAndQuery::from_static("/plotter.Motor/Turn");
        let codec = ProstCodec::<Degrees, Degrees>::default();
        let turned = client.unary(request, path, codec).await?.into_inner();
        anyhow::ensure!(turned.degrees == degrees, "the motor stands elsewhere");
    }
    Ok(())
}

/// Makes so many calls by a hundred tasks. Returns the calls a second.
async fn measure(channel: &Channel, calls: u64) -> anyhow::Result<f64> {
    let each = calls / IN_FLIGHT;
    let begun = Instant::now();
    let tasks: Vec<_> = (0..IN_FLIGHT)
        .map(|_| tokio::spawn(call(channel.clone(), each)))
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok((each * IN_FLIGHT) as f64 / begun.elapsed().as_secs_f64())
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_io().build()
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let calls = match (arguments.next().as_deref(), arguments.next()) {
        (None, None) => 200_000,
        (Some("--calls"), Some(number)) => number.parse().context("--calls needs a number")?,
        _ => anyhow::bail!("usage: in-flight-tonic [--calls N]"),
    };
    let socket = std::env::temp_dir().join(format!("rtorb-tonic-{}", std::process::id()));
    let serving = runtime()?;
    let listener = serving.block_on(async { UnixListener::bind(&socket) })?;
    thread::spawn(move || {
        let server = Server::builder().add_service(Motor);
        serving.block_on(server.serve_with_incoming(UnixListenerStream::new(listener)))
    });
    let connect = {
        let socket = socket.clone();
        tower::service_fn(move |_| connect(socket.clone()))
    };
    let per_s = runtime()?.block_on(async {
        let endpoint = Endpoint::from_static("http://unix.socket");
        let channel = endpoint.connect_with_connector(connect).await?;
        measure(&channel, calls / 10).await?;
        measure(&channel, calls).await
    })?;
    std::fs::remove_file(&socket)?;
    writeln!(stdout(), "{per_s:.0}")?;
    Ok(())
}

async fn connect(socket: PathBuf) -> std::io::Result<TokioIo<UnixStream>> {
    Ok(TokioIo::new(UnixStream::connect(socket).await?))
}
