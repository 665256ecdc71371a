import type { Plugin } from "vite";
import { prompt } from "./data.ts";
import { FakeDesk } from "./desk.ts";
import { serveApi } from "./http.ts";

/** Lets `npm run dev` show the windows against a made-up computer. Takes no part in a build. */
export function fakeDesk(): Plugin {
  return {
    name: "deskhand-fake",
    apply: "serve",
    configureServer(server) {
      const desk = new FakeDesk();
      desk.records = 100_000;
      desk.prompt = prompt();
      server.middlewares.use((request, response, next) => {
        void serveApi(desk, request, response).then((served) => {
          if (!served) next();
        });
      });
    },
  };
}
