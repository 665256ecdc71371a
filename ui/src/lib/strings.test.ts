import { readFileSync, readdirSync } from "node:fs";
import { parse, type AST } from "svelte/compiler";
import { describe, expect, it } from "vitest";
import { words } from "./strings.ts";

const src = new URL("../", import.meta.url);
const files = readdirSync(src, { recursive: true }).map(String);
const sources = files
  .filter((name) => /\.(svelte|ts)$/.test(name) && !name.includes(".test.") && !name.endsWith("strings.ts"))
  .map((name) => ({ name, text: readFileSync(new URL(name.replaceAll("\\", "/"), src), "utf8") }));

/** Every text of the catalogue with its dotted name; functions are called with something of each kind. */
function* texts(node: unknown, name: string): Generator<{ name: string; text: string }> {
  if (typeof node === "string") yield { name, text: node };
  else if (typeof node === "function") yield { name, text: String((node as (...args: unknown[]) => unknown)(2, 3, 4)) };
  else for (const [key, value] of Object.entries(node as object)) yield* texts(value, name ? `${name}.${key}` : key);
}

const all = [...texts(words, "")];

describe("the catalogue", () => {
  it("has no empty text", () => {
    expect(all.filter(({ text }) => text.trim() === "").map(({ name }) => name)).toEqual([]);
  });

  it("keeps to plain words", () => {
    const jargon =
      /\b(IPC|API|JSON|HTTP|URL|token|executor|session|jail|root|capability|consent|websocket|daemon|shim|hash|stdout|payload|UUID)s?\b/i;
    expect(all.filter(({ text }) => jargon.test(text))).toEqual([]);
  });

  it("writes quotes, dots and ellipses as a typesetter would", () => {
    expect(all.filter(({ text }) => /"|\.\.\.| - /.test(text))).toEqual([]);
  });

  it("has nothing that is not used", () => {
    const code = sources.map(({ text }) => text).join("\n");
    const groups = Object.entries(words).filter(([, group]) => typeof group === "object");
    const unused = groups.flatMap(([group, entries]) =>
      new RegExp(`words\\.${group}(\\[|\\)|,)`).test(code)
        ? []
        : Object.keys(entries)
            .filter((key) => !new RegExp(`words\\.${group}\\.${key}\\b`).test(code))
            .map((key) => `${group}.${key}`),
    );
    expect(unused).toEqual([]);
  });
});

/** Attributes that a person sees or hears. */
const SPOKEN = new Set(["title", "alt", "placeholder", "aria-label", "label", "hint", "intro", "failed", "unit"]);

/** Words that are written into a component, and static styles, which the content security policy refuses. */
function* faults(node: unknown): Generator<string> {
  if (Array.isArray(node)) for (const one of node) yield* faults(one);
  if (typeof node !== "object" || node === null || Array.isArray(node)) return;
  const at = node as AST.Text | AST.Attribute | { type: string };
  if (at.type === "Text" && "data" in at && /\p{L}{2,}/u.test(at.data)) yield `text “${at.data.trim()}”`;
  if (at.type === "Attribute" && "name" in at) {
    if (at.name === "style") yield "a static style";
    const parts = Array.isArray(at.value) ? at.value : [];
    if (SPOKEN.has(at.name) && parts.some((part) => part.type === "Text" && /\p{L}{2,}/u.test(part.data))) {
      yield `the attribute ${at.name}`;
    }
    return;
  }
  if (at.type === "StyleDirective") return;
  if (at.type === "HtmlTag") yield "raw HTML";
  for (const [key, value] of Object.entries(node)) if (key !== "css" && key !== "instance") yield* faults(value);
}

it.each(sources.filter(({ name }) => name.endsWith(".svelte")))(
  "$name takes its words from the catalogue",
  ({ text }) => {
    expect([...faults(parse(text, { modern: true }).fragment)]).toEqual([]);
  },
);
