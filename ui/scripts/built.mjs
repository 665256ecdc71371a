import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const dist = fileURLToPath(new URL("../dist/", import.meta.url));

/** The files of the last build with these endings: their names under `dist` and their bytes. */
export function built(...endings) {
    const names = readdirSync(dist, { recursive: true }).map(String);
    const files = names.filter((name) => endings.some((ending) => name.endsWith(ending)));
    if (files.length === 0) throw new Error(`nothing is built: run "npm run build" first`);
    return files.map((name) => ({ name, bytes: readFileSync(`${dist}${name}`) }));
}
