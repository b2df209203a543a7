// Makes ../static/vendor from the packages that package-lock.json pins.
//
//   npm ci && npm run build     writes the files and hashes.txt
//   npm ci && npm run check     builds in memory and compares with what is committed
//
// The same lock gives the same bytes on every machine, so a committed file can be checked by
// anyone against its sources. hashes.txt has the format of sha256sum.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, "node_modules");
const target = join(here, "..", "static", "vendor");
const katex = join(modules, "katex", "dist");

async function bundled(entry) {
  const result = await build({
    entryPoints: [entry],
    absWorkingDir: here,
    bundle: true,
    format: "esm",
    minify: true,
    target: "es2022",
    legalComments: "none",
    charset: "utf8",
    write: false,
  });
  return Buffer.from(result.outputFiles[0].contents);
}

// Browsers that run the page read woff2; the other formats would only be weight.
function woff2Only(css) {
  return css.replace(/,url\(fonts\/[^)]+\.(?:woff|ttf)\) format\("[^"]+"\)/g, "");
}

// The licences ask that their text goes along with the code.
function licences() {
  const lock = JSON.parse(readFileSync(join(here, "package-lock.json"), "utf8"));
  const parts = [];
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (!path || entry.dev) continue;
    const folder = join(here, path);
    const file = readdirSync(folder).find((name) => /^licen[sc]e/i.test(name));
    if (!file) throw new Error(`${path} has no licence file: add its text before shipping it`);
    const name = path.replace("node_modules/", "");
    const text = readFileSync(join(folder, file), "utf8").replaceAll("\r\n", "\n").trim();
    parts.push(`${name} ${entry.version} (${entry.license})\n\n${text}\n`);
  }
  return Buffer.from(parts.join(`\n${"-".repeat(80)}\n\n`));
}

async function made() {
  const files = new Map();
  files.set("cm6.mjs", await bundled("cm6.entry.mjs"));
  files.set("katex/katex.mjs", await bundled(join(katex, "katex.mjs")));
  const css = woff2Only(readFileSync(join(katex, "katex.min.css"), "utf8"));
  files.set("katex/katex.css", Buffer.from(css));
  for (const name of readdirSync(join(katex, "fonts")).filter((one) => one.endsWith(".woff2"))) {
    files.set(`katex/fonts/${name}`, readFileSync(join(katex, "fonts", name)));
  }
  files.set("LICENSES.txt", licences());
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function hashes(files) {
  const lines = [...files].map(([name, data]) => {
    return `${createHash("sha256").update(data).digest("hex")}  ${name}\n`;
  });
  return lines.join("");
}

const files = await made();
const list = join(here, "hashes.txt");
if (process.argv.includes("--check")) {
  const same = hashes(files) === readFileSync(list, "utf8");
  console.log(
    same ? "static/vendor is what its sources give" : "hashes.txt differs from a new build",
  );
  process.exit(same ? 0 : 1);
}
rmSync(target, { recursive: true, force: true });
for (const [name, data] of files) {
  mkdirSync(dirname(join(target, name)), { recursive: true });
  writeFileSync(join(target, name), data);
  console.log(`${String(data.length).padStart(8)}  ${name}`);
}
writeFileSync(list, hashes(files));
