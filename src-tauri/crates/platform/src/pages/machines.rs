//! The machines that are connected.

use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};

use super::layout;
use crate::app::App;
use crate::auth::Visitor;
use crate::relay::Facts;

/// `GET /`.
pub(crate) async fn home() -> Redirect {
    Redirect::to("/machines")
}

/// `GET /machines`.
pub(crate) async fn show(State(app): State<App>, Visitor(browser): Visitor) -> Response {
    let machines = app.presence.machines(&browser.user);
    let content = html! {
        @if machines.is_empty() {
            p { "No machine of yours is connected. Start Deskhand there and choose Connect, or run " code { "deskhand run" } "." }
            p { "Address of this platform: " code { (app.url) } }
        } @else {
            table {
                thead { tr { th scope="col" { "Machine" } th scope="col" { "System" } th scope="col" { "Switched on" } th scope="col" { "Folder" } } }
                tbody { @for line in &machines { (row(line.facts())) } }
            }
        }
        p { a href="/machines" { "Look again" } }
    };
    layout("Machines", Some(&browser), content).into_response()
}

fn row(facts: &Facts) -> Markup {
    let hello = &facts.hello;
    let offers: Vec<_> = facts.granted.iter().map(|capability| capability.as_str()).collect();
    html! {
        tr {
            th scope="row" { (hello.display_name) }
            td { (hello.platform.as_str()) " " (hello.arch) ", Deskhand " (hello.shim_version) }
            td { (offers.join(", ")) }
            td { a href=(format!("/machines/{}/folders", hello.machine_id)) { "Choose a folder" } }
        }
    }
}
