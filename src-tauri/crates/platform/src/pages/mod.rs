//! Server-rendered pages: no script, nothing remote, every text escaped by construction.

mod console;
mod folders;
mod machines;
pub(crate) mod sign_in;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Router, routing::get, routing::post};
use maud::{DOCTYPE, Markup, html};

use crate::app::App;
use crate::error::ApiError;
use crate::oauth::Asked;
use crate::secret;
use crate::store::users::SignIn;

/// Nothing may run, load or frame but our own style sheet and pictures that stand in the page itself.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; \
                                 frame-ancestors 'none'; base-uri 'none'";

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/static/style.css", get(style))
        .route("/", get(machines::home))
        .route("/machines", get(machines::show))
        .route("/machines/{machine_id}/folders", get(folders::show))
        .route("/sessions", post(folders::choose))
        .route("/console", get(console::list))
        .route("/console/{id}", get(console::show))
        .route("/console/{id}/call", post(console::call))
        .route("/console/{id}/consent", post(console::consent))
        .route("/console/{id}/delete", post(console::delete))
        .route("/auth/sign-in", get(sign_in::show).post(sign_in::submit))
        .route("/auth/sign-out", post(sign_in::sign_out))
}

async fn style() -> Response {
    let kind = (header::CONTENT_TYPE, "text/css; charset=utf-8");
    ([kind, (header::CACHE_CONTROL, "max-age=3600")], include_str!("style.css")).into_response()
}

/// A form's fields.
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn has_csrf(&self, expected: &str) -> bool {
        self.get("csrf").is_some_and(|csrf| secret::same(csrf, expected))
    }
}

impl FromRequest<App> for Form {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, app)
            .await
            .map_err(|e| ApiError::new(e.status(), "invalid_request", e.body_text()))?;
        Ok(Self(url::form_urlencoded::parse(&bytes).into_owned().collect()))
    }
}

/// A whole page.
pub(crate) fn layout(title: &str, browser: Option<&SignIn>, content: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Deskhand platform" }
                link rel="stylesheet" href="/static/style.css";
            }
            body {
                a.skip href="#content" { "Skip to content" }
                header {
                    strong { "Deskhand platform" }
                    @if let Some(browser) = browser {
                        nav aria-label="Main" {
                            a href="/machines" { "Machines" }
                            a href="/console" { "Console" }
                        }
                        form.inline method="post" action="/auth/sign-out" {
                            (csrf(browser))
                            span { (browser.name) } " "
                            button type="submit" { "Sign out" }
                        }
                    }
                }
                main #content tabindex="-1" {
                    h1 { (title) }
                    (content)
                }
            }
        }
    }
}

/// The hidden field that every form carries.
pub(crate) fn csrf(browser: &SignIn) -> Markup {
    html! { input type="hidden" name="csrf" value=(browser.csrf); }
}

/// A page that says what went wrong.
pub(crate) fn problem(title: &str, text: &str) -> Markup {
    layout(title, None, html! { p role="alert" { (text) } p { a href="/machines" { "To the machines" } } })
}

/// An error of the API, for people.
pub(crate) fn failed(browser: &SignIn, error: &ApiError) -> Response {
    let content = html! {
        p role="alert" { (error.message) }
        p { a href="/machines" { "To the machines" } }
    };
    (error.status, layout("That did not work", Some(browser), content)).into_response()
}

/// A form whose page is too old, or that was not ours.
pub(crate) fn stale_form() -> Response {
    let text = "This page is too old, or you have signed out since. Go back, reload it and try again.";
    (StatusCode::FORBIDDEN, problem("Please try again", text)).into_response()
}

/// Lets a page's forms lead to one more place: browsers apply `form-action` to a form's redirects too.
pub(crate) fn allowing_form_to(source: Option<String>, page: Markup) -> Response {
    let mut response = page.into_response();
    if let Some(source) = source {
        let policy = POLICY.replace("form-action 'self'", &format!("form-action 'self' {source}"));
        if let Ok(policy) = HeaderValue::from_str(&policy) {
            response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        }
    }
    response
}

/// Approve or Deny.
pub(crate) fn approve(browser: &SignIn, asked: &Asked, action: &str) -> Markup {
    let content = html! {
        p { strong { (asked.client.name) } " wants to connect a computer to your account, " strong { (browser.name) } "." }
        p { "Chats of yours will then be able to use what is switched on there. Which folders, commands and screens \
             that is, and when you are asked, is decided on that computer." }
        p { "You will be sent back to " code { (asked.redirect_uri) } "." }
        form method="post" action=(action) {
            (csrf(browser))
            button.primary type="submit" name="decision" value="approve" { "Approve" } " "
            button type="submit" name="decision" value="deny" { "Deny" }
        }
    };
    layout("Connect a computer?", Some(browser), content)
}
