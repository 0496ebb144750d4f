//! The HTTP server of /metrics: one connection at a time, for a bounded time, so that scrapes cannot pile up.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::time::{sleep, timeout};

use crate::metrics::Wanted;

/// Serves scrapes for as long as the process lives. Prints the URL once it listens.
///
/// # Errors
/// When the address cannot be listened at.
pub(crate) fn serve(listen: SocketAddr, wanted: &Wanted) -> io::Result<Infallible> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        // Nobody may read it.
        let _ = writeln!(io::stdout(), "http://{}/metrics", listener.local_addr()?);
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Without descriptors, the next one would fail at once too.
                sleep(PAUSE).await;
                continue;
            };
            let answer =
                service_fn(|request| async move { Ok::<_, Infallible>(answer(&request, wanted)) });
            let connection = http1::Builder::new()
                .keep_alive(false)
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), answer);
            // A client that breaks off, or is too slow, has no answer: the next one has its turn.
            let _ = timeout(CONNECTION_MAX, connection).await;
        }
    })
}

fn answer(request: &Request<Incoming>, wanted: &Wanted) -> Response<Full<Bytes>> {
    let is_get = request.method() == Method::GET;
    if !is_get || request.uri().path() != "/metrics" {
        let mut refused = Response::new("the counters are at /metrics, by GET\n".into());
        *refused.status_mut() = StatusCode::NOT_FOUND;
        return refused;
    }
    match wanted.scrape() {
        Ok(text) => {
            let mut response = Response::new(text.into());
            response.headers_mut().insert(CONTENT_TYPE, OPEN_METRICS);
            response
        }
        Err(error) => {
            let mut failed = Response::new(format!("{error}\n").into());
            *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            failed
        }
    }
}

const OPEN_METRICS: hyper::header::HeaderValue = hyper::header::HeaderValue::from_static(
    "application/openmetrics-text; version=1.0.0; charset=utf-8",
);
/// The longest time of a connection; Prometheus waits for 10 s by default.
const CONNECTION_MAX: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);
