package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// allRows is the table of BENCHMARKS.md. A letter that is missing was a row once.
var allRows = []row{
	{"a", rowFirstListing},
	{"b", rowCatEntries},
	{"c", rowLongListing},
	{"d", rowGrep},
	{"e", rowContext},
	{"f", rowAppend},
	{"g", rowMount},
	{"h", rowIndex},
	{"i", rowForeignAppend},
	{"j", rowMemory},
	{"m", rowCosts},
	{"n", rowSearch},
	{"o", rowArchive},
	{"q", rowDatabase},
	{"s", rowClaude},
	{"t", rowSearchClaude},
	{"u", rowUsage},
	{"v", rowManyClaude},
	{"w", rowCommands},
	{"x", rowLists},
}

// warmDaemon has the daemon index a session while the kernel learns no name in entries/:
// reading leaf needs the whole index and no entry's name. "Daemon warm, first time" is a fresh mount
// after this; what the kernel could remember of an earlier mount went with it, and the pages of the
// backing files are in its cache since they were made.
func (b *bench) warmDaemon(mt *mount, s *session) { b.time(mt.Path(s.dir), "readlink leaf >/dev/null") }

// onBoth calls once repeatedly with a fresh warm mount of a session and one of its plain files through loopback, in both of which
// a command line prints the same.
func (b *bench) onBoth(s *session, res []result, line string, once func(ours, loopback string)) []result {
	withBoth := func(f func(ours, loopback string)) {
		b.withOurs(s.agent, &res[0], func(mt *mount) {
			b.warmDaemon(mt, s)
			b.withLoopback(s.plainDir(), func(loopback string) { f(mt.Path(s.dir), loopback) })
		})
	}
	withBoth(func(ours, loopback string) { b.same(ours, loopback, line) })
	return b.repeat(res, func() { withBoth(once) })
}

// rowFirstListing: the daemon reads and checks the whole file, and finds the lines that are no JSON.
func rowFirstListing(b *bench) []result {
	s := b.session(longSession)
	res := []result{{
		what:  fmt.Sprintf("first `ls -U entries \\| wc -l` after a mount, %s", s.describe()),
		peer:  "client: SessionManager.open",
		ratio: 0.3,
	}}
	b.withOurs(s.agent, &res[0], func(mt *mount) { b.expect(mt.Path(s.dir), `grep -c '"skipped"' problems.jsonl`, s.bad) })
	return b.measured(s.agent, res, func(mt *mount) {
		res[0].add(b.expect(mt.Path(s.dir), "ls -U entries | wc -l", s.entries), b.clientOpens("open", s))
	})
}

// rowCatEntries: an open, a read and a close of each entry.
func rowCatEntries(b *bench) []result {
	s := b.session(middleSession)
	const line = "cat entries/*.json >/dev/null"
	what := "`cat entries/*.json`, " + s.describe()
	res := []result{
		{what: what + ", daemon warm, first time", peer: "loopback", ratio: 0.8},
		{what: what + ", again at once", peer: "loopback", ratio: 0.5},
	}
	return b.onBoth(s, res, "cat entries/*.json | sha256sum", func(ours, loopback string) {
		first := b.time(ours, line)
		again := b.time(ours, line)
		res[0].add(first, b.time(loopback, line))
		res[1].add(again, b.time(loopback, line))
	})
}

// rowLongListing: a listing with the attributes of every entry. Nothing is known to the kernel yet.
func rowLongListing(b *bench) []result {
	s := b.session(longSession)
	res := []result{{what: fmt.Sprintf("`ls -l entries`, %d entries", s.entries), peer: "loopback, default options", ratio: 0.25}}
	return b.onBoth(s, res, "ls -l --time-style=full-iso entries | tail -n +2 | sha256sum", func(ours, loopback string) {
		const line = "ls -l entries >/dev/null"
		res[0].add(b.time(ours, line), b.time(loopback, line))
	})
}

// rowGrep: a session's branch and its raw file, each as one flat file.
func rowGrep(b *bench) []result {
	s := b.session(longSession)
	res := []result{
		{what: "`grep -c` over `branches/current/entries.jsonl`", peer: "plain file", ratio: 1.7},
		{what: "`grep -c` over the raw file, " + s.describe(), peer: "plain file", ratio: 1.5},
	}
	branch := filepath.Join(s.dir, "branches/current/entries.jsonl")
	flat := filepath.Join(b.dir, "branch.jsonl")
	b.withOurs(s.agent, &res[0], func(mt *mount) { b.time(b.dir, fmt.Sprintf("cat '%s' >'%s' && sync", mt.Path(branch), flat)) })
	return b.repeat(res, func() {
		b.withOurs(s.agent, &res[1], func(mt *mount) {
			b.warmDaemon(mt, s)
			for i, files := range [][2]string{{mt.Path(branch), flat}, {mt.Path(s.raw), s.file}} {
				// Not to /dev/null: grep stops at its first match there.
				count, took := b.output("/", "grep -c toolResult '"+files[0]+"'")
				res[i].add(took, b.expect("/", "grep -c toolResult '"+files[1]+"'", strings.TrimSpace(count)))
			}
		})
	})
}

// rowContext: the client's time is that of opening the file, building the context and printing it.
func rowContext(b *bench) []result {
	s := b.session(middleSession)
	res := []result{{
		what:  "first `cat context.json` after a mount, " + s.describe(),
		peer:  "client: open, buildSessionContext, JSON.stringify",
		ratio: 0.5,
	}}
	return b.measured(s.agent, res, func(mt *mount) {
		res[0].add(b.time(mt.Path(s.dir), "cat context.json >/dev/null"), b.clientOpens("context", s))
	})
}

// appends is how many lines row i adds.
const appends = 20

// rowForeignAppend: another program adds a line; the peer is the same readlink when nothing was added,
// most of which is the start of a process.
func rowForeignAppend(b *bench) []result {
	s := b.session(hugeSession)
	res := []result{{
		what:  "after a foreign append, next `readlink leaf`, " + s.describe(),
		peer:  "the same, nothing appended",
		limit: 0.005,
	}}
	b.withOurs(s.agent, &res[0], func(mt *mount) {
		b.warmDaemon(mt, s)
		for i := range appends + 1 {
			id := fmt.Sprintf("zz%06d", i)
			b.append(s.file, foreignLine(id, s.lastID, i))
			ours := b.expect(mt.Path(s.dir), "readlink leaf", "entries/"+id+".json")
			peer := b.time(mt.Path(s.dir), "readlink leaf")
			if i > 0 { // the first one warms up
				res[0].add(ours, peer)
			}
			s.lastID = id
			time.Sleep(50 * time.Millisecond) // a client is not faster
		}
	})
	return res
}

// foreignLine returns a prompt of omp that another program adds, the i-th one.
func foreignLine(id, parent string, i int) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":%q,"message":{"role":"user","content":"line %d","timestamp":%d}}`+"\n",
		id, parent, stamp(time.Now()), i, time.Now().UnixMilli())
}

// append adds a line as the client does: one write with O_APPEND.
func (b *bench) append(file, line string) {
	b.timeWrites(file, os.O_WRONLY|os.O_APPEND, []string{line})
}

// rowArchive: the first listing of a compressed session unpacks it.
func rowArchive(b *bench) []result {
	s := b.session(longSession)
	agent := filepath.Join(b.dir, "archived")
	file := filepath.Join(agent, "archive", s.raw+".gz")
	b.time(b.dir, fmt.Sprintf("mkdir -p archived/sessions '%s' && gzip -c '%s' >'%s' && sync", filepath.Dir(file), s.file, file))
	res := []result{
		{what: "first `ls -U entries \\| wc -l` of the same session in a .gz", peer: "`zcat \\| wc -l`", ratio: 1.5},
		{what: "peak memory of the daemon in that", unit: megabytes, limit: 150 * megabyte},
	}
	return b.measured(agent, res, func(mt *mount) {
		ours := b.expect(mt.Path("archive/"+strings.TrimPrefix(s.dir, "sessions/")), "ls -U entries | wc -l", s.entries)
		res[0].add(ours, b.expect(agent, "zcat '"+file+"' | wc -l", 1+s.entries+s.bad))
		res[1].add(mt.Memory("VmHWM"), 0)
	})
}
