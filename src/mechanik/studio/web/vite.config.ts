import { defineConfig, type UserConfig } from "vite";

// Two builds into one folder. The page: index.html and hashed files in assets/, without inline code, which its content
// security policy (`default-src 'self'`) forbids. The player (`--mode player`): one classic script without imports, which is
// embedded in recorded pages, so that they can be played without a server.
const OUTPUT_FOLDER = "../page";
const STUDIO_ADDRESS = "http://127.0.0.1:8000";
// modern browsers only: the page needs WebGL 2 and pointer events
const TARGET = "es2022";

const page: UserConfig = {
  base: "./",
  build: {
    outDir: OUTPUT_FOLDER,
    emptyOutDir: true,
    target: TARGET,
    assetsInlineLimit: 0, // the policy allows data: URLs only for images and requests
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1500, // kB; the main file has about 900 kB, mostly three.js
    reportCompressedSize: false,
  },
  server: {
    host: "127.0.0.1",
    // for `npm run dev` with a running `mechanik studio --port 8000`: open the link of the studio first, since it sets
    // the cookie. Vite serves the page and forwards the requests below to the studio, with the origin of the studio.
    proxy: {
      "^/(ws|upload|mesh|download|pictures)": {
        target: STUDIO_ADDRESS,
        ws: true,
        changeOrigin: true,
        rewriteWsOrigin: true,
        headers: { origin: STUDIO_ADDRESS },
      },
    },
  },
};

const player: UserConfig = {
  publicDir: false,
  build: {
    outDir: OUTPUT_FOLDER,
    emptyOutDir: false,
    target: TARGET,
    reportCompressedSize: false,
    lib: { entry: "src/player.ts", name: "MechanikPlayer", formats: ["iife"], fileName: () => "player.js" },
  },
};

export default defineConfig(({ mode }) => (mode === "player" ? player : page));
