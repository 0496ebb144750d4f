//! A gateway from HTTP to CORBA: `POST /turn?degrees=90` turns a motor, and answers with its position.
//!
//! `gateway REF [ADDRESS]`: the reference of the motor, and where the gateway listens, 127.0.0.1:8080 if it is not given.
#![forbid(unsafe_code)]
use anyhow::Context;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use rtorb::{ConnectionStrategy, ExceptionKind, Orb, SystemException, WaitStrategy};
use serde_json::{Value, json};
use std::io::{Write as _, stdout};
use std::time::Duration;

rtorb::include_idl!("plotter");
use plotter::Motor;

/// The time that a call may take.
const DEADLINE: Duration = Duration::from_secs(2);

/// What the motor is asked for.
#[derive(serde::Deserialize)]
struct Order {
    degrees: i32,
}

/// Starts the call, and lets the thread do other work until the reply is there. If the browser goes, the call is given up.
async fn turn(State(motor): State<Motor>, Query(order): Query<Order>) -> (StatusCode, Json<Value>) {
    match motor.start().turn(order.degrees).await {
        Ok(position) => (StatusCode::OK, Json(json!({"position": position}))),
        Err(failed) => {
            let told = json!({"exception": failed.to_string()});
            (status(&failed), Json(told))
        }
    }
}

/// The status that says of whom the exception speaks.
fn status(failed: &SystemException) -> StatusCode {
    match failed.kind {
        ExceptionKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        ExceptionKind::Transient | ExceptionKind::CommFailure | ExceptionKind::NoResources => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ExceptionKind::ObjectNotExist => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_GATEWAY,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let reference = arguments.next().context("give the motor's reference")?;
    let address = arguments.next();
    let address = address.as_deref().unwrap_or("127.0.0.1:8080");
    let shared = ConnectionStrategy::Multiplexed {
        wait: WaitStrategy::LeaderFollowers,
    };
    let orb = Orb::builder().connection(shared).build()?;
    tokio::spawn(rtorb_tokio::read_replies(&orb)?);
    let motor: Motor = orb.string_to_reference(&reference)?;
    let motor = motor.with_deadline(DEADLINE);
    let listener = tokio::net::TcpListener::bind(address).await?;
    writeln!(stdout(), "listening on {}", listener.local_addr()?)?;
    let routes = Router::new().route("/turn", post(turn)).with_state(motor);
    axum::serve(listener, routes)
        .with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) })
        .await?;
    Ok(())
}
