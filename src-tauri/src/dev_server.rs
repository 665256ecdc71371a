//! The pages in a plain browser, for tests: the same commands, over HTTP on 127.0.0.1.
//! Built only with the feature `dev-server`, which no release has: whoever reaches it is the person.

use std::convert::Infallible;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use executor::front::{COMMANDS, Change, Front};
use serde_json::{Value, json};
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::{Stream, StreamExt as _};

/// Serves until the app ends.
pub(crate) async fn serve(front: Front, port: u16) {
    let app =
        Router::new().route("/api/events", get(events)).route("/api/{command}", post(call)).with_state(front);
    let served = async { axum::serve(tokio::net::TcpListener::bind(("127.0.0.1", port)).await?, app).await };
    if let Err(error) = served.await {
        tracing::error!(%error, "the development server has ended");
    }
}

/// A page of another site could otherwise send simple requests here.
fn is_same_origin(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_none_or(|site| site == "same-origin")
        && headers.get("content-type").is_some_and(|kind| kind == "application/json")
}

async fn call(
    State(front): State<Front>,
    Path(command): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let refuse = |status, message: String| (status, axum::Json(json!({"message": message}))).into_response();
    if !is_same_origin(&headers) {
        return refuse(StatusCode::FORBIDDEN, "only the pages themselves may call".to_owned());
    }
    let Ok(with) = serde_json::from_slice::<Value>(&body) else {
        return refuse(StatusCode::BAD_REQUEST, "arguments are JSON".to_owned());
    };
    let Some((_, window)) = COMMANDS.iter().find(|(name, _)| *name == command) else {
        return refuse(StatusCode::NOT_FOUND, format!("there is no command '{command}'"));
    };
    match front.call(*window, &command, with).await {
        Ok(answer) => axum::Json(answer).into_response(),
        Err(message) => refuse(StatusCode::BAD_REQUEST, message),
    }
}

async fn events(State(front): State<Front>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let changes = BroadcastStream::new(front.subscribe()).map(|change| {
        let name = match change {
            Ok(Change::State) | Err(_) => "state", // one that fell behind fetches all again
            Ok(Change::Activity) => "activity",
            Ok(Change::Prompt) => "prompt",
        };
        Ok(Event::default().event(name).data("null"))
    });
    Sse::new(changes)
}
