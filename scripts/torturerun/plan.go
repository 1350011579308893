package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The sessions of a run, and what may happen to each: so that the check knows their content.
//
//   - own sessions, some for each client: it alone writes to them; others move their files away and back.
//   - shared ones: all clients append and label, others append beside the mounts, with the client's lock and without.
//   - rewritten ones: clients append, others append and replace the file, all under the lock.
//   - turns: clients and the real client append in turns, others under the lock.
//   - damaged ones: others do as they like. Here only crashes, hangs and unexpected errors count.
const (
	sharedAtOnce  = 6
	sharedSets    = 10  // a client goes to the next ones after sharedFor commands
	sharedFor     = 250 // so that none grows too long
	sharedMany    = sharedAtOnce * sharedSets
	rewrittenMany = 4
	turnsMany     = 3
	damagedMany   = 8
	manyOthers    = 4
	// ownEntries is how many entries an own session gets before it is left alone.
	ownEntries = 1200
)

// ownSession returns the name of one of the first two sessions of a client: first or slot.
func ownSession(client int, name string) string {
	return fmt.Sprintf("sessions/--torture-own-%d--/%s", client, name)
}

func sharedSession(n uint64) string    { return sessionOf("shared", n%sharedMany) }
func rewrittenSession(n uint64) string { return sessionOf("rewritten", n%rewrittenMany) }
func turnsSession(n uint64) string     { return sessionOf("turns", n%turnsMany) }
func damagedSession(n uint64) string   { return sessionOf("damaged", n%damagedMany) }

// sessionOf returns the name of the n-th session of a kind.
func sessionOf(kind string, n uint64) string {
	return fmt.Sprintf("sessions/--torture-%s--/%s-%d", kind, kind, n)
}

// makeStore makes the sessions of the agent directory, some of them several times over.
func (o *options) makeStore() error {
	var err error
	for c := range o.clients {
		err = errors.Join(err, o.makeSession(ownSession(c, "first")), o.makeSession(ownSession(c, "slot")))
	}
	for n := range uint64(sharedMany) { // more than there are of any other kind
		for _, name := range []string{sharedSession(n), rewrittenSession(n), turnsSession(n), damagedSession(n)} {
			err = errors.Join(err, o.makeSession(name))
		}
	}
	return err
}

// makeSession makes a session with two entries.
func (o *options) makeSession(name string) error {
	file := o.file(name)
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(firstText(name)), 0o600)
}

// rootID and answerID are the entries that sessions begin with.
const rootID, answerID = "first-question", "first-answer"

// firstText returns the text of a new session: a header, behind a title slot if its name is slot, and two entries. The
// question of a session that nobody damages has the secret.
func firstText(name string) string {
	project := path.Base(path.Dir(name))
	cwd := "/torture/" + strings.TrimSuffix(strings.TrimPrefix(project, "--torture-"), "--")
	header := fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-02-16T10:20:30.000Z","cwd":%q}`,
		path.Base(project)+"-"+path.Base(name), cwd) + "\n"
	if path.Base(name) == "slot" {
		const slotSize = 256 // bytes, which the client keeps for a title
		begin := `{"type":"title","v":1,"title":"","updatedAt":"2026-02-16T10:20:30.000Z","pad":"`
		const end = "\"}\n"
		blanks := slotSize - len(begin) - len(end)
		header = begin + strings.Repeat(" ", blanks) + end + header
	}
	question := entry{id: rootID, what: "user", size: 20}.line("", true)
	answer := entry{id: answerID, what: "assistant", size: 20}.line(rootID, true)
	if !isDamaged(name) {
		question = strings.Replace(question, "first-question first", "first-question "+secret, 1)
	}
	return header + question + answer
}

// entry is one to be appended. Its text is made of its id, so that a torn or mixed one is noticed.
type entry struct {
	id   string
	what string // custom, user, assistant
	size int
}

// payload returns the text of an entry: its id again and again, size bytes.
func payload(id string, size int) string {
	word := id + " "
	text := strings.Repeat(word, size/len(word)+1)
	return text[:size]
}

// lines are entries in JSON: of an id, a beginning that the mount fills in where it is missing, and a text.
var lines = map[string]string{
	"custom": `{"id":%q,%s"type":"custom","customType":"torture","data":%q}`,
	"user":   `{"id":%q,%s"type":"message","message":{"role":"user","content":[{"type":"text","text":%q}],"timestamp":1771237230000}}`,
	"assistant": `{"id":%q,%s"type":"message","message":{"role":"assistant","content":[{"type":"text","text":%q}],"timestamp":1771237230000,` +
		`"api":"anthropic-messages","provider":"anthropic","model":"m","stopReason":"stop","usage":{"input":1,"output":1,"cacheRead":0,` +
		`"cacheWrite":0,"totalTokens":2,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}}`,
}

// line returns the entry in JSON, with its parent, "" for none, and its time. Where the mount is to fill these in, whole
// is false.
func (e entry) line(parent string, whole bool) string {
	begin := ""
	if whole && parent == "" {
		begin = `"timestamp":"2026-02-16T10:20:31.000Z","parentId":null,`
	} else if whole {
		begin = fmt.Sprintf(`"timestamp":"2026-02-16T10:20:31.000Z","parentId":%q,`, parent)
	}
	return fmt.Sprintf(lines[e.what], e.id, begin, payload(e.id, e.size)) + "\n"
}

// draw is what a command is made of. Each command draws as many numbers, whatever became of those before it: the same
// seed gives the same commands.
type draw struct{ kind, session, target, size, mount uint64 }

// newDrawer returns the source of the commands of a program.
func newDrawer(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// draw draws the numbers of the next command.
func (p *program) draw() draw {
	return draw{
		kind:    p.drawer.Uint64(),
		session: p.drawer.Uint64(),
		target:  p.drawer.Uint64(),
		size:    p.drawer.Uint64(),
		mount:   p.drawer.Uint64(),
	}
}

// sizes are those of texts: mostly small, and one in 256 large.
var sizes = slices.Concat(times(80, 10), times(100, 300), times(55, 5000), times(20, 15_000), times(1, 200_000))

func (d draw) mountOf() string { return mounts[d.mount%uint64(len(mounts))] }

// pick returns an element of a list by a number that was drawn.
func pick[T any](list []T, n uint64) T { return list[n%uint64(len(list))] }

// times returns a command n times, for a list in which it is to be drawn as often.
func times[T any](n int, do T) []T { return slices.Repeat([]T{do}, n) }
