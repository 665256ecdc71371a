// Fails when a built page would need more than the strict content security policy allows, or would ask a network for anything.
import { built } from "./built.mjs";

const faults = [];
for (const { name, bytes } of built(".html")) {
    const html = bytes.toString("utf8");
    const say = (what) => faults.push(`${name}: ${what}`);
    for (const [, attributes, body] of html.matchAll(/<script\b([^>]*)>([\s\S]*?)<\/script>/g)) {
        if (!/\bsrc=/.test(attributes) || body.trim() !== "") say("has an inline script");
    }
    if (/<style\b/.test(html)) say("has an inline style sheet");
    if (/\sstyle=/.test(html)) say("has a style attribute");
    if (/\son[a-z]+=/.test(html)) say("has an inline event handler");
    if (/(?:src|href)="(?:[a-z]+:)?\/\//.test(html)) say("loads something from a network");
}
for (const { name, bytes } of built(".js", ".css")) {
    const text = bytes.toString("utf8");
    if (/\beval\(|new Function\(/.test(text)) faults.push(`${name}: makes code from text`);
    if (/url\(["']?(?:https?:)?\/\//.test(text)) faults.push(`${name}: loads something from a network`);
    if (/\bimport\(["']https?:/.test(text)) faults.push(`${name}: loads code from a network`);
}
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
else console.log("The built pages fit the content security policy.");
