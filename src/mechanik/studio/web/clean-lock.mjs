// Last step of `npm run lock`: removes all registry URLs from package-lock.json, so that npm uses its configured
// registry, and checks that the lock file lists the native packages of all systems. If a registry does not have all of
// them yet, npm omits the missing packages without a warning, and `npm ci` then fails on every machine.
import { readFileSync, writeFileSync } from "node:fs";

const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
const missing = [];
for (const entry of Object.values(lock.packages)) {
  delete entry.funding;
  delete entry.resolved;
  for (const name of Object.keys(entry.optionalDependencies ?? {})) {
    if (!(`node_modules/${name}` in lock.packages)) missing.push(name);
  }
}
writeFileSync("package-lock.json", JSON.stringify(lock, null, 2) + "\n");
if (missing.length > 0) {
  const names = missing.join(", ");
  console.error(`package-lock.json lacks ${names}: not in the registry. Choose another version in package.json.`);
  process.exit(1);
}
