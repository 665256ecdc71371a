//! The folder picker.
//!
//! A page stands for one control connection and one browse. When the machine has connected anew, or the references have
//! died, the folder shown is cleared and the person starts again: nothing stale can be chosen.

use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use protocol::{DirectoryEntry, DirectoryListResponse, MachineId};

use super::{Form, csrf, failed, layout, stale_form};
use crate::api::{Browse, list_folders};
use crate::app::App;
use crate::auth::Visitor;
use crate::error::ApiError;
use crate::sessions::{LocalTarget, create_local};
use crate::store::users::SignIn;

/// Folders in a trail; deeper ones are reached all the same, without their crumbs.
const MAX_TRAIL: usize = 40;

/// One folder on the way to the one shown.
#[derive(Clone)]
struct Crumb {
    directory_ref: String,
    name: String,
}

/// Where the picker stands, as its URL says it.
struct Place {
    machine: MachineId,
    connection: String,
    browse: Option<String>,
    directory: Option<String>,
    cursor: Option<String>,
    trail: Vec<Crumb>,
}

impl Place {
    fn parse(machine: MachineId, query: &str) -> Option<Self> {
        let mut place = Self {
            machine,
            connection: String::new(),
            browse: None,
            directory: None,
            cursor: None,
            trail: Vec::new(),
        };
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            match &*key {
                "connection" => place.connection = value,
                "browse" => place.browse = Some(value),
                "ref" => place.directory = Some(value),
                "cursor" => place.cursor = Some(value),
                "t" if place.trail.len() < MAX_TRAIL => {
                    let (directory_ref, name) = value.split_once(':')?;
                    place
                        .trail
                        .push(Crumb { directory_ref: directory_ref.to_owned(), name: name.to_owned() });
                }
                _ => {}
            }
        }
        (!place.connection.is_empty()).then_some(place)
    }

    fn url(&self, browse: &str, directory: &str, cursor: Option<&str>, trail: &[Crumb]) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("connection", &self.connection);
        query.append_pair("browse", browse).append_pair("ref", directory);
        query.extend_pairs(cursor.map(|cursor| ("cursor", cursor)));
        query
            .extend_pairs(trail.iter().map(|crumb| ("t", format!("{}:{}", crumb.directory_ref, crumb.name))));
        format!("{}?{}", start(&self.machine), query.finish())
    }
}

fn start(machine: &MachineId) -> String {
    format!("/machines/{machine}/folders")
}

/// `GET /machines/{machine_id}/folders`: without a query it starts over the current connection.
pub(crate) async fn show(
    State(app): State<App>,
    Visitor(browser): Visitor,
    Path(machine): Path<MachineId>,
    RawQuery(query): RawQuery,
) -> Response {
    let Some(place) = Place::parse(machine.clone(), &query.unwrap_or_default()) else {
        return match app.presence.machine(&browser.user, &machine) {
            Some(line) => {
                let connection = &line.facts().connection_id;
                Redirect::to(&format!("{}?connection={connection}", start(&machine))).into_response()
            }
            None => stale(&browser, &machine, "The machine is not connected."),
        };
    };
    let request = Browse {
        expected_connection_id: place.connection.clone(),
        browse_id: place.browse.clone(),
        directory_ref: place.directory.clone(),
        cursor: place.cursor.clone(),
    };
    match list_folders(&app, &browser.user, &machine, request).await {
        Ok((line, folders)) => {
            let title = format!("Choose a folder on {}", line.facts().hello.display_name);
            layout(&title, Some(&browser), picker(&browser, &place, &folders)).into_response()
        }
        Err(error) if error.status == StatusCode::CONFLICT => stale(&browser, &machine, &error.message),
        Err(error) => failed(&browser, &error),
    }
}

/// The folder that was shown is cleared.
fn stale(browser: &SignIn, machine: &MachineId, why: &str) -> Response {
    let content = html! {
        p role="alert" { (why) }
        p { "What was shown of its folders is no longer valid, and nothing was chosen." }
        ul {
            li { a href=(start(machine)) { "Start again" } }
            li { a href="/machines" { "To the machines" } }
        }
    };
    (StatusCode::CONFLICT, layout("Choose a folder", Some(browser), content)).into_response()
}

fn picker(browser: &SignIn, place: &Place, folders: &DirectoryListResponse) -> Markup {
    let browse = &folders.browse_id;
    let current = folders.current.as_ref();
    html! {
        nav aria-label="Folders" { ol.crumbs {
            li { a href=(format!("{}?connection={}", start(&place.machine), place.connection)) { "Start" } }
            @for (at, crumb) in place.trail.iter().enumerate() {
                @let here = current.is_some_and(|current| current.directory_ref == crumb.directory_ref);
                li {
                    a href=(place.url(browse, &crumb.directory_ref, None, &place.trail[..=at]))
                        aria-current=[here.then_some("page")] { (crumb.name) }
                }
            }
        } }
        @if let Some(current) = current {
            p { code { (current.path) } }
            (choose_form(browser, place, browse, current))
            @if let (true, Some(parent)) = (place.trail.is_empty(), &folders.parent_ref) {
                p { a href=(place.url(browse, parent, None, &[])) { "Up" } }
            }
        } @else {
            p { "These are the folders that the machine offers. Open one, and choose it or a folder in it." }
        }
        @if folders.entries.is_empty() { p { "There are no folders here." } }
        ul.folders { @for entry in &folders.entries { li { a href=(open(place, browse, entry)) { (entry.name) } } } }
        @if let (Some(cursor), Some(current)) = (&folders.next_cursor, current) {
            p { a href=(place.url(browse, &current.directory_ref, Some(cursor), &place.trail)) { "More folders" } }
        }
        @if folders.truncated { p { "There are more folders than the machine lists." } }
    }
}

fn open(place: &Place, browse: &str, entry: &DirectoryEntry) -> String {
    let crumb = Crumb { directory_ref: entry.directory_ref.clone(), name: entry.name.clone() };
    let trail: Vec<_> = place.trail.iter().cloned().chain([crumb]).collect();
    place.url(browse, &entry.directory_ref, None, &trail)
}

fn choose_form(browser: &SignIn, place: &Place, browse: &str, current: &DirectoryEntry) -> Markup {
    html! {
        form method="post" action="/sessions" {
            (csrf(browser))
            input type="hidden" name="machine" value=(place.machine);
            input type="hidden" name="connection" value=(place.connection);
            input type="hidden" name="browse" value=(browse);
            input type="hidden" name="ref" value=(current.directory_ref);
            button.primary type="submit" { "Start a chat session in " (current.name) }
        }
    }
}

/// `POST /sessions` with `csrf, machine, connection, browse, ref`.
pub(crate) async fn choose(State(app): State<App>, Visitor(browser): Visitor, form: Form) -> Response {
    if !form.has_csrf(&browser.csrf) {
        return stale_form();
    }
    let field = |name: &str| form.get(name).unwrap_or_default().to_owned();
    let Ok(machine_id) = field("machine").parse::<MachineId>() else {
        return failed(&browser, &ApiError::bad_request("the form does not name a machine"));
    };
    let target = LocalTarget {
        machine_id: machine_id.clone(),
        connection_id: field("connection"),
        browse_id: field("browse"),
        directory_ref: field("ref"),
    };
    match create_local(&app, &browser.user, target).await {
        Ok(session) => Redirect::to(&format!("/console/{}", session.id)).into_response(),
        Err(error) if error.status == StatusCode::CONFLICT => stale(&browser, &machine_id, &error.message),
        Err(error) => failed(&browser, &error),
    }
}
