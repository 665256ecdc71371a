import type {
  About,
  ActivityKind,
  ActivityRow,
  Chat,
  Folder,
  Permission,
  Prompt,
  Settings,
  Snapshot,
} from "../../src/lib/contract.ts";

export const CHATS = {
  invoices: "52a1fc59-9d2c-4b0e-8a35-6f1f5f0a7c11",
  shop: "de7613e1-5ae5-4a3c-9f94-f130a043c44c",
  notes: "0c7579f4-da11-418e-8e43-00c5e7a1d0b2",
} as const;

export const chats = (): Chat[] => [
  {
    session_id: CHATS.invoices,
    root: "/home/anna/work/invoices",
    connected: true,
    paused: false,
    in_flight: 2,
    idle_seconds: 3,
    background: ["python3 -m http.server 8000"],
    doing: "Running “cargo test --workspace” for 12 seconds",
  },
  {
    session_id: CHATS.shop,
    root: "/home/anna/work/bookshop",
    connected: true,
    paused: false,
    in_flight: 0,
    idle_seconds: 260,
    background: [],
    doing: null,
  },
  {
    session_id: CHATS.notes,
    root: "/home/anna/Documents/Notes and letters",
    connected: true,
    paused: true,
    in_flight: 0,
    idle_seconds: 1900,
    background: [],
    doing: null,
  },
];

export const snapshot = (): Snapshot => ({
  version: "0.1.0",
  platform_host: "platform.autogpt.net",
  platform_url: "https://platform.autogpt.net",
  display_name: "anna-laptop",
  mood: "working",
  mood_text: "Two chats are connected through platform.autogpt.net, one is at work.",
  connection: { state: "connected", connection_id: "c-1" },
  paused: false,
  sign_in: { state: "signed_in", account: "anna@example.org" },
  chats: chats(),
  prompts: 0,
  has_tray: true,
  shortcut: { keys: "Ctrl+Alt+Shift+Esc", taken: false },
  first_run: false,
});

export const settings = (): Settings => ({
  platform_url: "https://platform.autogpt.net",
  display_name: "anna-laptop",
  browse_home: false,
  trash: true,
  max_concurrent: 4,
  command_timeout_seconds: 30,
  max_file_size_bytes: 10_485_760,
  capabilities: {
    shell: true,
    computer_use: ["screen"],
    clipboard: "write_back",
    local_llm: false,
    recording: true,
    hardware: false,
  },
  consent: {
    read: "allow",
    write: "allow",
    shell: "ask",
    screen: "ask",
    input: "ask",
    clipboard: "ask",
    recording: "ask",
  },
  rules: [
    { capability: "shell", program: "git", root: "/home/anna/work", decision: "allow" },
    { capability: "write", program: null, root: "/home/anna/work/archive", decision: "deny" },
  ],
  rates: { commands_per_minute: 60, screenshots_per_minute: 10 },
  recording: { keep: 20, keep_days: 30 },
  local_llm_url: "http://127.0.0.1:11434",
  start_at_login: false,
  appearance: "system",
  shortcut: "Ctrl+Alt+Shift+Esc",
  overridden: [],
  works: ["shell", "screen", "input", "windows", "apps", "clipboard", "local_llm", "recording", "hardware"],
});

export const folders = (): Folder[] => [
  { path: "/home/anna/Deskhand", usable: true, reason: null },
  {
    path: "/home/anna/work",
    usable: true,
    reason: "It holds 41 000 files; searching in it can be slow.",
  },
  {
    path: "/home/anna/Pictures/old",
    usable: false,
    reason: "It is a link to another folder. Remove it, and add the folder that it leads to.",
  },
];

export const permissions = (): Permission[] => [
  { id: "folders", name: "Your folders", state: "ok", detail: "Deskhand can read and write them.", can_open: false },
  {
    id: "screen",
    name: "Screen",
    state: "warning",
    detail: "Your desktop asks you each time Deskhand starts.",
    can_open: false,
  },
  {
    id: "input",
    name: "Mouse and keyboard",
    state: "missing",
    detail: "Allow Deskhand in the system settings under Accessibility.",
    can_open: true,
  },
];

const CRATES = ["serde", "tokio", "tauri", "rustls", "hyper", "regex", "image", "url", "rand", "zeroize"];
export const about = (): About => ({
  version: "0.1.0",
  hosts: [
    { host: "platform.autogpt.net", what_for: "Signing in, and the connection your agent works through" },
    { host: "updates.example.org", what_for: "Looking for updates, once a day" },
  ],
  licences: Array.from({ length: 240 }, (_, i) => ({
    name: `${CRATES[i % CRATES.length]}${i < CRATES.length ? "" : `-${i}`}`,
    version: `1.${i % 40}.${i % 7}`,
    licence: i % 5 === 0 ? "MPL-2.0" : "MIT OR Apache-2.0",
  })),
  config_dir: "/home/anna/.config/deskhand",
  log_dir: "/home/anna/.local/state/deskhand",
});

const SENTENCES: [ActivityKind, string, string | null][] = [
  ["read", "Read notes/todo.md (312 bytes)", null],
  ["write", "Changed src/price.sh (one place)", null],
  ["shell", "Ran “cargo test --workspace --all-features -- --nocapture” in /home/anna/work/invoices", null],
  ["read", "Looked for “invoice” in 214 files", null],
  ["shell", "Wanted to run “curl https://example.com/install”", "You did not allow it."],
  ["screen", "Took a picture of the window “Spreadsheet”", null],
  ["connection", "Connected to platform.autogpt.net", null],
  ["write", "Moved 2024-11.pdf to archive/2024-11.pdf", null],
  ["input", "Clicked in the window “Spreadsheet”", null],
  ["read", "Wanted to read ../diary.txt", "It is outside the folder that was shared."],
  ["settings", "You allowed “Run commands” to ask", null],
  ["clipboard", "Copied 24 characters", null],
];

/** The record with this number. Every twelfth has no chat. */
export function record(seq: number, now: number, newest: number): Omit<ActivityRow, "index"> {
  const [kind, sentence, problem] = SENTENCES[seq % SENTENCES.length] as (typeof SENTENCES)[number];
  const ids = Object.values(CHATS);
  const own = kind === "connection" || kind === "settings";
  return {
    seq,
    time: new Date(now - (newest - seq) * 47_000).toISOString(),
    session_id: own ? null : (ids[seq % ids.length] ?? null),
    kind,
    sentence: `${sentence} #${seq}`,
    ok: problem === null,
    result: problem ?? "done",
    duration_ms: own ? null : (seq * 37) % 2500,
  };
}

export const prompt = (): Prompt => ({
  id: "p-1",
  host: "platform.autogpt.net",
  session_id: CHATS.invoices,
  request_type: "EXECUTE_COMMAND",
  capability: "shell",
  root: "/home/anna/work/invoices",
  title: "Run a command on your computer",
  lines: [
    { label: "Command", text: 'python3 tools/import.py --from "2024-11 statement.csv" --into ledger.sqlite' },
    { label: "Runs for at most", text: "30 seconds" },
  ],
  left_out: 0,
  offers: ["allow_once", "allow_15_minutes", "allow_chat", "deny", "deny_and_disconnect"],
  covers: "Any run of /usr/bin/python3 by this chat in /home/anna/work/invoices, with other arguments too.",
  shown: false,
  requests: 1,
  seconds_left: null,
  picture: null,
});
