//! A desktop of its own for each test: an X server, a session bus, a window manager, a panel with a tray, and the app on it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use executor::config::Dirs;
use tempfile::TempDir;

/// Nothing here takes so long on an idle machine; a busy one gets its time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A process that ends with the test.
struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Dropped in this order: the programs before the display they are on.
pub(crate) struct Screen {
    programs: Vec<Held>,
    _x: Held,
    _bus: Held,
    display: String,
    pub(crate) bus: String,
    home: TempDir,
    /// Whether the app is given the vault's passphrase.
    pub(crate) has_passphrase: bool,
    /// What the app does about commands: `ask`, `allow` or `deny`.
    pub(crate) shell: &'static str,
}

impl Screen {
    /// With a panel that shows tray icons.
    pub(crate) fn new() -> Self {
        let mut screen = Self::bare();
        let channel = screen.home.path().join(".config/xfce4/xfconf/xfce-perchannel-xml");
        std::fs::create_dir_all(&channel).unwrap();
        std::fs::write(channel.join("xfce4-panel.xml"), PANEL).unwrap();
        screen.start(Command::new("xfce4-panel").args(["--disable-wm-check", "--sm-client-disable"]));
        screen
    }

    /// Without one.
    pub(crate) fn bare() -> Self {
        let home = tempfile::tempdir().unwrap();
        let runtime = home.path().join("run");
        std::fs::create_dir(&runtime).unwrap();
        std::fs::set_permissions(&runtime, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let (x, number) = said(Command::new("Xvfb").args([
            "-displayfd",
            "1",
            "-screen",
            "0",
            "1280x800x24",
            "-nolisten",
            "tcp",
        ]));
        let mut dbus = Command::new("dbus-daemon");
        dbus.args(["--session", "--nofork", "--print-address=1"]);
        dbus.env("HOME", home.path()).env("XDG_RUNTIME_DIR", &runtime).env("DISPLAY", format!(":{number}"));
        let (bus_process, bus) = said(&mut dbus);
        let bin = home.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let browser = bin.join("xdg-open");
        std::fs::write(&browser, "#!/bin/sh\nprintf '%s\\n' \"$1\" > \"$HOME/opened\"\n").unwrap();
        std::fs::set_permissions(&browser, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut screen = Self {
            programs: Vec::new(),
            _x: x,
            _bus: bus_process,
            display: format!(":{number}"),
            bus,
            home,
            has_passphrase: true,
            shell: "ask",
        };
        screen.start(&mut Command::new("openbox"));
        screen
    }

    /// Puts a program on this desktop's environment, and on no other's.
    fn place<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}", self.home.path().join("bin").display()))
            .env("DISPLAY", &self.display)
            .env("DBUS_SESSION_BUS_ADDRESS", &self.bus)
            .env("HOME", self.home.path())
            .env("XDG_RUNTIME_DIR", self.home.path().join("run"))
            .env("XDG_CURRENT_DESKTOP", "XFCE")
            .env("NO_AT_BRIDGE", "1")
            .env("LANG", "C.UTF-8")
            .env_remove("DESKHAND_SHOTS")
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .stdin(Stdio::null())
    }

    fn start(&mut self, command: &mut Command) -> u32 {
        let child = self.place(command).stdout(Stdio::null()).spawn().expect("the program starts");
        let pid = child.id();
        self.programs.push(Held(child));
        pid
    }

    /// The headless program in the background, with these folders; its process.
    pub(crate) fn headless(&mut self, dirs: &Dirs) -> u32 {
        let mut run = Command::new(Path::new(env!("CARGO_BIN_EXE_deskhand-app")).with_file_name("deskhand"));
        run.arg("--config-dir").arg(&dirs.config).arg("--state-dir").arg(&dirs.state).arg("run");
        run.env("DESKHAND_KEYCHAIN_PASSPHRASE", system_tests::rig::PASSPHRASE);
        self.start(&mut run)
    }

    /// The app, with these folders; its process. It hands addresses to [`Screen::opened`].
    pub(crate) fn app(&mut self, dirs: &Dirs, more: &[&str]) -> u32 {
        let mut app = Command::new(env!("CARGO_BIN_EXE_deskhand-app"));
        app.arg("--config-dir").arg(&dirs.config).arg("--state-dir").arg(&dirs.state).args(more);
        app.env("DESKHAND_CONSENT__SHELL", self.shell);
        if self.has_passphrase {
            app.env("DESKHAND_KEYCHAIN_PASSPHRASE", system_tests::rig::PASSPHRASE);
        }
        self.start(&mut app)
    }

    /// Waits for the end of a program that [`Screen::app`] or another start gave the process of.
    pub(crate) fn ended(&mut self, pid: u32) -> ExitStatus {
        let program = self.programs.iter_mut().find(|program| program.0.id() == pid).expect("one of ours");
        let mut status = None;
        until("the program ends", || {
            status = program.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// The address that was given to the browser, once one was.
    pub(crate) fn opened(&self) -> String {
        let file = self.home.path().join("opened");
        until("an address for the browser", || {
            std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))
        });
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        text.trim().to_owned()
    }

    /// The person's home.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Runs a small program of the desktop's and gives what it says.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> String {
        let mut bounded = Command::new("timeout"); // a display that hangs must fail the test, not hang it
        let output =
            self.place(bounded.arg("20").arg(program).args(arguments)).output().expect("the program starts");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// The window of this title, once it is on the screen.
    pub(crate) fn window(&self, title: &str) -> String {
        let mut found = String::new();
        until(&format!("a window '{title}'"), || {
            found = self.run("xdotool", &["search", "--onlyvisible", "--name", title]);
            !found.is_empty()
        });
        found.lines().last().unwrap_or_default().to_owned()
    }

    /// Whether a window of this title is on the screen.
    pub(crate) fn has_window(&self, title: &str) -> bool {
        !self.run("xdotool", &["search", "--onlyvisible", "--name", title]).is_empty()
    }

    /// Clicks so far from the window's left upper corner, with the real pointer.
    pub(crate) fn click(&self, window: &str, x: i32, y: i32) {
        self.run("xdotool", &["mousemove", "--window", window, &x.to_string(), &y.to_string(), "click", "1"]);
    }

    /// Presses keys, in whichever window has the focus.
    pub(crate) fn keys(&self, keys: &[&str]) {
        for key in keys {
            self.run("xdotool", &["key", key]);
        }
    }

    /// Types a text where the focus is.
    pub(crate) fn text(&self, text: &str) {
        self.run("xdotool", &["type", "--delay", "20", text]);
    }

    /// Waits until a window has drawn its page: until then it has one colour.
    pub(crate) fn settle(&self, window: &str) {
        until("a window that is drawn", || {
            let colours = self.run("import", &["-silent", "-window", window, "-format", "%k", "info:"]);
            colours.parse::<u32>().is_ok_and(|colours| colours > 20)
        });
        // A page draws once more when its first answers have come.
        std::thread::sleep(Duration::from_millis(300));
    }

    /// Closes a window as its frame's button does.
    pub(crate) fn close(&self, window: &str) {
        self.focus(window);
        self.keys(&["alt+F4"]);
    }

    /// Whether a consent prompt is there.
    pub(crate) fn has_prompt(&self) -> bool {
        self.has_window(crate::stage::PROMPT)
    }

    /// Another program's window, to type in.
    pub(crate) fn editor(&mut self) -> String {
        self.start(Command::new("xev").args(["-name", "editor"]));
        self.window("^editor$")
    }

    /// Says what a screen saver says when it locks and unlocks.
    pub(crate) fn lock(&self, locked: bool) {
        let said = format!("boolean:{locked}");
        let saver = ["--session", "--type=signal", "/org/freedesktop/ScreenSaver"];
        self.run("dbus-send", &[&saver[..], &["org.freedesktop.ScreenSaver.ActiveChanged", &said]].concat());
    }

    /// Ends the panel: no tray is left.
    pub(crate) fn close_panel(&mut self) {
        self.programs.pop();
    }

    /// Gives a window the focus.
    pub(crate) fn focus(&self, window: &str) {
        self.run("xdotool", &["windowfocus", "--sync", window]);
    }

    /// Width and height of a window.
    pub(crate) fn size(&self, window: &str) -> (i32, i32) {
        let said = self.run("xdotool", &["getwindowgeometry", "--shell", window]);
        let number = |name: &str| {
            said.lines()
                .find_map(|line| line.strip_prefix(name))
                .and_then(|text| text.parse().ok())
                .unwrap_or(0)
        };
        (number("WIDTH="), number("HEIGHT="))
    }

    /// The whole screen as a picture, for people: in the folder that `DESKHAND_SHOTS` names, if it does.
    pub(crate) fn picture(&self, name: &str) {
        if let Some(folder) = std::env::var_os("DESKHAND_SHOTS").map(PathBuf::from) {
            std::fs::create_dir_all(&folder).unwrap();
            let file = folder.join(format!("{name}.png"));
            self.run("import", &["-window", "root", file.to_str().unwrap()]);
        }
    }
}

/// A program's first line on standard output.
fn said(command: &mut Command) -> (Held, String) {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut line = String::new();
    let output = child.stdout.take().unwrap();
    let child = Held(child);
    BufReader::new(output).read_line(&mut line).unwrap();
    assert!(!line.trim().is_empty(), "{command:?} said nothing");
    (child, line.trim().to_owned())
}

/// Waits for what has no event.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One panel with a tray and nothing else.
const PANEL: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
  <property name="configver" type="int" value="2"/>
  <property name="panels" type="array">
    <value type="int" value="1"/>
    <property name="panel-1" type="empty">
      <property name="position" type="string" value="p=6;x=0;y=0"/>
      <property name="length" type="uint" value="100"/>
      <property name="size" type="uint" value="28"/>
      <property name="plugin-ids" type="array"><value type="int" value="1"/></property>
    </property>
  </property>
  <property name="plugins" type="empty">
    <property name="plugin-1" type="string" value="systray"/>
  </property>
</channel>
"#;
