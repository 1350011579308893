package nodes

// Row describes a path of a mount.
type Row struct {
	// Path ends in / for a directory and in @ for a symbolic link. … stands for any number of
	// directories, <…> for one name.
	Path string
	// File is the file of this package with the code that makes the content or finds the target.
	File string
	// What is the description in Markdown for a user.
	What string
	// Hidden reports that it is found only by its name: programs that walk the mount never see it.
	Hidden bool
}

// Section is a part of docs/layout.md with its rows.
type Section struct {
	Title string
	Rows  []Row
}

// Layout describes all paths of a mount. It makes the tables of docs/layout.md. A test walks a
// mount and finds a row for every path.
var Layout = []Section{
	{"The top of a mount", []Row{
		{"/", "root.go", `the mount point`, false},
		{"README", "content.go", `how to begin`, false},
		{"sessions/", "source.go", "the session files of SOURCE, with their directories, at any depth; with `--all` in a directory for each agent", false},
		{"recent/", "layout/directory.go", `the 50 sessions that were modified last`, false},
		{"by-id/", "layout/directory.go", `all sessions by their full id`, false},
		{"by-cwd/", "layout/directory.go", `all sessions by the working directory in their header`, false},
		{"by-date/", "layout/directory.go", `all sessions by the day on which they began`, false},
		{"continue/", "layout/directory.go", `the session that each terminal was in last; not listed while it is empty`, false},
		{"running/", "layout/running.go", `the sessions that an agent has open; not listed while it is empty`, false},
		{"index.jsonl", "content.go", "a line a session, newest first: id, path, working directory, title, times, number of messages, first message, size, with `--all` the agent; with more than 10,000 sessions not listed", false},
		{"usage.jsonl", "content.go", `tokens and cost by day, working directory and model; no answer counts twice`, true},
		{"lost.tsv", "content.go", `a row for each tip, in any session, that no resume shows and that says something of its own: time, session, id, the path of its branch, what you said last there`, true},
		{"search/", "search.go", `search of all sessions: look up a query in it`, false},
		{"by-file/", "search.go", `what sessions did with a file: look up its absolute path in it`, false},
		{"history/", "history.go", `the prompts that you typed`, false},
		{"archive/", "source.go", `the archived sessions, read-only; not listed while it is empty`, false},
		{"blobs/", "source.go", `the blob store, SOURCE/blobs; not listed while it is empty`, false},
		{"terminal-sessions/", "source.go", `the notes of which terminal is in which session, SOURCE/terminal-sessions; not listed while it is empty`, false},
		{"new-session", "controlfile.go", "write a working directory, or an object with `cwd`, `title`, `parentSession`, `create` and, with `--all`, `agent`: a new session; reading answers its path", false},
		{"last-error", "content.go", `why a look-up or a write outside a session was refused last; empty when a write succeeded since`, false},
	}},
	{"Finding sessions", []Row{
		{"recent/<name>@", "layout/directory.go", "a session, by its place and its title: `01-Tide sheets on a stick`, with ` (fork of 03)` for one whose parent is the third", false},
		{"by-id/<id>@", "layout/directory.go", `a session`, false},
		{"by-id/<key>@", "layout/directory.go", "the session that `--resume <key>` finds: the beginning of an id or of a file name, in any case", true},
		{"by-cwd/…/<dir>/", "layout/directory.go", `a directory on the way to a working directory`, false},
		{"by-cwd/…/<name>@", "layout/directory.go", "a session of that working directory, by when it began and its title, and `latest`", false},
		{"by-date/<day>/", "layout/directory.go", `a day`, false},
		{"by-date/<day>/<name>@", "layout/directory.go", "a session that began on that day, by the time and its title, and `latest`", false},
		{"continue/<terminal>@", "layout/directory.go", `the session of a terminal`, false},
		{"running/<name>@", "layout/running.go", `one of them, by its title`, false},
		{"history/prompts.jsonl", "history.go", `all prompts, a line each, newest first`, false},
		{"history/search/", "history.go", `search of the prompts: look up a query in it`, false},
		{"history/search/<query>", "history.go", `the prompts that a query finds, newest first`, true},
		{"…/search/<query>/", "search.go", `what a query finds, in all sessions or in one`, true},
		{"…/search/<query>/results.tsv", "search.go", `a row a hit, newest first`, true},
		{"…/search/<query>/entries/", "search.go", `the entries that were found`, true},
		{"…/search/<query>/entries/<entry>@", "search.go", `one of them, in its session`, true},
		{"…/search/<query>/sessions/", "search.go", `the sessions that were found`, true},
		{"…/search/<query>/sessions/<name>@", "search.go", `one of them`, true},
		{"by-file/…/<name>/results.tsv", "search.go", `a row a call, newest first, with the prompt before it`, true},
		{"by-file/…/<name>/edits.diff", "search.go", `the edits of the file as diffs below their prompts, newest first`, true},
		{"by-file/…/<name>/entries/", "search.go", `the entries that made the calls`, true},
		{"by-file/…/entries/<entry>@", "search.go", `one of them, in its session`, true},
		{"by-file/…/<name>/sessions/", "search.go", `the sessions that made the calls`, true},
		{"by-file/…/sessions/<name>@", "search.go", `one of them`, true},
		{"by-file/…/<name>/", "search.go", `a file, or a directory and all below it, that a tool was called with`, true},
	}},
	{"A session", []Row{
		{"…/<session>/", "session.go", `a session`, false},
		{"…/<session>/header.json", "session.go", `the header, as the client loads it`, false},
		{"…/<session>/title", "controlfile.go", `the title; write a line to set it, an empty one to clear it`, false},
		{"…/<session>/cwd", "controlfile.go", `the working directory; write another one to move the session there`, false},
		{"…/<session>/entries/", "entries.go", `the entries, in the order of the file`, false},
		{"…/<session>/entries/<id>.json", "entries.go", `an entry, byte for byte; its mtime is the time of the entry`, false},
		{"…/<session>/leaf@", "leaf.go", "the entry at which the conversation stands: `entries/<id>.json`, or `tree` before the first; `ln -sfn TARGET leaf` moves it", false},
		{"…/<session>/context.json", "session.go", `what the model would be sent from the leaf`, false},
		{"…/<session>/transcript.md", "session.go", `the current branch, to be read by a person`, false},
		{"…/<session>/usage.json", "session.go", `tokens and cost: in all, without what the parent has too, by model, of the current branch; what takes the room`, false},
		{"…/<session>/branches.tsv", "session.go", `a row for each tip: entries, time, label, whether a resume shows it, what you said last`, false},
		{"…/<session>/branches/", "branches.go", "the tips, and `current`", false},
		{"…/<session>/by-label/", "links.go", `the entries that have a label`, false},
		{"…/<session>/by-label/<label>@", "links.go", `one of them`, false},
		{"…/<session>/tree/", "tree.go", `the entries as directories, each in that of its parent`, false},
		{"…/<session>/append", "controlfile.go", `write lines of JSON: each becomes an entry behind the leaf; reading answers their ids`, false},
		{"…/<session>/labels", "controlfile.go", "`<id>` and label, a line each; write such a line to set a label, an id alone to clear it", false},
		{"…/<session>/fork", "controlfile.go", `write an id: a new session of the path to it; reading answers its path`, false},
		{"…/<session>/problems.jsonl", "session.go", `what could not be read or joined, and tool calls without a result; empty when healthy`, false},
		{"…/<session>/secrets.jsonl", "session.go", `where keys and tokens are, never what they are`, true},
		{"…/<session>/last-error", "content.go", `why the last write was refused; empty when one succeeded since`, false},
		{"…/<session>/owner", "content.go", `which agent has the session open, one line of JSON; empty for none`, true},
		{"…/<session>/parent@", "session.go", `the session that this one was forked from, where it is here`, false},
		{"…/<session>/children/", "links.go", `the sessions whose parent this one is`, false},
		{"…/<session>/children/<name>@", "links.go", `one of them`, false},
		{"…/<session>/search/", "search.go", `search of this session: look up a query in it`, false},
		{"…/<session>/artifacts/", "source.go", `the directory beside the session file, with the sessions of subagents`, false},
		{"…/<session>/<artifact>", "sourcefile.go", "a file of `artifacts/`, by the name that tool output mentions", true},
		{"…/<session>/<artifact>/", "source.go", "a directory of `artifacts/`, likewise", true},
		{"…/<session>/<temporary>@", "leaf.go", "a link on its way to become `leaf`, for the program that made it", true},
	}},
	{"Branches", []Row{
		{"…/<session>/branches/current@", "branches.go", `the branch of the leaf`, false},
		{"…/<session>/branches/<id>@", "branches.go", `the branch of a tip, or of any entry`, false},
		{"…/<session>/branches/.by-id/", "branches.go", `lists nothing; where the links lead`, false},
		{"…/.by-id/<id>/", "branches.go", `a branch`, true},
		{"…/.by-id/<id>/path/", "branches.go", `its entries in their order, as a table of contents`, true},
		{"…/.by-id/<id>/path/<entry>@", "branches.go", "one of them: `000003-user-6d471159.json`", true},
		{"…/.by-id/<id>/entries.jsonl", "branches.go", `its entries as one file`, true},
		{"…/.by-id/<id>/context.json", "branches.go", `what the model would be sent at its end`, true},
		{"…/.by-id/<id>/transcript.md", "branches.go", `the branch, to be read by a person`, true},
	}},
	{"The tree", []Row{
		{"…/<session>/tree/…/<id>/", "tree.go", `an entry, with a directory for each child`, false},
		{"…/<session>/tree/…/<id>/entry.json@", "tree.go", `the entry itself`, false},
		{"…/<session>/tree/…/<id>/<id>@", "tree.go", "a child whose directory is in `.deep/`", false},
		{"…/<session>/tree/.deep/", "tree.go", `where the nesting goes on`, false},
		{"…/<session>/tree/.deep/…/<id>/", "tree.go", `an entry, with a directory for each child`, false},
		{"…/<session>/tree/.deep/…/<id>/entry.json@", "tree.go", `the entry itself`, false},
		{"…/<session>/tree/.deep/…/<id>/<id>@", "tree.go", `a child that is deeper still`, false},
	}},
	{"The files of SOURCE", []Row{
		{"sessions/…/<dir>/", "source.go", `a directory`, false},
		{"sessions/…/<file>", "sourcefile.go", `a file: the session files, byte for byte`, false},
		{"sessions/…/<link>@", "sourcefile.go", `a symbolic link, as it is`, false},
		{"blobs/<sha256>", "sourcefile.go", `a blob, by the SHA-256 of its content`, false},
		{"terminal-sessions/<terminal>", "sourcefile.go", `the note of a terminal`, false},
		{"archive/index.jsonl", "content.go", "as `index.jsonl`, of the archived sessions", false},
		{"archive/…/<dir>/", "source.go", `a directory`, false},
		{"archive/…/<file>", "sourcefile.go", `a file: the archived session files, compressed as they are`, false},
		{"archive/…/<link>@", "sourcefile.go", `a symbolic link, as it is`, false},
	}},
}
