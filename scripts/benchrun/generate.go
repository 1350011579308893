package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// spec says what a generated session is like.
type spec struct {
	name    string // of its agent directory
	entries int
	bytes   int64
	bad     int  // lines that are no JSON, spread over the file
	plain   bool // also write each entry to a file of its own, named as the mount names it
}

// Every store is the same in every run.
const seed = 20260216

const (
	// branchEvery: of that many entries one does not go on from the one before but from one further up.
	branchEvery = 150
	// branchDepth is how far up, in entries.
	branchDepth = 40
	scopeDir    = "--home-dev-project--"
)

var firstTime = time.Date(2026, 2, 16, 10, 20, 30, 0, time.UTC)

// session is a generated session.
type session struct {
	agent  string // its agent directory
	file   string // the session file
	dir    string // its directory, from the mount's root
	raw    string // its file, from the mount's root
	plain  string // a directory whose entries/ has its entries as plain files; "" for none
	lastID string
	spec
}

// generator writes sessions.
type generator struct {
	rng  *rand.Rand
	text text
	line []byte
	ids  []string
	seen map[uint32]bool
	now  time.Time
	turn int
	call string // id of the last tool call
}

func newGenerator(salt uint64) *generator {
	rng := rand.New(rand.NewPCG(seed, salt))
	return &generator{rng: rng, text: newText(rng), now: firstTime, seen: map[uint32]bool{}}
}

// generate writes a session into dir/<name>, and its plain files into dir/<name>-plain.
func generate(dir string, sp spec) (*session, error) {
	s := &session{spec: sp, agent: filepath.Join(dir, sp.name)}
	const id = "019c6f0e-7a11-7000-8000-000000000001"
	s.dir = filepath.Join("sessions", scopeDir, "2026-02-16T10-20-30-000Z_"+id)
	s.raw = s.dir + ".jsonl"
	s.file = filepath.Join(s.agent, s.raw)
	if sp.plain {
		s.plain = s.agent + "-plain"
		if err := os.MkdirAll(filepath.Join(s.plain, "entries"), 0o755); err != nil {
			return nil, err
		}
	}
	g := newGenerator(uint64(sp.entries))
	err := g.writeNamed(s, id, "/home/dev/project")
	s.lastID = g.ids[len(g.ids)-1]
	return s, err
}

// output is a file that is made. It keeps the first error.
type output struct {
	*bufio.Writer
	file *os.File
}

func create(name string) (output, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return output{}, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return output{bufio.NewWriterSize(f, 1<<20), f}, err
}

func (o output) Close() error { return errors.Join(o.Flush(), o.file.Close()) }

// writeNamed writes a session file with that id and working directory.
func (g *generator) writeNamed(s *session, id, cwd string) (err error) {
	w, err := create(s.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	_, _ = w.Write(g.header(id, cwd))
	for i, size := range sizes(g.rng, s.entries, s.bytes) {
		line := g.entry(size)
		_, _ = w.Write(line)
		if s.plain != "" { // what the mount shows of it, with its time and mode, so that long listings of both agree
			name := filepath.Join(s.plain, "entries", g.ids[i]+".json")
			if err := errors.Join(os.WriteFile(name, line, 0o400), os.Chtimes(name, g.now, g.now)); err != nil {
				return err
			}
		}
		if s.bad > 0 && i%(s.entries/s.bad) == 1 { // cut in its middle: what a crash leaves behind
			_, _ = w.Write(append(line[:len(line)/2], '\n'))
		}
	}
	return nil
}

func (g *generator) header(id, cwd string) []byte {
	return fmt.Appendf(nil, `{"type":"session","version":3,"id":%q,"timestamp":%q,"cwd":%q}`+"\n", id, stamp(g.now), cwd)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// entry makes the next entry's line, of about that many bytes. It is valid until the next call.
func (g *generator) entry(size int) []byte {
	g.now = g.now.Add(time.Duration(200+g.rng.IntN(20_000)) * time.Millisecond)
	parent := "null"
	if n := len(g.ids); n > 0 {
		at := n - 1
		if g.rng.IntN(branchEvery) == 0 {
			at = max(0, n-2-g.rng.IntN(branchDepth))
		}
		parent = `"` + g.ids[at] + `"`
	}
	id := g.newID()
	entryType, write := g.kind()
	b := append(g.line[:0], `{"type":"`+entryType+`","id":"`+id+`","parentId":`+parent+`,"timestamp":"`+stamp(g.now)+`",`...)
	g.line = append(write(g, b, size), "}\n"...)
	return g.line
}

func (g *generator) newID() string {
	n := g.rng.Uint32()
	for g.seen[n] {
		n = g.rng.Uint32()
	}
	g.seen[n] = true
	id := fmt.Sprintf("%08x", n)
	g.ids = append(g.ids, id)
	return id
}

// kind chooses the type of what comes next and what writes the rest of its members: a user's message, then answers and tool
// results in turn; now and then another model.
func (g *generator) kind() (entryType string, write func(g *generator, b []byte, size int) []byte) {
	g.turn++
	switch {
	case len(g.ids) == 1 || g.turn > 12 && g.rng.IntN(8) == 0:
		g.turn = 0
		return "message", (*generator).user
	case g.rng.IntN(500) == 0:
		return "model_change", (*generator).model
	case g.turn%2 == 1:
		return "message", (*generator).assistant
	}
	return "message", (*generator).toolResult
}

// fill appends text until b has size bytes, tail of them being still to come.
func (g *generator) fill(b []byte, size, tail int) []byte {
	return g.text.appendTo(b, g.rng, max(size-len(b)-tail, 1))
}

func (g *generator) millis() string { return strconv.FormatInt(g.now.UnixMilli(), 10) }

func (g *generator) user(b []byte, size int) []byte {
	b = append(b, `"message":{"role":"user","content":[{"type":"text","text":"`...)
	b = g.fill(b, size, 60)
	return append(b, `"}],"timestamp":`+g.millis()+`}`...)
}

func (g *generator) assistant(b []byte, size int) []byte {
	g.call = fmt.Sprintf("toolu_%016x%08x", g.rng.Uint64(), g.rng.Uint32())
	b = append(b, `"message":{"role":"assistant","content":[{"type":"text","text":"`...)
	b = g.fill(b, size/2, 0)
	b = append(b, `"},{"type":"toolCall","id":"`+g.call+`","name":"bash","arguments":{"command":"`...)
	b = g.fill(b, size, 420)
	b = append(b, `"}}],"api":"anthropic-messages","provider":"anthropic","model":"claude-opus-4-5","usage":{`...)
	in, out := g.rng.IntN(4000), g.rng.IntN(2000)
	b = fmt.Appendf(b, `"input":%d,"output":%d,"cacheRead":%d,"cacheWrite":0,"totalTokens":%d,`, in, out, 9*in, 10*in+out)
	b = fmt.Appendf(b, `"cost":{"input":%g,"output":%g,"cacheRead":%g,"cacheWrite":0,"total":%g}}`,
		float64(in)*5e-6, float64(out)*25e-6, float64(in)*45e-7, float64(in)*95e-7+float64(out)*25e-6)
	return append(b, `,"stopReason":"toolUse","timestamp":`+g.millis()+`}`...)
}

func (g *generator) toolResult(b []byte, size int) []byte {
	b = append(b, `"message":{"role":"toolResult","toolCallId":"`+g.call+`","toolName":"bash","content":[{"type":"text","text":"`...)
	b = g.fill(b, size, 60)
	return append(b, `"}],"isError":false,"timestamp":`+g.millis()+`}`...)
}

func (g *generator) model(b []byte, _ int) []byte {
	return append(b, `"model":"anthropic/claude-opus-4-5","role":"default"`...)
}
