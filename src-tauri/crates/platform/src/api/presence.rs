//! A session's machine: whether it is there, and what it may be used for.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::Hello;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{JsonBody, UrlPath};
use super::machine;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::relay::{CallError, Line};
use crate::sessions::owned;
use crate::store::sessions::{self as stored, Binding, Consent, Session, Target};
use crate::store::users::UserId;

/// The data connection of a session, else its machine's control connection.
fn line(app: &App, session: &Session, binding: &Binding) -> Option<Arc<dyn Line>> {
    let data = app.presence.session(&session.id);
    data.or_else(|| app.presence.machine(&session.user, &binding.machine_id))
}

/// Both feature sets of a machine, in one comparable text.
fn features_key(hello: &Hello) -> String {
    let coarse = hello.computer_use_features_coarse.iter().map(|c| c.as_str().to_owned());
    key(coarse, hello.computer_use_features.iter().cloned())
}

fn key(coarse: impl Iterator<Item = String>, fine: impl Iterator<Item = String>) -> String {
    let coarse: BTreeSet<String> = coarse.collect();
    let fine: BTreeSet<String> = fine.collect();
    json!([coarse, fine]).to_string()
}

/// `GET /api/copilot/sessions/{id}/executor`.
pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    UrlPath(id): UrlPath<String>,
) -> Result<Json<Value>, ApiError> {
    let session = owned(&app, &id, &caller.user).await?;
    presence(&app, &session).await.map(Json)
}

/// A session's machine as programs and pages see it.
pub(crate) async fn presence(app: &App, session: &Session) -> Result<Value, ApiError> {
    let Target::Local(binding) = &session.target else {
        return Ok(json!({ "kind": "none", "reason": "cloud" }));
    };
    let Some(line) = line(app, session, binding) else {
        return Ok(json!({ "kind": "none", "reason": "offline", "machine_id": binding.machine_id }));
    };
    let facts = line.facts();
    let key = session.id.clone();
    let consent = app.store.run(move |db| stored::consent(db, &key)).await?;
    let decided = consent.filter(|c| is_about(c, &facts.hello)).map(|c| c.approved);
    let mut answer = machine(facts);
    answer["kind"] = json!("shim");
    answer["active"] = json!(facts.session.is_some());
    answer["allowed_root"] = json!(binding.allowed_root);
    answer["revision"] = json!(binding.revision);
    answer["computer_use_consent"] = json!(match decided {
        Some(true) => "approved",
        Some(false) => "denied",
        None => "undecided",
    });
    Ok(answer)
}

/// Whether a decision is about this machine with just these features.
fn is_about(consent: &Consent, hello: &Hello) -> bool {
    consent.machine_id == hello.machine_id.as_str() && consent.features == features_key(hello)
}

/// Whether computer use was approved for this machine with just these features.
pub(crate) async fn is_approved(app: &App, session: &Session, hello: &Hello) -> Result<bool, ApiError> {
    let key = session.id.clone();
    let consent = app.store.run(move |db| stored::consent(db, &key)).await?;
    Ok(consent.is_some_and(|consent| consent.approved && is_about(&consent, hello)))
}

/// Body of `POST …/executor/consent`: the decision, and what the person was shown when they made it.
#[derive(Debug, Deserialize)]
pub(crate) struct Decision {
    pub(crate) approved: bool,
    pub(crate) expected_machine_id: String,
    pub(crate) expected_features_coarse: Vec<String>,
    pub(crate) expected_features: Vec<String>,
}

/// `POST /api/copilot/sessions/{id}/executor/consent`.
pub(crate) async fn consent(
    State(app): State<App>,
    caller: Caller,
    UrlPath(id): UrlPath<String>,
    JsonBody(decision): JsonBody<Decision>,
) -> Result<Json<Value>, ApiError> {
    let approved = decision.approved;
    decide(&app, &caller.user, &id, decision).await?;
    Ok(Json(json!({ "approved": approved })))
}

/// Keeps a decision, when what the person was shown is still so.
pub(crate) async fn decide(app: &App, user: &UserId, id: &str, decision: Decision) -> Result<(), ApiError> {
    let session = owned(app, id, user).await?;
    let Target::Local(binding) = &session.target else {
        return Err(ApiError::conflict(
            "cloud_session",
            "a session in the cloud has no machine to consent to",
        ));
    };
    let line = line(app, &session, binding).ok_or(CallError::Offline)?;
    let hello = &line.facts().hello;
    let features = key(decision.expected_features_coarse.into_iter(), decision.expected_features.into_iter());
    if decision.expected_machine_id != hello.machine_id.as_str() || features != features_key(hello) {
        let why = "the machine or what it offers has changed since; look again before deciding";
        return Err(ApiError::conflict("features_changed", why));
    }
    let consent = Consent { approved: decision.approved, machine_id: decision.expected_machine_id, features };
    let key = session.id.clone();
    app.store.run(move |db| stored::decide(db, &key, &consent)).await?;
    Ok(())
}
