import type {
  ActivityFilter,
  ActivityRow,
  Events,
  Folder,
  MainCommands,
  Prompt,
  PromptCommands,
  Settings,
  Snapshot,
  Unlock,
  UnlockCommands,
} from "../../src/lib/contract.ts";
import * as data from "./data.ts";

type Commands = MainCommands & PromptCommands & UnlockCommands;
type Handler = (args: never) => unknown;
export type CommandName = keyof Commands;

/**
 * A made-up Rust side: it answers the contract's commands from memory and tells its events. Tests turn its knobs (hold an
 * answer back, refuse, change what is so) and read what it was asked.
 */
export class FakeDesk {
  snapshot: Snapshot = data.snapshot();
  settings: Settings = data.settings();
  folders: Folder[] = data.folders();
  permissions = data.permissions();
  about = data.about();
  prompt: Prompt | null = null;
  unlock: Unlock = { wanted: "known", shortest: 8 };
  records = 240;
  verification: ReturnType<MainCommands["activity_verify"]> = { ok: true, records: 240, files: 2, problems: [] };
  exportPath: string | null = "/home/anna/activity.jsonl";
  pickedFolder: Folder | null = { path: "/home/anna/Music", usable: true, reason: null };
  /** What was asked, in order. */
  readonly calls: { name: CommandName; args: unknown }[] = [];
  readonly #listeners = new Set<(name: keyof Events, payload: unknown) => void>();
  readonly #refusals = new Map<CommandName, string>();
  readonly #gates = new Map<CommandName, Promise<void>>();
  readonly #waiters: { name: CommandName; count: number; done: () => void }[] = [];
  readonly #now = Date.now();
  #deadline: number | null = null;

  async answer(name: string, args: unknown): Promise<unknown> {
    const handler = (this.#handlers as Record<string, Handler | undefined>)[name];
    if (!handler) throw new Error(`There is no command “${name}”.`);
    this.calls.push({ name: name as CommandName, args });
    for (const waiter of this.#waiters) if (this.countOf(waiter.name) >= waiter.count) waiter.done();
    await this.#gates.get(name as CommandName);
    const refusal = this.#refusals.get(name as CommandName);
    if (refusal !== undefined) throw new Error(refusal);
    return handler(args as never);
  }

  /** Every answer of this command is an error with this sentence, until `accept`. */
  refuse(name: CommandName, sentence: string): void {
    this.#refusals.set(name, sentence);
  }

  accept(name: CommandName): void {
    this.#refusals.delete(name);
  }

  /** Holds the answers of this command back until the returned function is called. */
  hold(name: CommandName): () => void {
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    this.#gates.set(name, gate);
    return () => {
      this.#gates.delete(name);
      release();
    };
  }

  listen(hear: (name: keyof Events, payload: unknown) => void): () => void {
    this.#listeners.add(hear);
    return () => this.#listeners.delete(hear);
  }

  emit<K extends keyof Events>(name: K, payload: Events[K]): void {
    for (const hear of this.#listeners) hear(name, payload);
  }

  /** Changes what is so, and says so. */
  change(part: Partial<Snapshot>): void {
    this.snapshot = { ...this.snapshot, ...part };
    this.emit("state", null);
  }

  addRecords(count: number): void {
    this.records += count;
    this.emit("activity", { newest: this.records - 1 });
  }

  ask(prompt: Prompt | null): void {
    this.prompt = prompt;
    this.#deadline = null;
    this.emit("prompt", null);
  }

  countOf(name: CommandName): number {
    return this.calls.filter((call) => call.name === name).length;
  }

  lastArgs(name: CommandName): unknown {
    return this.calls.findLast((call) => call.name === name)?.args;
  }

  /** Resolves when the command has been asked for so many times in all. */
  asked(name: CommandName, count = 1): Promise<void> {
    if (this.countOf(name) >= count) return Promise.resolve();
    return new Promise((done) => this.#waiters.push({ name, count, done }));
  }

  readonly #handlers: { [K in CommandName]: Handler } = {
    snapshot: () => this.snapshot,
    connect: () => this.#become({ connection: { state: "connected", connection_id: "c-2" }, mood: "connected" }),
    disconnect: () => this.#become({ connection: { state: "off", reason: "You disconnected." }, mood: "off" }),
    pause: () => this.#become({ paused: true, mood: "paused", mood_text: "Paused until you resume." }),
    resume: ({ session_id }: { session_id: string | null }) =>
      session_id === null
        ? this.#become({ paused: false, mood: "working" })
        : this.#become({ chats: this.#chats(session_id, (chat) => ({ ...chat, paused: false })) }),
    stop: () =>
      this.#become({
        connection: { state: "off", reason: "You stopped everything." },
        mood: "off",
        mood_text: "Off",
        chats: [],
        prompts: 0,
      }),
    disconnect_chat: ({ session_id }: { session_id: string }) =>
      this.#become({ chats: this.snapshot.chats.filter((chat) => chat.session_id !== session_id) }),

    sign_in: () =>
      this.#become({
        sign_in: {
          state: "waiting",
          url: "https://platform.autogpt.net/auth/authorize?client_id=autogpt-local-executor",
        },
      }),
    sign_in_reopen: () => null,
    sign_in_cancel: () => this.#become({ sign_in: { state: "signed_out" } }),
    sign_out: () =>
      this.#become({
        sign_in: { state: "signed_out" },
        connection: { state: "signed_out", reason: "" },
        mood: "off",
        chats: [],
      }),

    activity_summary: ({ filter }: { filter: ActivityFilter }) => ({
      total: this.#matching(filter).length,
      sessions: Object.values(data.CHATS),
    }),
    activity_rows: ({ filter, offset, limit }: { filter: ActivityFilter; offset: number; limit: number }) => {
      const all = this.#matching(filter);
      const rows: ActivityRow[] = [];
      for (let index = offset; index < Math.min(offset + limit, all.length); index++) {
        const seq = all.seqAt(all.length - 1 - index);
        rows.push({ index, ...data.record(seq, this.#now, this.records - 1) });
      }
      return rows;
    },
    activity_verify: () => this.verification,
    activity_export: () => this.exportPath,

    folders: () => this.folders,
    folder_add: () => this.#addFolder(this.pickedFolder),
    folder_remove: ({ path }: { path: string }) => {
      this.folders = this.folders.filter((folder) => folder.path !== path);
      return null;
    },
    folder_make_default: () => this.#addFolder({ path: "/home/anna/Deskhand", usable: true, reason: null }),

    settings: () => this.settings,
    setting_set: ({ key, value }: { key: string; value: unknown }) => {
      this.settings = withKey(this.settings, key.split("."), value) as Settings;
      return this.settings;
    },
    rule_remove: ({ index }: { index: number }) => {
      this.settings = { ...this.settings, rules: this.settings.rules.filter((_, i) => i !== index) };
      return this.settings;
    },
    permissions: () => this.permissions,
    permission_open: () => null,
    about: () => this.about,
    first_run_done: () => this.#become({ first_run: false }),
    show_prompt: () => null,

    prompt: () => {
      if (this.prompt && this.#deadline !== null) {
        return { ...this.prompt, seconds_left: Math.max(0, (this.#deadline - Date.now()) / 1000) };
      }
      return this.prompt;
    },
    prompt_seen: ({ id }: { id: string }) => {
      if (this.prompt?.id === id && !this.prompt.shown) {
        this.prompt = { ...this.prompt, shown: true };
        this.#deadline = Date.now() + 60_000;
      }
      return null;
    },
    prompt_touch: () => {
      this.#deadline = null;
      if (this.prompt) this.prompt = { ...this.prompt, seconds_left: null };
      return null;
    },
    prompt_answer: () => {
      this.prompt = null;
      return null;
    },
    prompt_focus: () => null,

    unlock_state: () => this.unlock,
    unlock_with: () => null,
  };

  #become(part: Partial<Snapshot>): null {
    this.change(part);
    return null;
  }

  #chats(id: string, change: (chat: Snapshot["chats"][number]) => Snapshot["chats"][number]) {
    return this.snapshot.chats.map((chat) => (chat.session_id === id ? change(chat) : chat));
  }

  #addFolder(folder: Folder | null): Folder | null {
    if (folder) this.folders = [...this.folders, folder];
    return folder;
  }

  /** The records that match, oldest first, without making those that nobody looks at. */
  #matching(filter: ActivityFilter): { length: number; seqAt(age: number): number } {
    if (filter.kind === null && filter.session_id === null) return { length: this.records, seqAt: (age) => age };
    const seqs: number[] = [];
    for (let seq = 0; seq < this.records; seq++) {
      const { kind, session_id } = data.record(seq, this.#now, this.records - 1);
      if ((filter.kind ?? kind) === kind && (filter.session_id ?? session_id) === session_id) seqs.push(seq);
    }
    return { length: seqs.length, seqAt: (age) => seqs[age] ?? 0 };
  }
}

function withKey(object: unknown, [key, ...rest]: string[], value: unknown): unknown {
  if (key === undefined) return value;
  const before = (object ?? {}) as Record<string, unknown>;
  // Two settings are flat in the answer and dotted in the file.
  if (key === "local_llm" && rest[0] === "url") return { ...before, local_llm_url: value };
  return { ...before, [key]: withKey(before[key], rest, value) };
}
