import { svelte } from "@sveltejs/vite-plugin-svelte";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { fakeDesk } from "./tests/fake/vite-plugin.ts";

const page = (name: string) => fileURLToPath(new URL(name, import.meta.url));
// Where a development server with the real Rust side listens, as an address; without it `npm run dev` plays a made-up computer.
const behind = process.env["DESKHAND_API"];

export default defineConfig({
  plugins: [svelte(), ...(behind ? [] : [fakeDesk()])],
  server: { ...(behind ? { proxy: { "/api": behind } } : {}) },
  build: {
    // The oldest webviews we meet: WebKitGTK 2.40 (Debian 12, Ubuntu 22.04) and macOS 12.
    target: ["safari16", "chrome110"],
    // Nothing of ours may be inline: the windows run under `script-src 'self'; style-src 'self'`.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: [page("index.html"), page("prompt.html"), page("unlock.html")] },
  },
});
