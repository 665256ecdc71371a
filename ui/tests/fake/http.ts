import type { IncomingMessage, ServerResponse } from "node:http";
import type { FakeDesk } from "./desk.ts";

/** Answers a request for the API; false when it is for something else. */
export async function serveApi(desk: FakeDesk, request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  const name = /^\/api\/([a-z_0-9]+)$/.exec(request.url ?? "")?.[1];
  if (name === undefined) return false;
  if (name === "events") {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write(": here\n\n");
    const stop = desk.listen((event, payload) =>
      response.write(`event: ${event}\ndata: ${JSON.stringify(payload)}\n\n`),
    );
    request.on("close", stop);
    return true;
  }
  let body = "";
  for await (const chunk of request) body += String(chunk);
  const [status, answer] = await desk.answer(name, JSON.parse(body || "{}")).then(
    (result) => [200, result] as const,
    (error: unknown) => [400, { message: error instanceof Error ? error.message : String(error) }] as const,
  );
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(answer));
  return true;
}
