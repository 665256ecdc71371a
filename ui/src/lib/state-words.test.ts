import { describe, expect, it } from "vitest";
import { chats, snapshot } from "../../tests/fake/data.ts";
import type { ConnectionState, Mood } from "./contract.ts";
import { chatSentence, folderName, ruleSentence, stateWords } from "./state-words.ts";
import { words } from "./strings.ts";

const say = (mood: Mood, connection: ConnectionState, seconds = 0) =>
  stateWords({ ...snapshot(), mood, mood_text: "The tooltip.", connection }, seconds);

describe("stateWords", () => {
  it("says the mood and the tooltip's sentence while connected", () => {
    expect(say("working", { state: "connected", connection_id: "c" })).toEqual({
      mood: "working",
      word: "Working",
      sentence: "The tooltip.",
      reason: null,
    });
  });

  it("counts a wait down, and not below now", () => {
    const wait: ConnectionState = { state: "waiting", seconds: 12, reason: "No network." };
    expect(say("trouble", wait, 2.5).sentence).toBe("Trying again in 10 seconds.");
    expect(say("trouble", wait, 11.2).sentence).toBe("Trying again in 1 second.");
    expect(say("trouble", wait, 60).sentence).toBe("Trying again now…");
    expect(say("trouble", wait).reason).toBe("No network.");
  });

  it("says why it is off, once", () => {
    expect(say("off", { state: "off", reason: "You disconnected." }).reason).toBe("You disconnected.");
    expect(say("trouble", { state: "halted", reason: "The tooltip." }).reason).toBeNull();
    expect(say("off", { state: "off", reason: "" }).reason).toBeNull();
  });

  it("tells how to take over while an agent is in control", () => {
    expect(say("in_control", { state: "connected", connection_id: "c" }).reason).toBe(words.home.agentInControl);
  });
});

it.each([
  ["/home/anna/work/invoices", "invoices"],
  ["/home/anna/work/invoices/", "invoices"],
  ["C:\\Users\\Anna\\Documents", "Documents"],
  ["/", "/"],
])("calls %s %s", (path, name) => expect(folderName(path)).toBe(name));

it("says what a chat does, and why it does nothing", () => {
  const [busy, idle, paused] = chats();
  if (!busy || !idle || !paused) throw new Error("three chats");
  expect(chatSentence(busy)).toContain("cargo test");
  expect(chatSentence(idle)).toBe(words.home.doingNothing);
  expect(chatSentence(paused)).toBe(words.home.chatPaused);
  expect(chatSentence({ ...busy, connected: false })).toBe(words.home.chatOffline);
});

it.each([
  [{ capability: "shell", program: "git", root: "/w", decision: "allow" as const }, "Allow: running git, in /w"],
  [
    { capability: "write", program: null, root: null, decision: "deny" as const },
    "Never allow: changing files, anywhere",
  ],
  [{ capability: "new_thing", program: null, root: null, decision: "ask" as const }, "Ask before: new_thing, anywhere"],
])("says the rule %o: %s", (rule, sentence) => expect(ruleSentence(rule)).toBe(sentence));
