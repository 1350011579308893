package fs_test

import (
	"encoding/base64"
	"encoding/json"
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
	lines   []string // each is found in one line of the file, once
	title   *string
	whole   bool   // the file is there with all of it, or not at all
	durable string // the mark from which on it must be there; "" for never
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
	record := filepath.Join(t.TempDir(), "record")
	l := &lossy{t: t, loopback: loopbackConfig{From: t.TempDir(), To: t.TempDir(), How: recorded, Record: record}.mount(t).dir, record: record, sync: sync}
	require.NoError(t, os.MkdirAll(agent{t, l.loopback}.path(""), 0o755))
	write(agent{t, l.loopback})
	shell(t, `find "$1" -print0 | xargs -0 sync`, l.loopback)
	l.mark("made")
	return l
}

// ops are the changes that were recorded.
func (l *lossy) ops() (ops []diskOp) {
	f, err := os.Open(l.record)
	require.NoError(l.t, err)
	defer f.Close()
	for lines := json.NewDecoder(f); ; {
		var op diskOp
		if err := lines.Decode(&op); err == io.EOF {
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

// does carries out a write, which is durable afterwards: at once, or with an fsync of a file.
func (l *lossy) does(name string, p promised, atOnce bool, fsync string, do func() promised) {
	if do != nil {
		more := do() // what only its answer tells
		if more.session != "" {
			p.session = more.session
		}
	}
	name = strings.ReplaceAll(name, "/", " ")
	l.mark("done " + name)
	if p.durable = "done " + name; !atOnce && !l.sync {
		f, err := os.OpenFile(l.m.path("sessions", p.session, fsync), os.O_RDWR, 0)
		require.NoError(l.t, err)
		require.NoError(l.t, f.Sync())
		require.NoError(l.t, f.Close())
		p.durable = "synced " + name
		l.mark(p.durable)
	}
	l.promises = append(l.promises, p)
}

// custom is a line for append with an id.
func custom(id string, size int) string {
	return `{"type":"custom","customType":"t","id":"` + id + `","data":"` + strings.Repeat("x", size) + `"}` + "\n"
}

// appends appends entries of such ids.
func (l *lossy) appends(session string, size int, ids ...string) {
	text, lines := "", []string{}
	for _, id := range ids {
		text += custom(id, size)
		lines = append(lines, `"id":"`+id+`"`)
	}
	// The first write to an old session is a rewrite, which is durable at once.
	l.does("append "+ids[0], promised{session: session, lines: lines}, session == "p/old", "append", func() promised {
		require.NoError(l.t, put(l.in(session, "append"), text))
		return promised{}
	})
}

func (l *lossy) title(session, title string) {
	p := promised{session: session, title: &title}
	if session == "p/slot" {
		p.lines = []string{`"title_change","`}
	}
	l.does("title "+session, p, session == "p/plain", "append", func() promised {
		require.NoError(l.t, put(l.in(session, "title"), title+"\n"))
		return promised{}
	})
}

// in is a path in the directory of a session.
func (l *lossy) in(session, name string) string { return l.m.path("sessions", session, name) }

// newSession makes a session and returns its name.
func (l *lossy) newSession(cwd string) string {
	return strings.TrimPrefix(ask(l.t, l.m.path("new-session"), anywhere(cwd)), "sessions/")
}

func (l *lossy) work() {
	question := `{"type":"message","id":"%","message":{"role":"user","content":"?"}}`
	answer := `{"type":"message","id":"%","message":{"role":"assistant","content":[{"type":"text","text":"!"}]}}`
	withID := func(line, id string) string { return strings.Replace(line, "%", id, 1) }

	l.appends("p/plain", 20, "a1")
	l.appends("p/plain", 3000, "a2", "a3", "a4")
	l.does("label", promised{session: "p/plain", lines: []string{`"label":"L1"`}}, false, "append", func() promised {
		require.NoError(l.t, put(l.in("p/plain", "labels"), "e0 L1\n"))
		return promised{}
	})
	l.does("leaf", promised{session: "p/plain", lines: []string{`{"targetId":"e1"}`}}, false, "append", func() promised {
		run(l.t, "ln", "-sfn", "entries/e1.json", l.in("p/plain", "leaf"))
		return promised{}
	})
	l.title("p/plain", "after")
	l.appends("p/plain", 700, "a5")
	l.title("p/slot", "after")
	l.appends("p/slot", 100, "a6")
	l.appends("p/old", 100, "a7")
	l.appends("p/torn", 100, "a8")
	image := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("image", 500)))
	l.does("image", promised{session: "p/plain", lines: []string{`"id":"i1"`}}, false, "append", func() promised {
		require.NoError(l.t, put(l.in("p/plain", "append"),
			withID(strings.Replace(question, `"?"`, `[{"type":"image","data":"`+image+`","mimeType":"image/png"}]`, 1), "i1")+"\n"))
		return promised{}
	})
	title := "after"
	l.does("fork", promised{lines: []string{mark(0), mark(1), `"label":"L1"`}, title: &title, whole: true}, true, "", func() promised {
		return promised{session: strings.TrimPrefix(ask(l.t, l.in("p/plain", "fork"), "e1"), "sessions/")}
	})
	// A session is durable when its path is told, each of its lines with -o sync or with an fsync.
	name := ""
	l.does("new", promised{whole: true}, true, "", func() promised {
		name = l.newSession("/in/a/project/of/its/own")
		return promised{session: name}
	})
	for id, line := range map[string]string{"q1": question, "r1": answer} {
		l.does("in the new one, "+id, promised{session: name, lines: []string{`"id":"` + id + `"`}}, false, "append", func() promised {
			require.NoError(l.t, put(l.in(name, "append"), withID(line, id)+"\n"))
			return promised{}
		})
	}
}
