import js from "@eslint/js";
import svelte from "eslint-plugin-svelte";
import ts from "typescript-eslint";
import svelteConfig from "./svelte.config.js";

export default ts.config(
    { ignores: ["dist", "test-results", "node_modules"] },
    js.configs.recommended,
    ts.configs.strict,
    svelte.configs.recommended,
    {
        rules: {
            // TypeScript knows what is defined.
            "no-undef": "off",
            eqeqeq: "error",
            // Text from the wire is only ever text.
            "svelte/no-at-html-tags": "error",
            "svelte/require-each-key": "error",
            "svelte/button-has-type": "error",
            "@typescript-eslint/no-invalid-void-type": "off",
            "@typescript-eslint/switch-exhaustiveness-check": "off",
        },
    },
    {
        files: ["**/*.svelte", "**/*.svelte.ts"],
        languageOptions: { parserOptions: { parser: ts.parser, extraFileExtensions: [".svelte"], svelteConfig } },
    },
);
