//! A machine's socket: upgrade, handshake, then reading and writing until it ends.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{
    CloseFrame, Message, WebSocket, WebSocketUpgrade, rejection::WebSocketUpgradeRejection,
};
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use protocol::{Frame, MAX_FRAME_BYTES, MessageType, SessionId, close, encode, new_id};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until, timeout};

use super::handshake::{self, Greeting, Rejected};
use super::link::{Ending, Link};
use super::{Facts, Line as _};
use crate::app::App;
use crate::auth;
use crate::error::ApiError;
use crate::secret::{self, TokenHash};
use crate::store::now_ms;
use crate::store::oauth::{self, Active};
use crate::store::sessions::{self, Binding, Target};

/// How long a machine may take to answer our close frame.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

type Upgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// Who dials: a good access token, by header.
struct Dialler {
    access: Active,
    token: TokenHash,
}

/// `GET /ws/local-executor`.
pub(crate) async fn control(
    State(app): State<App>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    upgrade: Upgrade,
) -> Response {
    let dialler = match admit(&app, &headers, query.as_deref()).await {
        Ok(dialler) => dialler,
        Err(error) => return error.into_response(),
    };
    accept(app, upgrade, dialler, Ok(None))
}

/// `GET /ws/local-executor/{session_id}`.
pub(crate) async fn data(
    State(app): State<App>,
    headers: HeaderMap,
    Path(session): Path<String>,
    RawQuery(query): RawQuery,
    upgrade: Upgrade,
) -> Response {
    let dialler = match admit(&app, &headers, query.as_deref()).await {
        Ok(dialler) => dialler,
        Err(error) => return error.into_response(),
    };
    // One answer for a session that is not there, somebody else's, or in the cloud: ids cannot be probed.
    let target = match bound(&app, &session, &dialler).await {
        Ok(Some(target)) => Ok(Some(target)),
        Ok(None) => Err(Rejected::new(close::FORBIDDEN, "not a local session of this user")),
        Err(error) => return error.into_response(),
    };
    accept(app, upgrade, dialler, target)
}

async fn bound(
    app: &App,
    session: &str,
    dialler: &Dialler,
) -> Result<Option<(SessionId, Binding)>, ApiError> {
    let Ok(id) = session.parse::<SessionId>() else { return Ok(None) };
    let user = dialler.access.user.clone();
    let found = app.store.run(move |db| sessions::owned(db, &id, &user, false)).await?;
    Ok(found.and_then(|session| match session.target {
        Target::Local(binding) => Some((session.id, binding)),
        Target::Cloud => None,
    }))
}

async fn admit(app: &App, headers: &HeaderMap, query: Option<&str>) -> Result<Dialler, ApiError> {
    let in_query = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .any(|(key, _)| matches!(&*key, "token" | "access_token" | "authorization"));
    if in_query {
        return Err(ApiError::bad_request("a token goes into the Authorization header, never into the URL"));
    }
    let token = auth::bearer(headers).ok_or_else(ApiError::unauthorized)?;
    let access = auth::access_token(app, token).await?;
    Ok(Dialler { access, token: secret::hash(token) })
}

fn accept(
    app: App,
    upgrade: Upgrade,
    dialler: Dialler,
    target: Result<Option<(SessionId, Binding)>, Rejected>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let target = if app.options.features.local_executor {
        target
    } else {
        Err(Rejected::new(close::FORBIDDEN, "local machines are switched off"))
    };
    // Both limits hold while reading: a frame that announces more is refused before it is buffered.
    upgrade.max_frame_size(MAX_FRAME_BYTES).max_message_size(MAX_FRAME_BYTES).on_upgrade(move |socket| {
        let tasks = app.tasks.clone();
        tasks.track_future(async move {
            match target {
                Ok(target) => serve(&app, socket, dialler, target).await,
                Err(rejected) => reject(socket, rejected).await,
            }
        })
    })
}

async fn reject(mut socket: WebSocket, rejected: Rejected) {
    let frame = CloseFrame { code: rejected.code, reason: rejected.reason.into() };
    // The machine may be gone already. Reading on lets the close frame arrive before the socket is torn down.
    if socket.send(Message::Close(Some(frame))).await.is_ok() {
        let _ = timeout(CLOSE_GRACE, async { while let Some(Ok(_)) = socket.recv().await {} }).await;
    }
}

async fn serve(app: &App, mut socket: WebSocket, dialler: Dialler, target: Option<(SessionId, Binding)>) {
    let greeting = tokio::select! {
        greeting = handshake::receive(&mut socket, &app.options.timings) => greeting,
        () = app.stopping.cancelled() => Err(Rejected::new(close::SHUTTING_DOWN, "the platform is shutting down")),
    };
    let (session, binding) = target.unzip();
    let checked = greeting.and_then(|greeting| {
        let Some(greeting) = greeting else { return Ok(None) };
        match &binding {
            None => handshake::check_control(&greeting.hello)?,
            Some(binding) => handshake::check_data(&greeting.hello, binding)?,
        }
        Ok(Some(greeting))
    });
    match checked {
        Ok(Some(greeting)) => run(app, socket, dialler, session, greeting).await,
        Ok(None) => {}
        Err(rejected) => reject(socket, rejected).await,
    }
}

async fn run(app: &App, socket: WebSocket, dialler: Dialler, session: Option<SessionId>, greeting: Greeting) {
    let limits = app.options.limits;
    let granted = handshake::grant(&greeting.hello, session.as_ref().map(SessionId::as_str));
    let connection_id = new_id();
    let named = session.as_ref().map(SessionId::as_str);
    let ack = match handshake::acknowledge(&greeting.id, named, &connection_id, &granted, limits) {
        Ok(ack) => ack,
        Err(error) => {
            tracing::error!(%error, "HELLO_ACK cannot be written");
            return reject(socket, Rejected::new(close::PLATFORM_ERROR, "internal error")).await;
        }
    };
    let facts = Facts {
        connection_id,
        user: dialler.access.user.clone(),
        hello: greeting.hello,
        granted,
        session,
        connected_at: protocol::now(),
    };
    let expires_at = dialler.access.expires_at;
    let (link, outgoing) = Link::new(facts, dialler.access.family, dialler.token, limits.max_concurrent);
    let link = Arc::new(link);
    // Queued before anybody can find the link, so that it goes out first.
    link.push(ack);
    app.sockets.enter(&link);
    let (sink, stream) = socket.split();
    tokio::join!(
        write(&link, sink, outgoing),
        async {
            read(app, &link, stream).await;
            // The reader ends when the machine is gone; the writer must not wait for it then.
            link.end(Ending { code: 1000, reason: "", revoked: None });
            app.sockets.leave(&link);
        },
        watch(app, &link, expires_at),
    );
}

/// Ends the connection when its time is over: the token's, the platform's, or because it was revoked meanwhile.
async fn watch(app: &App, link: &Link, expires_at: i64) {
    let mut ending = link.ending();
    let (token, facts) = (link.token, link.facts());
    let (session, user) = (facts.session.clone(), facts.user.clone());
    // Between the upgrade and `enter` a revocation, or a deletion of the session, did not find this link.
    let still_good = app.store.run(move |db| {
        let owned = match session {
            None => true,
            Some(id) => sessions::owned(db, &id, &user, false)?.is_some(),
        };
        Ok((owned, oauth::active(db, &token)?.is_some()))
    });
    let gone = match still_good.await {
        Ok((true, true)) => None,
        Ok((_, false)) => Some((close::UNAUTHORIZED, "the token is no longer good")),
        Ok((false, true)) => Some((close::FORBIDDEN, "the session was deleted")),
        Err(_) => Some((close::PLATFORM_ERROR, "internal error")),
    };
    if let Some((code, reason)) = gone {
        return link.end(Ending { code, reason, revoked: None });
    }
    let left = Duration::from_millis(u64::try_from(expires_at - now_ms()).unwrap_or(0));
    tokio::select! {
        _ = ending.wait_for(Option::is_some) => {}
        () = sleep(left) => {
            link.end(Ending { code: close::UNAUTHORIZED, reason: "the access token has expired", revoked: None });
        }
        () = app.stopping.cancelled() => {
            let reason = "the platform is shutting down";
            link.end(Ending { code: close::SHUTTING_DOWN, reason, revoked: None });
        }
    }
}

async fn write(link: &Link, mut sink: SplitSink<WebSocket, Message>, mut outgoing: mpsc::Receiver<String>) {
    let mut ending = link.ending();
    loop {
        let text = tokio::select! {
            biased;
            _ = ending.wait_for(Option::is_some) => break,
            text = outgoing.recv() => text,
        };
        let Some(text) = text else { break };
        let sent = tokio::select! {
            biased;
            sent = sink.send(Message::Text(text.into())) => sent,
            _ = ending.wait_for(Option::is_some) => break,
        };
        if sent.is_err() {
            break;
        }
    }
    let last = ending.borrow().clone();
    let Some(Ending { code, reason, revoked }) = last else { return };
    let farewell = async {
        if let Some(text) =
            revoked.and_then(|r| encode(MessageType::SessionRevoked, &new_id(), None, &r).ok())
        {
            sink.send(Message::Text(text.into())).await?;
        }
        sink.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await
    };
    // A machine that does not read, or is gone, gets no farewell.
    let _ = timeout(CLOSE_GRACE, farewell).await;
}

/// Reads until the machine leaves, misses a PONG, or has not left in time after we ended the connection.
async fn read(app: &App, link: &Link, mut stream: SplitStream<WebSocket>) {
    let timings = app.options.timings;
    let mut ending = link.ending();
    let mut pings = interval_at(Instant::now() + timings.ping_every, timings.ping_every);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ponged: Option<(String, Instant)> = None;
    let out_of_grace = async {
        let _ = ending.wait_for(Option::is_some).await;
        sleep(CLOSE_GRACE).await;
    };
    tokio::pin!(out_of_grace);
    loop {
        let overdue = ponged.as_ref().map(|(_, due)| *due);
        tokio::select! {
            message = stream.next() => match message {
                Some(Ok(Message::Text(text))) => received(link, text.as_bytes(), &mut ponged),
                Some(Ok(Message::Binary(bytes))) => received(link, &bytes, &mut ponged),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_))) | None => return,
                Some(Err(error)) => {
                    tracing::debug!(%error, "a machine's socket failed");
                    // 1009: message too big, the one failure of ours that the machine can still hear about.
                    return link.end(Ending { code: 1009, reason: "unreadable or over 16 MiB", revoked: None });
                }
            },
            _ = pings.tick(), if ponged.is_none() => {
                let id = new_id();
                if let Ok(text) = encode(MessageType::Ping, &id, None, &json!({})) {
                    // A full queue is a machine that does not read; then no PONG comes either.
                    link.push(text);
                    ponged = Some((id, Instant::now() + timings.pong_timeout));
                }
            }
            () = sleep_until(overdue.unwrap_or_else(Instant::now)), if overdue.is_some() => {
                return link.end(Ending { code: close::PLATFORM_ERROR, reason: "no PONG in time", revoked: None });
            }
            () = &mut out_of_grace => return,
        }
    }
}

fn received(link: &Link, bytes: &[u8], ponged: &mut Option<(String, Instant)>) {
    match Frame::parse(bytes) {
        Ok(frame) if frame.message_type() == Some(MessageType::Pong) => {
            if ponged.as_ref().is_some_and(|(id, _)| *id == *frame.id) {
                *ponged = None;
            }
        }
        Ok(frame) => link.receive(&frame),
        Err(error) => tracing::warn!(%error, "a machine sent what is no frame"),
    }
}
