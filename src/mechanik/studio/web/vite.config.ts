import { defineConfig, type UserConfig } from "vite";

// Two builds into one folder. The page itself: index.html and hashed files below assets/, nothing inline,
// so that it runs under a policy of `default-src 'self'`. And the player (`--mode player`): one classic
// script without imports, which a recorded page carries inside itself and plays without a server.
const OUT = "../page";
const STUDIO = "http://127.0.0.1:8000";
// modern browsers only: WebGL 2, pointer events, `structuredClone`
const TARGET = "es2022";

const page: UserConfig = {
  base: "./",
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: TARGET,
    assetsInlineLimit: 0, // a data: address is not 'self'
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1500, // three alone is half of it
    reportCompressedSize: false,
  },
  server: {
    host: "127.0.0.1",
    // `npm run dev` beside `mechanik studio --port 8000`, whose link has to be opened first, for its cookie: the page
    // from here, all else from there, as if it had been asked from there
    proxy: {
      "^/(ws|upload|mesh|download|pictures)": {
        target: STUDIO,
        ws: true,
        changeOrigin: true,
        rewriteWsOrigin: true,
        headers: { origin: STUDIO },
      },
    },
  },
};

const player: UserConfig = {
  publicDir: false,
  build: {
    outDir: OUT,
    emptyOutDir: false,
    target: TARGET,
    reportCompressedSize: false,
    lib: { entry: "src/player.ts", name: "MechanikPlayer", formats: ["iife"], fileName: () => "player.js" },
  },
};

export default defineConfig(({ mode }) => (mode === "player" ? player : page));
