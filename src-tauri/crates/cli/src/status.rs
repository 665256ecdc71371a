//! `deskhand status`: the state, and what happens.

use executor::consent::visible_line;
use executor::events::{ConnectionState, Event, SessionReport, StatusReport};
use executor::local::{Answer, Client, ClientError};
use executor::off;
use serde_json::{Value, json};

use crate::args::Status;
use crate::context::{Context, block_on};
use crate::failure::{Code, Failure, Outcome, failed};
use crate::output;

pub(crate) fn status(context: &Context, options: &Status) -> Outcome {
    block_on(async {
        let mut client = match Client::connect(&context.dirs.state).await {
            Ok(client) => client,
            Err(ClientError::NotRunning) => return not_running(context, options.json),
            Err(error) => return Err(error.into()),
        };
        if options.watch {
            return watch(client, options.json).await;
        }
        let report = client.status().await?;
        if options.json { output::json(&running(&report)?) } else { output::line(described(&report)) }
    })
}

fn not_running(context: &Context, as_json: bool) -> Outcome {
    let off = off::recall(&context.dirs.state).map(off::Off::reason);
    if as_json {
        output::json(&json!({"running": false, "off": off}))?;
    } else {
        output::line(match off {
            Some(reason) => format!("deskhand is not running, and stays off when started: {reason}"),
            None => "deskhand is not running".to_owned(),
        })?;
    }
    Err(Failure::silent(Code::Unavailable))
}

fn running(report: &StatusReport) -> Outcome<Value> {
    let mut value = serde_json::to_value(report).map_err(failed(Code::Failed))?;
    value["running"] = true.into();
    Ok(value)
}

async fn watch(client: Client, as_json: bool) -> Outcome {
    let mut watch = client.watch().await?;
    while let Some(answer) = watch.next().await? {
        match answer {
            Answer::Status { report } if as_json => output::line(running(&report)?)?,
            Answer::Status { report } => output::line(described(&report))?,
            Answer::Event { event } if as_json => {
                output::line(serde_json::to_value(&event).map_err(failed(Code::Failed))?)?
            }
            Answer::Event { event } => output::line(told(&event))?,
            Answer::Missed { events } if as_json => {
                output::line(json!({"event": "missed", "events": events}))?
            }
            Answer::Missed { events } => output::line(format_args!("({events} events were missed)"))?,
            // Neither comes to a watcher: the client makes an error of a refusal.
            Answer::Done { .. } | Answer::Standing { .. } | Answer::Refused { .. } => {}
        }
    }
    output::note("deskhand has ended");
    Ok(())
}

/// Several lines, without a newline at the end. What others have named is made harmless for a terminal.
fn described(report: &StatusReport) -> String {
    let StatusReport { version, pid, machine_id, display_name, platform_url, uptime_seconds, .. } = report;
    let mut lines = vec![
        format!("deskhand   {version}, process {pid}, for {}", output::duration(*uptime_seconds)),
        format!("platform   {platform_url}: {}", connection(&report.connection)),
        format!("machine    {} ({machine_id})", visible_line(display_name)),
    ];
    if report.paused {
        lines.push("PAUSED     every request is refused until: deskhand resume".to_owned());
    }
    if report.prompts > 0 {
        lines.push(format!("prompts    {} waiting for an answer", report.prompts));
    }
    lines.push(format!("requests   {} in flight, {} waiting", report.in_flight, report.queue_depth));
    lines.push(format!("audit log  {} ({})", report.audit_log, output::size(report.audit_log_bytes)));
    lines.push(format!("sessions   {}", report.sessions.len()));
    lines.extend(report.sessions.iter().map(session));
    lines.join("\n")
}

fn session(session: &SessionReport) -> String {
    let mut text = format!(
        "  {}  {}: {}, {} in flight, idle for {}",
        visible_line(&session.session_id),
        visible_line(&session.root),
        if session.connected { "connected" } else { "not connected" },
        session.in_flight,
        output::duration(session.idle_seconds),
    );
    if session.paused {
        text.push_str(&format!(
            "; PAUSED after denials: deskhand resume {}",
            visible_line(&session.session_id)
        ));
    }
    if !session.background.is_empty() {
        text.push_str(&format!("; in the background: {}", visible_line(&session.background.join(", "))));
    }
    text
}

/// In words, fit for a terminal.
pub(crate) fn connection(state: &ConnectionState) -> String {
    match state {
        ConnectionState::Off { reason } => format!("off ({})", visible_line(reason)),
        ConnectionState::Connecting => "connecting".to_owned(),
        ConnectionState::Connected { connection_id } => {
            format!("connected ({})", visible_line(connection_id))
        }
        ConnectionState::Waiting { seconds, reason } => {
            format!("trying again in {seconds:.0} s ({})", visible_line(reason))
        }
        ConnectionState::SignedOut { reason } => {
            format!("signed out ({}): deskhand login", visible_line(reason))
        }
        ConnectionState::Halted { reason } => format!("given up: {}", visible_line(reason)),
    }
}

/// One line about an event, fit for a terminal.
pub(crate) fn told(event: &Event) -> String {
    let whose =
        |session: &Option<String>| session.as_deref().map_or_else(|| "control".to_owned(), visible_line);
    match event {
        Event::Connection { state } => format!("platform: {}", connection(state)),
        Event::SessionOpened { session_id, root } => {
            format!("session {} opened in {}", visible_line(session_id), visible_line(root))
        }
        Event::SessionClosed { session_id, reason } => {
            format!("session {} closed: {}", visible_line(session_id), visible_line(reason))
        }
        Event::RequestStarted { session_id, request_id, op } => {
            format!("{}: {} {} started", whose(session_id), visible_line(op), visible_line(request_id))
        }
        Event::RequestFinished { session_id, request_id, op, error_code, duration_ms } => format!(
            "{}: {} {} {} after {duration_ms} ms",
            whose(session_id),
            visible_line(op),
            visible_line(request_id),
            error_code
                .as_deref()
                .map_or_else(|| "done".to_owned(), |code| format!("answered {}", visible_line(code))),
        ),
        Event::PromptOpened { prompt_id, session_id, capability } => {
            format!(
                "session {} asks for consent to {capability} (prompt {prompt_id})",
                visible_line(session_id)
            )
        }
        Event::PromptClosed { prompt_id, decision } => {
            format!("prompt {prompt_id}: {}", visible_line(decision))
        }
        Event::RefusedByRule { session_id, capability } => {
            format!("session {}: {capability} was refused by a rule", visible_line(session_id))
        }
        Event::SessionPaused { session_id } => {
            let id = visible_line(session_id);
            format!("session {id} is paused after too many denials: deskhand resume {id}")
        }
        Event::Paused { paused: true, reason } => {
            format!(
                "paused{}",
                reason.as_deref().map_or_else(String::new, |why| format!(": {}", visible_line(why)))
            )
        }
        Event::Paused { paused: false, .. } => "resumed".to_owned(),
        Event::Killed { took_ms } => {
            format!("the kill switch was thrown: everything ended within {took_ms} ms")
        }
        Event::Warning { message } => format!("warning: {}", visible_line(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_named_cannot_steer_the_terminal() {
        let event = Event::SessionOpened { session_id: "s\x1b[2J".into(), root: "/a\n/b".into() };
        let line = told(&event);
        assert!(!line.contains(['\x1b', '\n']), "{line:?}");
        let state = ConnectionState::Halted { reason: "x\x1b]0;title\x07".into() };
        assert!(!connection(&state).contains(['\x1b', '\x07']));
    }
}
