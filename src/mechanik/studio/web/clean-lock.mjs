// The last step of `npm run lock`: takes every address out of package-lock.json, so that packages come from
// whatever registry npm is set to, and looks whether the lock holds the native parts for every system. A registry
// that has not got all of them yet leaves some out without a word, and `npm ci` then fails on every machine.
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
  console.error(`The lock lacks ${missing.join(", ")}: the registry has no such version. Choose another in package.json.`);
  process.exit(1);
}
