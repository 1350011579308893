package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// The sessions of a run, and what may happen to each: so that the check knows what must be in it.
//
//   - own sessions, some for each client: it alone writes to them; others move them, and their directories, away and
//     back.
//   - shared ones: all clients append and label, others append beside the mounts, with the client's lock and without.
//   - rewritten ones: clients append and set the title, others append and replace the file, all under the lock.
//   - turns: clients and the real client append in turns, others under the lock.
//   - damaged ones: others do what they like. Here only crashes, hangs and unexpected errors count.
const (
	sharedAtOnce  = 6
	sharedSets    = 10  // a client goes to the next ones after sharedFor commands
	sharedFor     = 250 // so that none grows too long
	rewrittenMany = 4
	turnsMany     = 3
	damagedMany   = 8
	manyOthers    = 4
	// ownEntries is how many entries an own session gets before it is left alone.
	ownEntries = 1200
)

func ownProject(client int) string { return fmt.Sprintf("sessions/--torture-own-%d--", client) }

func sharedSession(n int) string { return fmt.Sprintf("sessions/--torture-shared--/shared-%d", n) }
func rewrittenSession(n int) string {
	return fmt.Sprintf("sessions/--torture-rewritten--/rewritten-%d", n)
}
func turnsSession(n int) string   { return fmt.Sprintf("sessions/--torture-turns--/turns-%d", n) }
func damagedSession(n int) string { return fmt.Sprintf("sessions/--torture-damaged--/damaged-%d", n) }

// makeStore makes the agent directory.
func makeStore(o *options) error {
	var sessions []string
	for c := range o.clients {
		sessions = append(sessions, path.Join(ownProject(c), "first"), path.Join(ownProject(c), "slot"))
	}
	for n := range sharedAtOnce * sharedSets {
		sessions = append(sessions, sharedSession(n))
	}
	for n := range rewrittenMany {
		sessions = append(sessions, rewrittenSession(n))
	}
	for n := range turnsMany {
		sessions = append(sessions, turnsSession(n))
	}
	for n := range damagedMany {
		sessions = append(sessions, damagedSession(n))
	}
	for _, dir := range []string{"blobs", "terminal-sessions", "archive/sessions"} {
		if err := os.MkdirAll(filepath.Join(o.source(), dir), 0o700); err != nil {
			return err
		}
	}
	for _, s := range sessions {
		if err := writeSession(filepath.Join(o.source(), s+".jsonl"), s); err != nil {
			return err
		}
	}
	return nil
}

// writeSession makes a session with two entries.
func writeSession(file, name string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(firstText(name)), 0o600)
}

// rootID and answerID are the entries that sessions begin with.
const rootID, answerID = "first-question", "first-answer"

func firstText(name string) string {
	project := path.Base(path.Dir(name))
	cwd := "/torture/" + strings.TrimSuffix(strings.TrimPrefix(project, "--torture-"), "--")
	header := fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-02-16T10:20:30.000Z","cwd":%q}`,
		path.Base(project)+"-"+path.Base(name), cwd) + "\n"
	if path.Base(name) == "slot" {
		line := `{"type":"title","v":1,"title":"","updatedAt":"2026-02-16T10:20:30.000Z","pad":"`
		header = line + strings.Repeat(" ", 256-len(line)-3) + "\"}\n" + header
	}
	question, answer := newEntry(rootID, "user", 20, 0), newEntry(answerID, "assistant", 20, 0)
	return header + question.line("", true) + answer.line(rootID, true)
}

// entry is one to be appended. Its text is made of its id, so that a torn or mixed one is noticed.
type entry struct {
	id    string
	what  string // custom, user, assistant
	size  int
	image int // bytes; 0 for none
}

func newEntry(id, what string, size, image int) entry {
	return entry{id: id, what: what, size: size, image: image}
}

// payload is the text of an entry.
func payload(id string, size int) string {
	return strings.Repeat(id+" ", size/(len(id)+1)+1)[:size]
}

// imageOf is the content of the image of an entry.
func imageOf(id string, size int) []byte {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	rnd := rand.New(rand.NewPCG(h.Sum64(), 0))
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	return data
}

// line is the entry in JSON. Where the mount is to fill in the rest, whole is false.
func (e entry) line(under string, whole bool) string {
	v := map[string]any{"id": e.id, "type": "message"}
	text := payload(e.id, e.size)
	blocks := []any{map[string]any{"type": "text", "text": text}}
	if e.image > 0 {
		blocks = append(blocks, map[string]any{
			"type": "image", "mimeType": "image/png", "data": base64.StdEncoding.EncodeToString(imageOf(e.id, e.image)),
		})
	}
	switch e.what {
	case "user":
		v["message"] = map[string]any{"role": "user", "content": blocks, "timestamp": 1771237230000}
	case "assistant":
		zero := map[string]any{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
		v["message"] = map[string]any{
			"role": "assistant", "content": blocks, "timestamp": 1771237230000, "api": "anthropic-messages", "provider": "anthropic",
			"model": "m", "stopReason": "stop",
			"usage": map[string]any{"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2, "cost": zero},
		}
	default:
		v["type"], v["customType"], v["data"] = "custom", "torture", text
	}
	if whole {
		v["timestamp"], v["parentId"] = "2026-02-16T10:20:31.000Z", nil
		if under != "" {
			v["parentId"] = under
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

// draw is what a command is made of. Each command draws as many numbers, whatever became of those before it: the same
// seed gives the same commands.
type draw struct{ kind, session, target, size, mount uint64 }

type drawer struct{ *rand.Rand }

// newDrawer returns the source of the commands of a process.
func newDrawer(o *options) drawer {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s-%d", o.role, o.number)
	return drawer{rand.New(rand.NewPCG(o.seed, h.Sum64()))}
}

func (d drawer) next() draw {
	return draw{d.Uint64(), d.Uint64(), d.Uint64(), d.Uint64(), d.Uint64()}
}

// sizeOf is the size of a text: mostly small.
func (d draw) sizeOf() int {
	n := int(d.size >> 8)
	switch k := d.size % 256; {
	case k < 80:
		return 10
	case k < 180:
		return 300
	case k < 235:
		return 5000
	case k < 254:
		return 15_000 + n%5000
	}
	return 200_000
}

func (d draw) mountOf() string { return mounts[d.mount%uint64(len(mounts))] }

func pick[T any](list []T, n uint64) T { return list[n%uint64(len(list))] }

// weighted is a command and how often it is drawn.
type weighted[T any] struct {
	weight uint64
	do     T
}

func choose[T any](table []weighted[T], n uint64) T {
	sum := uint64(0)
	for _, w := range table {
		sum += w.weight
	}
	n %= sum
	for _, w := range table {
		if n < w.weight {
			return w.do
		}
		n -= w.weight
	}
	panic("unreachable")
}
