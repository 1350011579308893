package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// spec says what a generated session is like.
type spec struct {
	name    string // of its agent directory
	entries int
	bytes   int
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
)

// idOf and cwdOf are the id and the working directory of one of many sessions. A directory has 200: one of thousands would be an
// odd store.
func idOf(i int) string  { return fmt.Sprintf("019c6f0e-7a11-7000-8000-%012x", i) }
func cwdOf(i int) string { return fmt.Sprintf("/home/dev/project-%d", i/200) }

var firstTime = time.Date(2026, 2, 16, 10, 20, 30, 0, time.UTC)

// session is a generated session.
type session struct {
	agent  string // its agent directory
	file   string // the session file
	dir    string // its directory, from the mount's root
	raw    string // its file, from the mount's root
	lastID string
	spec
}

// plainDir is a directory whose entries/ has the entries as plain files.
func (s *session) plainDir() string { return s.agent + "-plain" }

// generator writes sessions.
type generator struct {
	rng  *rand.Rand
	text text
	line []byte
	ids  []string
	made uint32 // entries
	now  time.Time
	turn int
	call string // id of the last tool call
}

func newGenerator(salt int) *generator {
	g := &generator{rng: rand.New(rand.NewPCG(seed, uint64(salt))), now: firstTime}
	for range textLines {
		g.text = append(g.text, codeLine(g.rng))
	}
	return g
}

// session writes a session with that id and working directory, and its plain files into a directory beside the agent directory.
func (g *generator) session(agent, id, cwd string, sp spec) (*session, error) {
	s := &session{spec: sp, agent: agent}
	s.dir = filepath.Join("sessions", "-"+strings.ReplaceAll(cwd, "/", "-")+"--", g.now.Format("2006-01-02T15-04-05-000Z")+"_"+id)
	s.raw = s.dir + ".jsonl"
	s.file = filepath.Join(s.agent, s.raw)
	g.ids = nil
	g.turn = 0
	text := bytes.NewBufferString(fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":%q,"cwd":%q}`+"\n", id, stamp(g.now), cwd))
	for i, size := range sizes(g.rng, s.entries, s.bytes) {
		line := g.entry(size)
		text.Write(line)
		if s.plain { // the text that the mount shows, with its time and mode, so that long listings of both agree
			name := filepath.Join(s.plainDir(), "entries", g.ids[i]+".json")
			if err := errors.Join(write(name, line, 0o400), os.Chtimes(name, g.now, g.now)); err != nil {
				return nil, err
			}
		}
		if s.bad > 0 && i%(s.entries/s.bad) == 1 { // cut in its middle: what a crash leaves behind
			text.Write(append(line[:len(line)/2], '\n'))
		}
	}
	s.lastID = g.ids[len(g.ids)-1]
	return s, write(s.file, text.Bytes(), 0o600)
}

// write makes a file and its directory.
func write(name string, text []byte, mode os.FileMode) error {
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, text, mode))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// entry makes the next entry's line, of about that many bytes: a user's message, then answers and tool results in turn, and now
// and then another model. It is valid until the next call.
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
	g.turn++
	kind := "message"
	more := ""
	rng := g.rng
	millis := g.now.UnixMilli()
	switch {
	case len(g.ids) == 0 || g.turn > 12 && rng.IntN(8) == 0:
		g.turn = 0
		more = fmt.Sprintf(`"message":{"role":"user","content":[{"type":"text","text":"%s"}],"timestamp":%d}`, g.text.draw(rng, size-190), millis)
	case rng.IntN(500) == 0:
		kind = "model_change"
		more = `"model":"anthropic/claude-opus-4-5","role":"default"`
	case g.turn%2 == 1:
		g.call = fmt.Sprintf("toolu_%016x%08x", rng.Uint64(), rng.Uint32())
		in := rng.IntN(4000)
		out := rng.IntN(2000)
		more = fmt.Sprintf(`"message":{"role":"assistant","content":[{"type":"text","text":"%s"},`+
			`{"type":"toolCall","id":%q,"name":"bash","arguments":{"command":"%s"}}],"api":"anthropic-messages","provider":"anthropic",`+
			`"model":"claude-opus-4-5","usage":{"input":%d,"output":%d,"cacheRead":%d,"cacheWrite":0,"totalTokens":%d,`+
			`"cost":{"input":%g,"output":%g,"cacheRead":%g,"cacheWrite":0,"total":%g}},"stopReason":"toolUse","timestamp":%d}`,
			g.text.draw(rng, size/2-100), g.call, g.text.draw(rng, size/2-550), in, out, 9*in, 10*in+out,
			float64(in)*5e-6, float64(out)*25e-6, float64(in)*45e-7, float64(in)*95e-7+float64(out)*25e-6, millis)
	default:
		more = fmt.Sprintf(`"message":{"role":"toolResult","toolCallId":%q,"toolName":"bash","content":[{"type":"text","text":"%s"}],`+
			`"isError":false,"timestamp":%d}`, g.call, g.text.draw(rng, size-290), millis)
	}
	g.made++
	id := fmt.Sprintf("%08x", g.made*2654435761) // an odd factor: no two are the same
	g.ids = append(g.ids, id)
	g.line = fmt.Appendf(g.line[:0], `{"type":%q,"id":%q,"parentId":%s,"timestamp":%q,%s}`+"\n", kind, id, parent, stamp(g.now), more)
	return g.line
}
