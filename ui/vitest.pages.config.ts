import { defineConfig } from "vitest/config";

// Real pages in a real browser. The limits are there to end a hang, not to measure: the machines that run this are slow.
export default defineConfig({
  test: {
    include: ["tests/pages/**/*.test.ts"],
    environment: "node",
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
  },
});
