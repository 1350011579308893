// The first page of a site, with five sessions.
is(0, deadAnchors().length);
is(5, shown("main > div .row"));
is(true, one("input[type=search]").placeholder === "Search titles and directories" && one("form").innerText.includes("sessionfs search WORD"));
await search("an hour LATE");
is(1, shown("main > div .row"));
is(1, shown("h3")); // days without a hit are hidden
await search("");
