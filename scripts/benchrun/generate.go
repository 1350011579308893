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

// spec describes a generated session.
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

// idOf returns the id of one of many sessions.
func idOf(i int) string { return fmt.Sprintf("019c6f0e-7a11-7000-8000-%012x", i) }

// cwdOf returns the working directory of a session: a directory has 200 of them, as one of thousands would be an odd
// store.
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

// newGenerator returns a generator, which makes the same sessions each time for the same salt.
func newGenerator(salt int) *generator {
	g := &generator{rng: rand.New(rand.NewPCG(seed, uint64(salt))), now: firstTime}
	for range textLines {
		g.text = append(g.text, codeLine(g.rng))
	}
	return g
}

// session writes a session with an id and a working directory into an agent directory, and its plain files into a
// directory beside that.
func (g *generator) session(agent, id, cwd string, sp spec) (*session, error) {
	s := &session{spec: sp, agent: agent}
	project := "-" + strings.ReplaceAll(cwd, "/", "-") + "--"
	name := g.now.Format("2006-01-02T15-04-05-000Z") + "_" + id
	s.dir = filepath.Join("sessions", project, name)
	s.raw = s.dir + ".jsonl"
	s.file = filepath.Join(s.agent, s.raw)
	g.ids = nil
	g.turn = 0
	var text bytes.Buffer
	fmt.Fprintf(&text, `{"type":"session","version":3,"id":%q,"timestamp":%q,"cwd":%q}`+"\n", id, stamp(g.now), cwd)
	for i, size := range sizes(g.rng, s.entries, s.bytes) {
		line := g.entry(size)
		text.Write(line)
		if s.plain { // the text that the mount shows, with its time and mode, so that long listings of both agree
			name := filepath.Join(s.plainDir(), "entries", g.ids[i]+".json")
			err := errors.Join(write(name, line, 0o400), os.Chtimes(name, g.now, g.now))
			if err != nil {
				return nil, err
			}
		}
		if s.bad > 0 && i%(s.entries/s.bad) == 1 { // cut in its middle, as by a crash
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

// stamp returns a time as records have it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// entry makes the next entry's line, of about size bytes: a user's message, then answers and tool results in turn, and now
// and then another model. It is valid until the next call. The order of the draws makes the store what it is in each run.
func (g *generator) entry(size int) []byte {
	g.now = g.now.Add(time.Duration(200+g.rng.IntN(20_000)) * time.Millisecond)
	parent := g.parent()
	g.turn++
	typ := "message"
	members := ""
	isFirst := len(g.ids) == 0
	switch {
	case isFirst || g.turn > 12 && g.rng.IntN(8) == 0: // a prompt has twelve answers and results, and some more
		g.turn = 0
		members = g.prompt(size)
	case g.rng.IntN(500) == 0:
		typ = "model_change"
		members = `"model":"anthropic/claude-opus-4-5","role":"default"`
	case g.turn%2 == 1:
		members = g.answer(size)
	default:
		members = g.result(size)
	}
	g.made++
	id := fmt.Sprintf("%08x", g.made*2654435761) // an odd factor: no two are the same
	g.ids = append(g.ids, id)
	g.line = fmt.Appendf(g.line[:0], `{"type":%q,"id":%q,"parentId":%s,"timestamp":%q,%s}`+"\n", typ, id, parent, stamp(g.now), members)
	return g.line
}

// parent returns the parent of the next entry in JSON: mostly the entry before it, now and then one further up.
func (g *generator) parent() string {
	count := len(g.ids)
	if count == 0 {
		return "null"
	}
	index := count - 1
	if g.rng.IntN(branchEvery) == 0 {
		index = max(0, count-2-g.rng.IntN(branchDepth))
	}
	return `"` + g.ids[index] + `"`
}

// prompt returns the members of a prompt. The numbers that are taken from size, here and in answer and result, are for
// the rest of the line.
func (g *generator) prompt(size int) string {
	text := g.text.draw(g.rng, size-190)
	return fmt.Sprintf(`"message":{"role":"user","content":[{"type":"text","text":"%s"}],"timestamp":%d}`, text, g.now.UnixMilli())
}

// answer returns the members of an answer with a call of a tool. It keeps the id of the call for the result.
func (g *generator) answer(size int) string {
	g.call = fmt.Sprintf("toolu_%016x%08x", g.rng.Uint64(), g.rng.Uint32())
	in := g.rng.IntN(4000)
	out := g.rng.IntN(2000)
	cacheRead := 9 * in
	text := g.text.draw(g.rng, size/2-100)
	command := g.text.draw(g.rng, size/2-550)
	inCost := float64(in) * 5e-6
	outCost := float64(out) * 25e-6
	cacheCost := float64(in) * 45e-7
	total := float64(in)*95e-7 + outCost
	return fmt.Sprintf(`"message":{"role":"assistant","content":[{"type":"text","text":"%s"},`+
		`{"type":"toolCall","id":%q,"name":"bash","arguments":{"command":"%s"}}],"api":"anthropic-messages","provider":"anthropic",`+
		`"model":"claude-opus-4-5","usage":{"input":%d,"output":%d,"cacheRead":%d,"cacheWrite":0,"totalTokens":%d,`+
		`"cost":{"input":%g,"output":%g,"cacheRead":%g,"cacheWrite":0,"total":%g}},"stopReason":"toolUse","timestamp":%d}`,
		text, g.call, command, in, out, cacheRead, in+out+cacheRead, inCost, outCost, cacheCost, total, g.now.UnixMilli())
}

// result returns the members of the result of the last call.
func (g *generator) result(size int) string {
	text := g.text.draw(g.rng, size-290)
	return fmt.Sprintf(`"message":{"role":"toolResult","toolCallId":%q,"toolName":"bash","content":[{"type":"text","text":"%s"}],`+
		`"isError":false,"timestamp":%d}`, g.call, text, g.now.UnixMilli())
}
