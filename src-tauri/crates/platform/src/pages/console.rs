//! The console: calls tools as an agent would, and shows what comes back.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Form, csrf, failed, layout, stale_form};
use crate::api::{Decision, decide, presence};
use crate::app::App;
use crate::auth::Visitor;
use crate::error::ApiError;
use crate::sessions::{self, owned};
use crate::store::sessions::{self as stored, Session, Target};
use crate::store::users::SignIn;
use crate::tools::{self, Tool, ToolResult};

/// Sessions listed.
const LISTED: u32 = 100;
/// Characters of a result that are shown; a picture is not counted.
const SHOWN: usize = 100_000;

/// `GET /console`.
pub(crate) async fn list(State(app): State<App>, Visitor(browser): Visitor) -> Response {
    let user = browser.user.clone();
    let found = match app.store.run(move |db| stored::of_user(db, &user, LISTED)).await {
        Ok(found) => found,
        Err(error) => return failed(&browser, &error.into()),
    };
    let content = html! {
        @if found.is_empty() {
            p { "There is no chat session yet. Choose a folder on one of your " a href="/machines" { "machines" } "." }
        }
        ul { @for session in &found { li { a href=(format!("/console/{}", session.id)) { (place(session)) } } } }
    };
    layout("Console", Some(&browser), content).into_response()
}

fn place(session: &Session) -> String {
    match &session.target {
        Target::Cloud => format!("In the cloud ({})", session.id),
        Target::Local(binding) => format!("{} on {}", binding.allowed_root, binding.machine_id),
    }
}

/// Which tool is filled in.
#[derive(Deserialize)]
pub(crate) struct Filled {
    tool: Option<String>,
}

/// `GET /console/{id}?tool=`.
pub(crate) async fn show(
    State(app): State<App>,
    Visitor(browser): Visitor,
    Path(id): Path<String>,
    Query(filled): Query<Filled>,
) -> Response {
    let filled = filled.tool.as_deref().and_then(tools::named);
    let arguments = filled.map(example).unwrap_or_else(|| "{}".to_owned());
    let form = ToolForm { name: filled.map_or("read_file", |tool| tool.name), arguments: &arguments };
    page(&app, &browser, &id, &form, html! {}).await
}

/// What stands in the form.
struct ToolForm<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// The required arguments of a tool, to be filled in.
fn example(tool: &Tool) -> String {
    let schema = (tool.schema)();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let empty = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("integer" | "number") => Value::from(0),
        Some("array") => Value::Array(Vec::new()),
        Some(_) | None => Value::from(""),
    };
    let fields: Map<String, Value> =
        required.iter().filter_map(Value::as_str).map(|name| (name.to_owned(), empty(name))).collect();
    pretty(&Value::Object(fields))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

async fn page(app: &App, browser: &SignIn, id: &str, form: &ToolForm<'_>, result: Markup) -> Response {
    let session = match owned(app, id, &browser.user).await {
        Ok(session) => session,
        Err(error) => return failed(browser, &error),
    };
    let machine = match presence(app, &session).await {
        Ok(machine) => machine,
        Err(error) => return failed(browser, &error),
    };
    let offered = tools::offered(app, &session);
    let content = html! {
        p { (place(&session)) ": " strong { (state(&machine)) } }
        (result)
        (consent_form(browser, &session, &machine))
        h2 { "Call a tool" }
        form method="post" action=(format!("/console/{}/call", session.id)) {
            (csrf(browser))
            label for="tool" { "Tool" }
            select #tool name="tool" {
                @for tool in &offered { option value=(tool.name) selected[tool.name == form.name] { (tool.name) } }
            }
            label for="arguments" { "Arguments (JSON)" }
            textarea #arguments name="arguments" rows="8" spellcheck="false" { (form.arguments) }
            button.primary type="submit" { "Call" }
        }
        details {
            summary { "Tools that may be called now" }
            dl { @for tool in &offered {
                dt { a href=(format!("/console/{}?tool={}", session.id, tool.name)) { (tool.name) } }
                dd { (tool.description) pre { (pretty(&(tool.schema)()["properties"])) } }
            } }
        }
        h2 { "End" }
        form method="post" action=(format!("/console/{}/delete", session.id)) {
            (csrf(browser))
            button type="submit" { "Delete this session" }
        }
    };
    layout("Console", Some(browser), content).into_response()
}

fn state(machine: &Value) -> &'static str {
    match (machine["kind"].as_str(), machine["active"].as_bool(), machine["reason"].as_str()) {
        (Some("shim"), Some(true), _) => "connected",
        (Some("shim"), _, _) => "connected; the folder opens with the next call",
        (_, _, Some("cloud")) => "no machine",
        (_, _, _) => "the machine is away",
    }
}

fn names(machine: &Value, key: &str) -> Vec<String> {
    let names = machine[key].as_array().cloned().unwrap_or_default();
    names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What the person approves stands in the form, so that they approve just what they saw.
fn consent_form(browser: &SignIn, session: &Session, machine: &Value) -> Markup {
    let fine = names(machine, "computer_use_features");
    let coarse = names(machine, "computer_use_features_coarse");
    if coarse.is_empty() {
        return html! {};
    }
    html! {
        h2 { "Computer use" }
        p {
            "The machine offers " (fine.join(", ")) " (" (coarse.join(", ")) "). For this session it is "
            strong { (machine["computer_use_consent"].as_str().unwrap_or("undecided")) } "."
        }
        form method="post" action=(format!("/console/{}/consent", session.id)) {
            (csrf(browser))
            input type="hidden" name="machine" value=(machine["machine_id"].as_str().unwrap_or_default());
            input type="hidden" name="coarse" value=(coarse.join("\n"));
            input type="hidden" name="fine" value=(fine.join("\n"));
            button.primary type="submit" name="approved" value="yes" { "Approve" } " "
            button type="submit" name="approved" value="no" { "Deny" }
        }
    }
}

/// `POST /console/{id}/consent` with `csrf, machine, coarse, fine, approved`.
pub(crate) async fn consent(
    State(app): State<App>,
    Visitor(browser): Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Response {
    if !form.has_csrf(&browser.csrf) {
        return stale_form();
    }
    let lines = |name: &str| form.get(name).unwrap_or_default().lines().map(str::to_owned).collect();
    let decision = Decision {
        approved: form.get("approved") == Some("yes"),
        expected_machine_id: form.get("machine").unwrap_or_default().to_owned(),
        expected_features_coarse: lines("coarse"),
        expected_features: lines("fine"),
    };
    match decide(&app, &browser.user, &id, decision).await {
        Ok(()) => Redirect::to(&format!("/console/{id}")).into_response(),
        Err(error) => failed(&browser, &error),
    }
}

/// `POST /console/{id}/call` with `csrf, tool, arguments`.
pub(crate) async fn call(
    State(app): State<App>,
    Visitor(browser): Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Response {
    if !form.has_csrf(&browser.csrf) {
        return stale_form();
    }
    let (name, arguments) = (form.get("tool").unwrap_or_default(), form.get("arguments").unwrap_or("{}"));
    let result = match run(&app, &browser, &id, name, arguments).await {
        Ok(result) => shown(name, result),
        Err(error) => html! { p role="alert" { (error.message) } },
    };
    page(&app, &browser, &id, &ToolForm { name, arguments }, result).await
}

async fn run(
    app: &App,
    browser: &SignIn,
    id: &str,
    name: &str,
    arguments: &str,
) -> Result<ToolResult, ApiError> {
    let session = owned(app, id, &browser.user).await?;
    let tool = tools::named(name).ok_or_else(|| ApiError::not_found("tool"))?;
    let arguments: Map<String, Value> = serde_json::from_str(arguments)
        .map_err(|error| ApiError::bad_request(format!("the arguments are no JSON object: {error}")))?;
    Ok(tools::run(app, &session, tool, arguments).await)
}

fn shown(name: &str, result: ToolResult) -> Markup {
    let mut value = match result {
        Ok(value) => value,
        Err(error) => {
            return html! {
                h2 { (name) }
                p role="alert" { strong { (error.code) } ": " (error.message) }
                @if let Some(details) = error.details { pre { (pretty(&Value::Object(details))) } }
            };
        }
    };
    let picture = value.as_object_mut().and_then(|map| map.remove("image_base64"));
    // Both were checked when the answer came in: a known type, and base64.
    let source = picture
        .as_ref()
        .and_then(Value::as_str)
        .map(|base64| format!("data:{};base64,{base64}", value["mime_type"].as_str().unwrap_or("image/png")));
    html! {
        h2 { (name) }
        @if let Some(source) = source { img src=(source) alt="What the machine shows"; }
        @let text = value["content"].as_str().or_else(|| value["stdout"].as_str());
        @if let Some(text) = text.filter(|text| !text.is_empty()) { pre { (cut(text)) } }
        pre { (cut(&pretty(&value))) }
    }
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(SHOWN).map_or(text, |(at, _)| &text[..at])
}

/// `POST /console/{id}/delete` with `csrf`.
pub(crate) async fn delete(
    State(app): State<App>,
    Visitor(browser): Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Response {
    if !form.has_csrf(&browser.csrf) {
        return stale_form();
    }
    match sessions::delete(&app, &id, &browser.user).await {
        Ok(()) => Redirect::to("/console").into_response(),
        Err(error) => failed(&browser, &error),
    }
}
