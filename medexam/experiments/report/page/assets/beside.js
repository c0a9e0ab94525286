"use strict";

// Two replies to one question side by side. What only one of them says is marked, word by word.
page.beside = (() => {
  const { element } = page;
  const MOST_CELLS = 4_000_000;
  let chosen = [0, 1];
  let isOpen = false;

  const replyOf = (answer) => {
    if (!answer) return null;
    const replies = (answer.calls ?? []).map((call) => call.reply).filter((reply) => reply !== undefined);
    return replies.join("\n\n") || answer.reply || answer.text || answer.rationale || null;
  };

  page.replyOf = replyOf;

  // Whether each word of `a` and of `b` stands in a longest common subsequence of the two.
  const match = (a, b) => {
    const [inA, inB] = [new Uint8Array(a.length), new Uint8Array(b.length)];
    let [start, endA, endB] = [0, a.length, b.length];
    while (start < endA && start < endB && a[start] === b[start]) start += 1;
    while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
    inA.fill(1, 0, start).fill(1, endA);
    inB.fill(1, 0, start).fill(1, endB);
    const [rows, columns] = [endA - start, endB - start];
    if (rows * columns > MOST_CELLS) return [inA, inB];
    const width = columns + 1;
    const longest = new Uint16Array((rows + 1) * width);
    for (let i = rows - 1; i >= 0; i -= 1) {
      for (let j = columns - 1; j >= 0; j -= 1) {
        longest[i * width + j] = a[start + i] === b[start + j] ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
      }
    }
    for (let [i, j] = [0, 0]; i < rows && j < columns;) {
      if (a[start + i] === b[start + j]) {
        inA[start + i] = inB[start + j] = 1;
        [i, j] = [i + 1, j + 1];
      } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i += 1;
      else j += 1;
    }
    return [inA, inB];
  };

  const marked = (words, isShared) => words.map((word, at) =>
    (isShared[at] || !word.trim() ? word : element("mark", { textContent: word })));

  return (item, runs) => {
    const replies = item.answers.map(replyOf);
    const places = replies.flatMap((reply, run) => (reply === null ? [] : [run]));
    if (places.length < 2) return null;
    if (!chosen.every((run) => places.includes(run))) chosen = places.slice(0, 2);
    const panes = [0, 1].map(() => element("div", { className: "data reply", dir: "auto" }));
    const show = () => {
      const [a, b] = chosen.map((run) => replies[run].split(/(\s+)/));
      const shared = match(a, b);
      panes[0].replaceChildren(...marked(a, shared[0]));
      panes[1].replaceChildren(...marked(b, shared[1]));
    };
    const columns = panes.map((pane, side) => {
      const select = element("select", { "aria-label": side ? "Second reply" : "First reply" }, ...places.map((run) =>
        element("option", { value: run, textContent: runs[run], selected: run === chosen[side] })));
      select.addEventListener("change", () => {
        chosen[side] = Number(select.value);
        show();
      });
      return element("div", {}, select, pane);
    });
    const made = element("details", { className: "run beside", open: isOpen },
      element("summary", { textContent: "Two replies side by side, differences marked" }),
      element("div", { className: "columns" }, ...columns));
    made.addEventListener("toggle", () => {
      isOpen = made.open;
      if (isOpen) show();
    });
    if (isOpen) show();
    return made;
  };
})();
