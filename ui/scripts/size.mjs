// Fails when the JavaScript of both windows together outgrows its budget.
import { gzipSync } from "node:zlib";
import { built } from "./built.mjs";

const BUDGET_KB = 120;

let js = 0;
for (const { name, bytes } of built(".js", ".css")) {
    const zipped = gzipSync(bytes, { level: 9 }).length;
    if (name.endsWith(".js")) js += zipped;
    console.log(`${(zipped / 1000).toFixed(1).padStart(8)} kB  ${name}`);
}
console.log(`${(js / 1000).toFixed(1).padStart(8)} kB  JavaScript, gzipped, of at most ${BUDGET_KB} kB`);
if (js > BUDGET_KB * 1000) process.exitCode = 1;
