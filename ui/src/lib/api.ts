import { invoke } from "@tauri-apps/api/core";
import { listen } from "@tauri-apps/api/event";
import type { Events, MainCommands, PromptCommands, UnlockCommands } from "./contract.ts";
import { words } from "./strings.ts";

type Commands = MainCommands & PromptCommands & UnlockCommands;

/** A refusal or a failure, as a sentence for a person. */
export class ApiError extends Error {
  override name = "ApiError";
}

const inApp = "__TAURI_INTERNALS__" in window;

/** Runs a command of the Rust side. Rejects with an `ApiError` and with nothing else. */
export async function call<K extends keyof Commands>(
  name: K,
  ...args: Parameters<Commands[K]>
): Promise<ReturnType<Commands[K]>> {
  const given = (args[0] ?? {}) as Record<string, unknown>;
  return inApp ? viaTauri(name, given) : viaHttp(name, given);
}

async function viaTauri<T>(name: string, args: Record<string, unknown>): Promise<T> {
  try {
    return await invoke<T>(name, args);
  } catch (error) {
    throw new ApiError(sentence(error));
  }
}

async function viaHttp<T>(name: string, args: Record<string, unknown>): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`/api/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(args),
    });
  } catch {
    throw new ApiError(words.errors.unreachable);
  }
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw new ApiError(sentence(body));
  return body as T;
}

/** The message in whatever came back. */
function sentence(error: unknown): string {
  if (typeof error === "string" && error !== "") return error;
  if (typeof error === "object" && error !== null && "message" in error && typeof error.message === "string") {
    return error.message;
  }
  return words.errors.unknown;
}

/**
 * Hears an event until the returned function is called. `listening` is called whenever hearing begins, at first and after a
 * break: what happened before it was not heard, so whoever follows a state fetches it then.
 */
export function on<K extends keyof Events>(
  name: K,
  hear: (payload: Events[K]) => void,
  listening: () => void = () => {},
): () => void {
  if (inApp) {
    const stop = listen<Events[K]>(name, (event) => hear(event.payload));
    void stop.then(listening);
    return () => void stop.then((off) => off());
  }
  const source = (shared ??= new EventSource("/api/events"));
  const heard = (event: Event) => hear(JSON.parse((event as MessageEvent<string>).data || "null") as Events[K]);
  source.addEventListener(name, heard);
  source.addEventListener("open", listening);
  if (source.readyState === EventSource.OPEN) listening();
  return () => {
    source.removeEventListener(name, heard);
    source.removeEventListener("open", listening);
  };
}

let shared: EventSource | undefined;
