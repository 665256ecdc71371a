// What the windows and the Rust side say to each other. The Rust side serves exactly these (snake_case) names and shapes.
//
// In the app: Tauri's `invoke(name, args)` and `listen(event)`. In a plain browser (development server): POST /api/NAME with
// the args object as JSON gives 200 and a JSON result, or 400 and `{"message": string}`; GET /api/events is an event stream
// whose events have the names below. An error is always a sentence for a person that says what to do.

export type ConnectionState =
  | { state: "off"; reason: string }
  | { state: "connecting" }
  | { state: "connected"; connection_id: string }
  | { state: "waiting"; seconds: number; reason: string }
  | { state: "signed_out"; reason: string }
  | { state: "halted"; reason: string };

/** The one word that the tray icon and the Home page show. */
export type Mood = "off" | "connected" | "working" | "in_control" | "recording" | "paused" | "trouble";

export type SignIn =
  | { state: "signed_out" }
  /** The browser is open; the page can be opened again, its address copied, the sign-in cancelled. */
  | { state: "waiting"; url: string }
  | { state: "failed"; message: string }
  | { state: "signed_in"; account: string | null };

export interface Chat {
  session_id: string;
  root: string;
  connected: boolean;
  paused: boolean;
  in_flight: number;
  idle_seconds: number;
  background: string[];
  /** What it does right now, a sentence. */
  doing: string | null;
}

export interface Snapshot {
  version: string;
  platform_host: string;
  platform_url: string;
  display_name: string;
  mood: Mood;
  /** The tray's tooltip, a sentence. */
  mood_text: string;
  connection: ConnectionState;
  paused: boolean;
  sign_in: SignIn;
  chats: Chat[];
  /** How many prompts wait for an answer. */
  prompts: number;
  has_tray: boolean;
  shortcut: { keys: string; taken: boolean };
  first_run: boolean;
}

export type ActivityKind =
  "read" | "write" | "shell" | "screen" | "input" | "clipboard" | "record" | "connection" | "settings" | "other";

export interface ActivityFilter {
  session_id: string | null;
  kind: ActivityKind | null;
}

export interface ActivitySummary {
  /** How many records match the filter. */
  total: number;
  sessions: string[];
}

export interface ActivityRow {
  /** 0 is the newest. */
  index: number;
  seq: number;
  /** RFC 3339, UTC. */
  time: string;
  session_id: string | null;
  kind: ActivityKind;
  /** "Read notes/todo.md (312 bytes)" */
  sentence: string;
  ok: boolean;
  /** "done", or the error in words. */
  result: string;
  duration_ms: number | null;
}

export interface Verification {
  ok: boolean;
  records: number;
  files: number;
  problems: string[];
}

export interface Folder {
  path: string;
  usable: boolean;
  /** Why it cannot be used, or a warning. */
  reason: string | null;
}

export type Decision = "allow" | "ask" | "deny";

export interface Rule {
  capability: string;
  program: string | null;
  root: string | null;
  decision: Decision;
}

export interface Permission {
  id: string;
  name: string;
  state: "ok" | "warning" | "missing";
  detail: string;
  can_open: boolean;
}

export type ComputerUse = "screen" | "input" | "windows" | "apps";
export type ClipboardUse = "off" | "write_back" | "read";
export type ConsentClass = "read" | "write" | "shell" | "screen" | "input" | "clipboard" | "recording";

export interface Settings {
  platform_url: string;
  display_name: string;
  browse_home: boolean;
  trash: boolean;
  max_concurrent: number;
  command_timeout_seconds: number;
  max_file_size_bytes: number;
  capabilities: {
    shell: boolean;
    computer_use: ComputerUse[];
    clipboard: ClipboardUse;
    local_llm: boolean;
    recording: boolean;
    hardware: boolean;
  };
  consent: Record<ConsentClass, Decision>;
  rules: Rule[];
  rates: { commands_per_minute: number; screenshots_per_minute: number };
  recording: { keep: number; keep_days: number };
  local_llm_url: string;
  start_at_login: boolean;
  appearance: "system" | "light" | "dark";
  shortcut: string;
  /** Dotted keys fixed by an environment variable or a flag: shown disabled, with that reason. */
  overridden: string[];
  /** Capabilities that are built into this version: "shell", "screen", … A switch for one that is not here is not shown. */
  works: string[];
}

export interface About {
  version: string;
  hosts: { host: string; what_for: string }[];
  licences: { name: string; version: string; licence: string }[];
  config_dir: string;
  log_dir: string;
}

export type Answer = "allow_once" | "allow_15_minutes" | "allow_chat" | "deny" | "deny_and_disconnect";

export interface Prompt {
  id: string;
  host: string;
  session_id: string;
  request_type: string;
  capability: string;
  root: string;
  title: string;
  lines: { label: string; text: string }[];
  /** How many characters of the action are not in `lines`. */
  left_out: number;
  offers: Answer[];
  /** What "Allow for…" would cover, a sentence. */
  covers: string;
  shown: boolean;
  /** How many equal requests wait for this one answer. */
  requests: number;
  /** Null: not counting down (not drawn yet, or touched). */
  seconds_left: number | null;
  /** A `data:` address. */
  picture: string | null;
}

/** Commands of the main window. */
export interface MainCommands {
  snapshot(): Snapshot;
  connect(): null;
  disconnect(): null;
  pause(args: { minutes: number | null }): null;
  /** Null: everything, else this chat alone. */
  resume(args: { session_id: string | null }): null;
  stop(): null;
  disconnect_chat(args: { session_id: string }): null;

  sign_in(): null;
  sign_in_reopen(): null;
  sign_in_cancel(): null;
  sign_out(): null;

  activity_summary(args: { filter: ActivityFilter }): ActivitySummary;
  /** Newest first. */
  activity_rows(args: { filter: ActivityFilter; offset: number; limit: number }): ActivityRow[];
  activity_verify(): Verification;
  /** Opens a native save dialog; the file's path, or null when cancelled. */
  activity_export(): string | null;

  folders(): Folder[];
  /** Opens a native folder dialog; null when cancelled, an error when the folder is refused. */
  folder_add(): Folder | null;
  folder_remove(args: { path: string }): null;
  folder_make_default(): Folder;

  settings(): Settings;
  /** `key` is dotted: "consent.shell". */
  setting_set(args: { key: string; value: unknown }): Settings;
  rule_remove(args: { index: number }): Settings;
  permissions(): Permission[];
  permission_open(args: { id: string }): null;

  about(): About;
  first_run_done(): null;
  /** Brings the open prompt's window to the front. */
  show_prompt(): null;
}

/** Commands of the prompt's window, and of it alone. */
export interface PromptCommands {
  prompt(): Prompt | null;
  /** It is drawn: the 700 ms and the countdown start. */
  prompt_seen(args: { id: string }): null;
  prompt_touch(args: { id: string }): null;
  prompt_answer(args: { id: string; answer: Answer }): null;
  /** The window regained focus: Allow is closed for 700 ms again. */
  prompt_focus(args: { id: string }): null;
}

/** What the window asks for that opens before everything else, where there is no keychain. */
export interface Unlock {
  /** A passphrase for a file that is to be made, or the one that opens it. */
  wanted: "new" | "known";
  /** The fewest characters of a new one. */
  shortest: number;
}

export interface UnlockCommands {
  unlock_state(): Unlock;
  /** The window closes when it fits. */
  unlock_with(args: { passphrase: string }): null;
}

/** Events: name and payload. */
export interface Events {
  /** The snapshot changed: fetch it. */
  state: null;
  /** Records were added. */
  activity: { newest: number };
  /** The prompt changed: fetch it. */
  prompt: null;
  navigate: { page: string };
}
