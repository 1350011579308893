
"use strict";
(() => {
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const decode = text => { try { return decodeURIComponent(text); } catch { return text; } };
  const form = one("form"), input = one("input[type=search]"), output = one("output"), button = one("button", form);
  const rows = all("main article, main .row"), links = new Map();
  for (const link of all("nav li > a")) links.set(decode(link.getAttribute("href").slice(1)), link.parentElement);
  let hits = [], at = -1;

  // The heading of an answer that begins with a call stays above the rest of it where calls are hidden.
  for (const first of all("main article.tool.begins")) {
    let next = first.nextElementSibling;
    while (next && !next.matches(".begins, section") && !next.matches("article:not(.tool, .note)")) next = next.nextElementSibling;
    first.classList.toggle("speaks", next?.matches("article:not(.begins)") ?? false);
  }

  const typed = () => input.value.trim().toLowerCase();
  const unfold = row => {
    for (const fold of all("details:not([open])", row)) {
      if (fold.textContent.toLowerCase().includes(typed())) { fold.open = true; fold.dataset.found = ""; }
    }
  };
  // Entries with the text stay, folds that have it open (of many hits, when they are gone to), and it is marked.
  const search = () => {
    const wanted = typed(), ranges = [];
    for (const fold of all("details[data-found]")) { fold.open = false; delete fold.dataset.found; }
    hits = []; at = -1;
    one("nav [aria-current]")?.removeAttribute("aria-current");
    const found = new Set();
    for (const row of rows) {
      const hit = !wanted || row.textContent.toLowerCase().includes(wanted);
      row.classList.toggle("miss", !hit);
      if (!wanted || !hit) continue;
      if (!row.closest("details")) hits.push(row);
      for (const named of [row, ...all("[id]", row)]) found.add(named.id);
      if (hits.length <= 200) unfold(row);
      const texts = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
      while (ranges.length < 2000 && texts.nextNode()) {
        const node = texts.currentNode, text = node.data.toLowerCase();
        if (text.length !== node.data.length) continue;
        for (let i = text.indexOf(wanted); i >= 0; i = text.indexOf(wanted, i + wanted.length)) {
          const range = new Range();
          range.setStart(node, i);
          range.setEnd(node, i + wanted.length);
          ranges.push(range);
        }
      }
    }
    for (const [id, line] of links) line.classList.toggle("miss", wanted !== "" && !found.has(id) && !one(".row"));
    for (const line of all("nav .join")) line.classList.toggle("miss", wanted !== "");
    if (globalThis.Highlight) CSS.highlights.set("found", new Highlight(...ranges));
    output.value = wanted ? (hits.length || "Nothing") + " found" + (hits.length > 1 ? "; Enter or n goes to the next" : "") : "";
  };
  const show = what => {
    document.documentElement.dataset.show = what;
    one(`input[value=${what}]`).checked = true;
  };
  // The target of a link is unfolded, and shown whatever is filtered.
  const reveal = () => {
    const target = one(":target");
    if (!target || !target.closest("main article, main .row")) return;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    if (target.offsetParent) return;
    input.value = "";
    search();
    if (one("fieldset")) show("all");
    target.scrollIntoView();
  };

  // The next hit, or the one before, is shown, and marked in the tree.
  const go = back => {
    clearTimeout(later);
    if (!hits.length) search();
    if (!hits.length) return;
    at = back ? (at <= 0 ? hits.length : at) - 1 : (at + 1) % hits.length;
    unfold(hits[at]);
    hits[at].scrollIntoView();
    output.value = `${at + 1} of ${hits.length}`;
    one("nav [aria-current]")?.removeAttribute("aria-current");
    const line = [hits[at], ...all("[id]", hits[at])].map(named => links.get(named.id)).find(Boolean);
    if (!line) return;
    line.setAttribute("aria-current", "true");
    const list = line.closest("nav");
    list.scrollTop += line.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
  };

  let later;
  input.addEventListener("input", () => { clearTimeout(later); later = setTimeout(search, 150); });
  form.addEventListener("submit", event => event.preventDefault());
  input.addEventListener("keydown", event => {
    if (event.key === "Enter") go(event.shiftKey);
    if (event.key === "Escape") input.blur();
  });
  addEventListener("keydown", event => {
    if (event.target === input || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      input.focus();
    }
    if ((event.key === "n" || event.key === "N") && typed()) go(event.key === "N");
  });
  form.addEventListener("change", event => { if (event.target.name === "show") show(event.target.value); });
  button?.addEventListener("click", () => {
    const open = button.getAttribute("aria-pressed") !== "true";
    for (const fold of all("main details")) { fold.open = open; delete fold.dataset.found; }
    button.setAttribute("aria-pressed", open);
  });

  // The session's lines are in the page, compressed.
  const lines = document.getElementById("/lines"), download = one("button.download", form);
  if (lines && globalThis.DecompressionStream) {
    download.hidden = false;
    download.addEventListener("click", async () => {
      const bytes = Uint8Array.from(atob(lines.content.textContent), c => c.charCodeAt(0));
      const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await new Response(unpacked).blob());
      link.download = lines.dataset.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    });
  }

  addEventListener("hashchange", reveal);
  form.hidden = false;
  reveal();
})();
