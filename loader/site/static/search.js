// SPDX-License-Identifier: Apache-2.0
// The search of the first page. It works from a file, too: parts of the index are scripts.
"use strict";
const catalogue = {
  parts: new Map(),
  waiting: new Map(),
  add(name, words) {
    this.parts.set(name, Object.entries(words));
    for (const resolve of this.waiting.get(name) || []) resolve();
    this.waiting.delete(name);
  },
  load(name) {
    if (this.parts.has(name)) return Promise.resolve();
    return new Promise((resolve) => {
      const others = this.waiting.get(name);
      if (others) {
        others.push(resolve);
        return;
      }
      this.waiting.set(name, [resolve]);
      const script = document.createElement("script");
      script.src = "search/" + name + ".js";
      // There is no part for a character with which no word begins.
      script.onerror = () => this.add(name, {});
      document.head.append(script);
    });
  },
};

const KINDS = ["package", "class", "property"];
const MOST = 100;

async function find(query) {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
  const names = words.map((word) => word.codePointAt(0).toString(16));
  await Promise.all(names.map((name) => catalogue.load(name)));
  let found = null;
  words.forEach((word, number) => {
    const matching = new Map();
    for (const [known, entries] of catalogue.parts.get(names[number])) {
      if (!known.startsWith(word)) continue;
      for (const entry of entries) {
        // A text may have any character, so none can divide the parts of a key.
        const key = JSON.stringify(entry);
        const whole = known === word ? 0 : 1;
        const before = matching.get(key);
        if (before === undefined || whole < before) matching.set(key, whole);
      }
    }
    if (found === null) {
      found = matching;
    } else {
      for (const [key, rank] of found) {
        if (matching.has(key)) found.set(key, rank + matching.get(key));
        else found.delete(key);
      }
    }
  });
  return [...(found || new Map())]
    .map(([key, rank]) => [rank, ...JSON.parse(key)])
    .sort((a, b) => a[0] - b[0] || KINDS.indexOf(a[1]) - KINDS.indexOf(b[1]) || (a[2] < b[2] ? -1 : 1));
}

function show(found, query) {
  const list = document.getElementById("found");
  const isAsked = query.trim() !== "";
  list.replaceChildren(
    ...found.slice(0, MOST).map(([, kind, text, path]) => {
      const link = document.createElement("a");
      link.href = path;
      link.textContent = text;
      const item = document.createElement("li");
      item.append(link, " " + kind);
      return item;
    }),
  );
  const more = found.length > MOST ? ", the first " + MOST + " are shown" : "";
  document.getElementById("count").textContent = isAsked ? found.length + " found" + more : "";
  document.getElementById("packages").hidden = isAsked;
}

const input = document.getElementById("query");
let last = 0;
async function search() {
  const number = ++last;
  const query = input.value;
  const found = await find(query);
  // Somebody may have typed on meanwhile.
  if (number === last) show(found, query);
}
input.disabled = false;
input.placeholder = "";
input.addEventListener("input", search);
if (input.value) search();
