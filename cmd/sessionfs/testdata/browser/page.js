// A page that shows as many entries as without scripts.
const pick = what => one(`input[value=${what}]`).click();
is("An hour late, a hand too high", document.title);
is(entries, shown("main article"));

// Filters.
pick("user");
is(shown("main article.user"), shown("main article"));
is(shown("nav li.user"), shown("nav li"));
not(entries, shown("main article"));
is(all("main section").filter(s => s.querySelector("article.user")).length, shown("main section > h2"));
pick("labelled");
is(shown("main article.labelled"), shown("main article"));
not(0, shown("main article"));
pick("talk");
is(0, shown("main .call"));
not(0, shown("main article:not(.user)"));
// The first shown entry of an answer has its heading, also where a call comes first.
const spoken = all("main article:not(.user, .note)").filter(e => e.offsetParent);
const heading = e => { while (!e.matches(".begins")) e = e.previousElementSibling; return e.querySelector("h2"); };
is(true, spoken.every(e => heading(e).offsetParent !== null));
not(0, all("main article.speaks").length);
is(0, all("main article.speaks").filter(e => e.innerText.trim() !== heading(e).innerText.trim()).length);
pick("all");
not(0, shown("main .call"));

// All folds, open and closed.
one("form button").click();
is(0, all("main details:not([open])").length);
one("form button").click();
is(0, all("main details[open]").length);

// A search opens only the folds that have the text.
await search("--- FAIL: TestTable");
is(0, all("main details[open]:not(.call)").length);
not(0, shown("main details[open] pre"));
not(0, shown("nav li"));
not(entries, shown("main article"));
not(0, CSS.highlights.get("found").size);
one("input[type=search]").dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
is(true, /^1 of \d+$/.test(one("output").value));
// Off the field n and N go on and back, / leads to it; the tree marks where the hit is.
const press = (key, at = document.body) => at.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
const count = Number(one("output").value.split(" ")[2]);
not(1, count);
press("n");
is(`2 of ${count}`, one("output").value);
const marked = one("nav [aria-current]").innerText;
press("N");
is(1, all("nav [aria-current]").length);
not(marked, one("nav [aria-current]").innerText);
press("N");
is(`${count} of ${count}`, one("output").value);
press("n", one("input[type=search]")); // typed
is(`${count} of ${count}`, one("output").value);
document.activeElement.blur();
is(false, press("/")); // not typed
is(one("input[type=search]"), document.activeElement);
press("Escape", one("input[type=search]"));
is(document.body, document.activeElement);
// No branch without a hit keeps its heading, and the heading says how the branch begins.
await search("While it is fresh");
is(1, shown("main article.user"));
is(1, shown("main section > h2"));
is(true, one("main section:not([hidden]) > h2").textContent.startsWith("Another branch: "));
await search("no such text");
is(0, shown("main article"));
is(0, shown("main section > h2"));
await search("");
is(entries, shown("main article"));
is(0, all("main details[open]").length);

// An anchor unfolds, also where a filter hides its entry.
pick("user");
location.hash = "#" + one("main .call > div[id]").id;
await pause(200);
is(true, one("main .call").open && one(":target").offsetParent !== null);
is(0, deadAnchors().length);

// The lines of the session are downloaded, without a connection.
let saved;
URL.createObjectURL = blob => { saved = blob; return "#"; };
HTMLAnchorElement.prototype.click = function () { saved.name = this.download; };
is(false, one("button.download").hidden);
one("button.download").click();
for (let n = 0; !saved?.name && n < 100; n++) await pause(20);
const lines = (await saved.text()).trim().split("\n").map(line => JSON.parse(line));
is(true, lines[0].type === "session" || lines[1].type === "session");
is(true, lines.length > entries);
is(true, /^[\w-]+\.jsonl$/.test(saved.name));
