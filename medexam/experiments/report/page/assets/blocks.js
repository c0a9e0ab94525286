"use strict";

// What every script below needs: elements, outcomes, and the page's compressed blocks. Text from exams and models goes
// into the page as text and never as markup.
const page = (() => {
  const KEPT = 12;
  const opened = new Map();

  const OUTCOMES = {
    r: { name: "right", sign: "\u2713" },
    w: { name: "wrong", sign: "\u2717" },
    u: { name: "unanswered", sign: "?" },
    f: { name: "failed", sign: "!" },
    m: { name: "not asked yet", sign: "\u2026" },
    a: { name: "answered", sign: "\u2022" },
    "-": { name: "not in this run", sign: "\u00a0" },
  };

  const element = (tag, properties = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in made) made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  };

  const mark = (outcome, run) => {
    const { name, sign } = OUTCOMES[outcome];
    return element("span", { className: `mark ${name.replaceAll(" ", "-")}`, title: run ? `${run}: ${name}` : name,
      textContent: sign, "aria-hidden": "true" });
  };

  const decompress = async (name) => {
    const binary = atob(document.getElementById(`block-${name}`).textContent);
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };

  // The newest `KEPT` blocks stay open.
  const open = (name) => {
    const found = opened.get(name) ?? decompress(name);
    opened.delete(name);
    opened.set(name, found);
    if (opened.size > KEPT) opened.delete(opened.keys().next().value);
    return found;
  };

  return { OUTCOMES, element, mark, open };
})();
