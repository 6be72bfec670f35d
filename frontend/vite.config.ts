import { defineConfig } from "vite";

// Built into the Python package; nothing is inlined, so that the page's policy can forbid everything inline.
export default defineConfig({
  base: "./",
  build: { outDir: "../aleazero/web/static", emptyOutDir: true, assetsInlineLimit: 0, modulePreload: { polyfill: false } },
});
