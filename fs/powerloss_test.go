package fs_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A loss of power, not only a kill: SOURCE lies on a file system that records each change and each fsync, and the
// states that a loss after each of them could leave are looked at (powerlosscheck_test.go).

// promised is what a write promises.
type promised struct {
	session string   // below sessions/
	file    string   // the control file of the session that is written to, and with whose fsync the write is durable
	lines   []string // each is found in one line of the file, once
	title   *string
	whole   bool   // the file is there with all of it, or not at all
	atOnce  bool   // it is durable without an fsync
	durable string // the mark from which on it must be there
}

// lossy is a mount over a file system that records.
type lossy struct {
	t        *testing.T
	m        *mount
	loopback string
	record   string
	sync     bool // -o sync
	promises []promised
}

const (
	lossSlot = `{"type":"title","v":1,"title":"before","source":"user","updatedAt":"2026-02-16T10:20:30.000Z","pad":"`
	lossTorn = `{"type":"message","id":"cut","par`
	lossV1   = `{"type":"session","id":"old","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/p"}` + "\n" +
		`{"type":"message","timestamp":"2026-02-16T10:20:31.000Z","message":{"role":"user","content":"old-question"}}` + "\n"
)

// lossFiles are the sessions from the start, and what is found in their lines.
var lossFiles = map[string]struct {
	text  string
	lines []string
}{
	"plain": {header("plain") + entry(0, "e0", "", "zero") + entry(1, "e1", "e0", "one"), []string{mark(0), mark(1)}},
	"slot": {lossSlot + strings.Repeat(" ", 256-len(lossSlot)-3) + "\"}\n" + header("slot") + entry(0, "e0", "", "zero"),
		[]string{mark(0)}},
	"old":  {lossV1, []string{"old-question"}},
	"torn": {header("torn") + entry(0, "e0", "", "zero") + lossTorn, []string{mark(0)}},
}

// newLossy has write make a store on a file system that records. From then on a loss of power can do something.
func newLossy(t *testing.T, sync bool, write func(a agent)) *lossy {
	config := loopbackConfig{
		From:   t.TempDir(),
		To:     t.TempDir(),
		How:    recorded,
		Record: filepath.Join(t.TempDir(), "record"),
	}
	l := &lossy{
		t:        t,
		loopback: config.mount(t).dir,
		record:   config.Record,
		sync:     sync,
	}
	a := agent{t: t, dir: l.loopback}
	require.NoError(t, os.MkdirAll(a.path(""), 0o755))
	write(a)
	shell(t, `find "$1" -print0 | xargs -0 sync`, l.loopback)
	l.mark("made")
	return l
}

// ops are the changes that were recorded.
func (l *lossy) ops() (ops []diskOp) {
	f, err := os.Open(l.record)
	require.NoError(l.t, err)
	defer f.Close()
	lines := json.NewDecoder(f)
	for {
		var op diskOp
		err := lines.Decode(&op)
		if err == io.EOF {
			return ops
		}
		require.NoError(l.t, err)
		ops = append(ops, op)
	}
}

// mark adds a mark to the record.
func (l *lossy) mark(text string) {
	require.ErrorIs(l.t, os.Mkdir(filepath.Join(l.loopback, markPrefix+text), 0o700), os.ErrExist)
}

// does carries out a write, which is durable afterwards. do may note the answer.
func (l *lossy) does(p promised, do func(p *promised)) {
	do(&p)
	name := strings.ReplaceAll(fmt.Sprint(p.session, " ", p.file, " ", p.lines), "/", " ")
	p.durable = "done " + name
	l.mark(p.durable)
	if !p.atOnce && !l.sync {
		f, err := os.OpenFile(l.in(p.session, p.file), os.O_RDWR, 0)
		require.NoError(l.t, err)
		require.NoError(l.t, f.Sync())
		require.NoError(l.t, f.Close())
		p.durable = "synced " + name
		l.mark(p.durable)
	}
	l.promises = append(l.promises, p)
}

// puts writes text to a control file.
func (l *lossy) puts(text string, p promised) {
	l.does(p, func(*promised) { require.NoError(l.t, put(l.in(p.session, p.file), text)) })
}

// custom is a line for append with an id.
func custom(id string, size int) string {
	return `{"type":"custom","customType":"t","id":"` + id + `","data":"` + strings.Repeat("x", size) + `"}` + "\n"
}

// appends appends entries of such ids.
func (l *lossy) appends(session string, size int, ids ...string) {
	text := ""
	lines := []string{}
	for _, id := range ids {
		text += custom(id, size)
		lines = append(lines, `"id":"`+id+`"`)
	}
	// The first write to an old session is a rewrite, which is durable at once.
	l.puts(text, promised{session: session, file: "append", lines: lines, atOnce: session == "p/old"})
}

// in is a path in the directory of a session.
func (l *lossy) in(session, name string) string { return l.m.path("sessions", session, name) }

// work writes to the sessions in each way, and notes what is promised of each write.
func (l *lossy) work() {
	l.appends("p/plain", 20, "a1")
	l.appends("p/plain", 3000, "a2", "a3", "a4")
	l.puts("e0 L1\n", promised{session: "p/plain", file: "labels", lines: []string{`"label":"L1"`}})
	l.does(promised{session: "p/plain", file: "append", lines: []string{`{"targetId":"e1"}`}}, func(*promised) {
		run(l.t, "ln", "-sfn", "entries/e1.json", l.in("p/plain", "leaf"))
	})
	title := "after"
	l.puts(title+"\n", promised{session: "p/plain", file: "title", title: &title, atOnce: true}) // a rewrite too
	l.appends("p/plain", 700, "a5")
	l.puts(title+"\n", promised{session: "p/slot", file: "title", title: &title, lines: []string{`"title_change","`}})
	l.appends("p/slot", 100, "a6")
	l.appends("p/old", 100, "a7")
	l.appends("p/torn", 100, "a8")
	image := strings.Replace(bigImage(2500), "{", `{"id":"i1",`, 1)
	l.puts(image+"\n", promised{session: "p/plain", file: "append", lines: []string{`"id":"i1"`}})
	l.does(promised{lines: []string{mark(0), mark(1), `"label":"L1"`}, title: &title, whole: true, atOnce: true}, func(p *promised) {
		p.session = strings.TrimPrefix(ask(l.t, l.in("p/plain", "fork"), "e1"), "sessions/")
	})
	// A session is durable when its path is told, each of its lines with -o sync or with an fsync.
	name := ""
	l.does(promised{whole: true, atOnce: true}, func(p *promised) {
		name = strings.TrimPrefix(ask(l.t, l.m.path("new-session"), anywhere("/in/a/project/of/its/own")), "sessions/")
		p.session = name
	})
	l.appends(name, 100, "q1")
	l.appends(name, 100, "r1")
}
