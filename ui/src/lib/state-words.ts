import type { Chat, Mood, Rule, Snapshot } from "./contract.ts";
import { words } from "./strings.ts";

/** The word and the sentences that say how things are. */
export interface StateWords {
  mood: Mood;
  word: string;
  sentence: string;
  /** Why, when the sentence does not say it already. */
  reason: string | null;
}

/** `seconds` is how long ago the snapshot came: a wait that it tells of has become shorter by it. */
export function stateWords(snapshot: Snapshot, seconds = 0): StateWords {
  const { mood, mood_text, connection, platform_host } = snapshot;
  const say = (word: string, sentence: string, reason: string | null = null): StateWords => ({
    mood,
    word,
    sentence,
    reason: reason && !sentence.includes(reason) ? reason : null,
  });
  switch (connection.state) {
    case "connecting":
      return say(words.home.connecting, words.home.connectingSentence(platform_host));
    case "waiting": {
      const left = Math.max(0, Math.ceil(connection.seconds - seconds));
      return say(words.home.reconnecting, words.home.tryingAgain(left), connection.reason);
    }
    case "signed_out":
      return say(words.home.signedOut, words.home.signedOutSentence, connection.reason);
    case "off":
      return say(words.mood[mood], words.home.offSentence, connection.reason);
    case "halted":
      return say(words.mood[mood], mood_text, connection.reason);
    case "connected":
      return say(words.mood[mood], mood_text, mood === "in_control" ? words.home.agentInControl : null);
  }
}

/** The last part of a path: what people call the folder. */
export function folderName(path: string): string {
  const parts = path.split(/[\\/]/).filter((part) => part !== "");
  return parts.at(-1) ?? path;
}

/** Enough of a chat's id to tell it from another. */
export function shortId(id: string): string {
  return id.slice(0, 8);
}

/** What a chat does now. */
export function chatSentence(chat: Chat): string {
  if (chat.paused) return words.home.chatPaused;
  if (!chat.connected) return words.home.chatOffline;
  return chat.doing ?? words.home.doingNothing;
}

export function ruleSentence(rule: Rule): string {
  const what =
    rule.program === null
      ? (words.access.ruleCapability[rule.capability] ?? rule.capability)
      : words.access.ruleProgram(rule.program);
  return words.access.rule(rule.decision, what, rule.root);
}
