// Last step of `npm run lock`, with two tasks:
// - Remove all registry URLs and funding notes from package-lock.json; without URLs, npm uses its configured registry.
// - Check that the lock file lists the native packages of all systems. npm omits packages that the registry does not
//   have yet, without a warning, and `npm ci` then fails on every machine.
import { readFileSync, writeFileSync } from "node:fs";

const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
const missingNames = [];
for (const entry of Object.values(lock.packages)) {
  delete entry.funding;
  delete entry.resolved;
  for (const name of Object.keys(entry.optionalDependencies ?? {})) {
    if (!(`node_modules/${name}` in lock.packages)) missingNames.push(name);
  }
}
writeFileSync("package-lock.json", JSON.stringify(lock, null, 2) + "\n");
if (missingNames.length > 0) {
  const names = missingNames.join(", ");
  console.error(
    `package-lock.json does not list ${names}, since the registry does not have these packages. ` +
      "Choose another version of the package that depends on them in package.json.",
  );
  process.exit(1);
}
