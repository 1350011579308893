// A page that shows as many entries as without scripts.
const pick = what => one(`input[value=${what}]`).click();
is("An hour late, a hand too high", document.title);
is(entries, shown("main article"));

// Filters.
pick("user");
is(shown("main article.user"), shown("main article"));
is(shown("nav li.user"), shown("nav li"));
not(entries, shown("main article"));
pick("labelled");
is(shown("main article.labelled"), shown("main article"));
not(0, shown("main article"));
pick("talk");
is(0, shown("main .call"));
not(0, shown("main article:not(.user)"));
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
await search("no such text");
is(0, shown("main article"));
await search("");
is(entries, shown("main article"));
is(0, all("main details[open]").length);

// An anchor unfolds, also where a filter hides its entry.
pick("user");
location.hash = "#" + one("main .call > div[id]").id;
await pause(200);
is(true, one("main .call").open && one(":target").offsetParent !== null);
is(0, deadAnchors().length);
