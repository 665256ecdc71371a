//! The tray icon and its menu, made from the executor's state and from nothing else.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use executor::events::ConnectionState;
use executor::front::{Change, Front, Mood, SignIn, Snapshot, Window};
use serde_json::{Value, json};
use tauri::image::Image;
use tauri::menu::{IsMenuItem, Menu, MenuItem, PredefinedMenuItem, Submenu};
use tauri::tray::{TrayIcon, TrayIconBuilder};
use tauri::{AppHandle, Manager, Wry};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tracing::{error, warn};

use crate::{desktop, start, windows};

/// Changes come in bursts; the tray follows them so often.
const FOLLOW: Duration = Duration::from_millis(150);

static SHOWN: AtomicBool = AtomicBool::new(cfg!(not(target_os = "linux")));

/// Whether the desktop shows tray icons.
pub(crate) fn is_shown() -> bool {
    SHOWN.load(Ordering::Acquire)
}

/// What the menu says. It is built anew only when this changes: an open menu must not flicker.
#[derive(Clone, PartialEq)]
struct Wording {
    mood: Mood,
    tooltip: String,
    headline: String,
    keys: Option<String>,
    pause: (&'static str, &'static str),
    connection: (&'static str, &'static str),
    chats: Vec<(String, String)>,
    sign_out: Option<String>,
}

impl Wording {
    fn of(snapshot: &Snapshot) -> Self {
        let online = !matches!(
            snapshot.connection,
            ConnectionState::Off { .. } | ConnectionState::SignedOut { .. } | ConnectionState::Halted { .. }
        );
        let signed_in = matches!(snapshot.sign_in, SignIn::SignedIn { .. });
        Self {
            mood: snapshot.mood,
            tooltip: format!("Deskhand: {}", snapshot.mood_text),
            headline: shorten(&snapshot.mood_text),
            keys: (!snapshot.shortcut.taken).then(|| snapshot.shortcut.keys.clone()),
            pause: if snapshot.paused { ("resume", "Resume") } else { ("pause", "Pause for 15 minutes") },
            connection: if online { ("disconnect", "Disconnect") } else { ("connect", "Connect…") },
            chats: snapshot
                .chats
                .iter()
                .map(|chat| {
                    let name: String = chat.session.session_id.chars().take(8).collect();
                    (
                        chat.session.session_id.clone(),
                        format!("Chat {name} — {}", shorten(&chat.session.root)),
                    )
                })
                .collect(),
            sign_out: signed_in.then(|| match &snapshot.sign_in {
                SignIn::SignedIn { account: Some(account) } => format!("Sign out {account}"),
                _ => "Sign out".to_owned(), // the platform has not said who it is
            }),
        }
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Puts the icon there and lets it follow.
pub(crate) fn start(app: &AppHandle, front: &Front) -> tauri::Result<()> {
    let changes = front.subscribe(); // first, so that nothing is missed between the two
    let wording = Wording::of(&front.snapshot());
    let icon = TrayIconBuilder::with_id("deskhand")
        .icon(picture(wording.mood)?)
        .tooltip(&wording.tooltip)
        .menu(&menu(app, &wording)?)
        .show_menu_on_left_click(true)
        .on_menu_event(|app, event| act(app, event.id().as_ref()))
        .build(app)?;
    app.manage(Mutex::new(wording));
    tauri::async_runtime::spawn(follow(app.clone(), front.clone(), icon, changes));
    Ok(())
}

async fn follow(app: AppHandle, front: Front, icon: TrayIcon, mut changes: Receiver<Change>) {
    loop {
        match changes.recv().await {
            Ok(Change::State) | Err(RecvError::Lagged(_)) => {}
            Ok(Change::Activity | Change::Prompt) => continue,
            Err(RecvError::Closed) => return,
        }
        tokio::time::sleep(FOLLOW).await;
        changes = front.subscribe(); // whatever came meanwhile is in the snapshot
        let (now, icon) = (Wording::of(&front.snapshot()), icon.clone());
        windows::on_main_thread(&app, move |app| {
            let shown = app.state::<Mutex<Wording>>();
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            if *shown != now {
                if let Err(error) = show(app, &icon, &shown, &now) {
                    warn!(%error, "the tray icon cannot follow");
                }
                *shown = now;
            }
        });
    }
}

fn show(app: &AppHandle, icon: &TrayIcon, before: &Wording, now: &Wording) -> tauri::Result<()> {
    if before.mood != now.mood {
        icon.set_icon(Some(picture(now.mood)?))?;
    }
    icon.set_tooltip(Some(&now.tooltip))?;
    icon.set_menu(Some(menu(app, now)?))
}

fn menu(app: &AppHandle, wording: &Wording) -> tauri::Result<Menu<Wry>> {
    let item = |id: &str, text: &str| MenuItem::with_id(app, id, text, true, None::<&str>);
    let line = || PredefinedMenuItem::separator(app);
    let headline = MenuItem::with_id(app, "headline", &wording.headline, false, None::<&str>)?;
    let stop = MenuItem::with_id(app, "stop", "Stop everything", true, wording.keys.as_deref())?;
    let mut chats: Vec<Submenu<Wry>> = Vec::new();
    for (session, text) in &wording.chats {
        let end = item(&format!("chat:{session}"), "Disconnect this chat")?;
        chats.push(Submenu::with_items(app, text, true, &[&end])?);
    }
    let chats: Vec<&dyn IsMenuItem<Wry>> = chats.iter().map(|chat| chat as &dyn IsMenuItem<Wry>).collect();
    let chats = Submenu::with_items(app, "Chats", !chats.is_empty(), &chats)?;
    let menu = Menu::with_items(
        app,
        &[
            &headline,
            &line()?,
            &stop,
            &item(wording.pause.0, wording.pause.1)?,
            &item(wording.connection.0, wording.connection.1)?,
            &line()?,
            &chats,
            &item("activity", "Activity…")?,
            &item("open", "Open Deskhand")?,
            &line()?,
        ],
    )?;
    if let Some(sign_out) = &wording.sign_out {
        menu.append(&item("sign_out", sign_out)?)?;
    }
    menu.append(&item("quit", "Quit")?)?;
    Ok(menu)
}

/// One entry was clicked. Never on this thread: it is the one that draws.
fn act(app: &AppHandle, id: &str) {
    let Some(front) = app.try_state::<Front>().map(|front| front.inner().clone()) else { return };
    match id {
        "open" => windows::open_main(app),
        "activity" => windows::open_at(app, "activity"),
        "quit" => start::quit(app),
        "stop" => {
            std::thread::spawn(move || front.executor().kill_switch().throw("tray"));
        }
        // Signing in shows its state, and what to do, in the window.
        "connect" if !matches!(front.snapshot().sign_in, SignIn::SignedIn { .. }) => {
            windows::open_main(app);
            run(app, front, "sign_in", json!({}));
        }
        "pause" => run(app, front, "pause", json!({"minutes": 15})),
        "resume" => run(app, front, "resume", json!({"session_id": null})),
        "connect" => run(app, front, "connect", json!({})),
        "disconnect" => run(app, front, "disconnect", json!({})),
        "sign_out" => run(app, front, "sign_out", json!({})),
        chat => {
            if let Some(session) = chat.strip_prefix("chat:") {
                run(app, front, "disconnect_chat", json!({"session_id": session}));
            }
        }
    }
}

fn run(app: &AppHandle, front: Front, command: &'static str, with: Value) {
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        if let Err(message) = front.call(Window::Main, command, with).await {
            tauri::async_runtime::spawn_blocking(move || desktop::complain(&app, "Deskhand", message));
        }
    });
}

fn picture(mood: Mood) -> tauri::Result<Image<'static>> {
    let bytes: &'static [u8] = match mood {
        Mood::Off => include_bytes!("../../icons/tray/off.png"),
        Mood::Connected => include_bytes!("../../icons/tray/connected.png"),
        Mood::Working => include_bytes!("../../icons/tray/working.png"),
        Mood::InControl => include_bytes!("../../icons/tray/in-control.png"),
        Mood::Recording => include_bytes!("../../icons/tray/recording.png"),
        Mood::Paused => include_bytes!("../../icons/tray/paused.png"),
        Mood::Trouble => include_bytes!("../../icons/tray/trouble.png"),
    };
    Image::from_bytes(bytes)
}

/// Follows whether a tray is there: on Linux some desktops have none.
#[cfg(target_os = "linux")]
pub(crate) async fn watch_for_tray(front: Front) {
    use zbus::fdo::DBusProxy;
    const WATCHER: &str = "org.kde.StatusNotifierWatcher";
    let watched: zbus::Result<()> = async {
        let bus = zbus::Connection::session().await?;
        let names = DBusProxy::new(&bus).await?;
        let mut owners = names.receive_name_owner_changed_with_args(&[(0, WATCHER)]).await?;
        let mut there = names.name_has_owner(WATCHER.try_into()?).await?;
        loop {
            if SHOWN.swap(there, Ordering::AcqRel) != there {
                front.changed();
            }
            let Some(change) = futures_util::StreamExt::next(&mut owners).await else { return Ok(()) };
            there = change.args()?.new_owner().is_some();
        }
    }
    .await;
    if let Err(error) = watched {
        error!(%error, "no session bus: there is no tray");
    }
}
