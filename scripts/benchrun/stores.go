package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The stores are made when the first row asks for them, in the run's temporary directory, so that they
// and the plain files beside them lie on one disk.

// Sizes of the full run; with -small all are divided.
const (
	megabyte     = 1_000_000
	smallDivisor = 20
)

// session returns the session of a specification, made once.
func (b *bench) session(sp spec) *session {
	if b.small {
		sp.entries /= smallDivisor
		sp.bytes /= smallDivisor
		sp.bad = (sp.bad + smallDivisor - 1) / smallDivisor
	}
	if s := b.sessions[sp.name]; s != nil {
		return s
	}
	b.log("making %s: %d entries, %d MB", sp.name, sp.entries, sp.bytes/megabyte)
	s, err := generate(b.dir, sp)
	b.must(err)
	settle()
	b.sessions[sp.name] = s
	return s
}

// settle has the kernel write what was made, so that it does not do so while something is timed. The
// pages stay in its cache.
func settle() { unix.Sync() }

// The sessions that more than one row uses.
var (
	longSession   = spec{name: "long", entries: 20_000, bytes: 233 * megabyte, bad: 20, plain: true}
	middleSession = spec{name: "middle", entries: 3_816, bytes: 25 * megabyte, plain: true}
	hugeSession   = spec{name: "large", entries: 15_000, bytes: 250 * megabyte}
)

// shrink divides a count in a small run.
func (b *bench) shrink(n int) int {
	if b.small {
		return max(1, n/smallDivisor)
	}
	return n
}

// manySessions makes an agent directory of n sessions of a few entries each.
func (b *bench) manySessions(n, entries int, bytes int64) (agent string) {
	name := fmt.Sprintf("many-%d-%d", n, bytes/1000)
	agent = filepath.Join(b.dir, name)
	if _, err := os.Stat(agent); err == nil {
		return agent
	}
	b.log("making %s: %d sessions, %d MB", name, n, bytes/megabyte)
	g := newGenerator(uint64(n))
	for i, size := range sizes(g.rng, n, bytes) {
		// Scopes of 200 sessions: one directory of thousands would be an odd store.
		cwd := fmt.Sprintf("/home/dev/project-%d", i/200)
		scope := fmt.Sprintf("--home-dev-project-%d--", i/200)
		g.ids, g.turn = nil, 0
		id := fmt.Sprintf("019c6f0e-7a11-7000-8000-%012x", i)
		share := float64(size) / float64(bytes) // of all entries
		s := &session{spec: spec{entries: max(2, int(share*float64(n*entries))), bytes: int64(size)}}
		s.file = filepath.Join(agent, "sessions", scope, g.now.Format("2006-01-02T15-04-05-000Z")+"_"+id+".jsonl")
		b.must(g.writeNamed(s, id, cwd))
	}
	settle()
	return agent
}

// Sizes of the store of many sessions in the full run.
const (
	storeSessions = 700
	storeEntries  = 200
	storeBytes    = 1600 * megabyte
)

// store is the store of many sessions, its files, and what it is called.
func (b *bench) store() (agent string, files []string, what string) {
	n, bytes := b.shrink(storeSessions), int64(b.shrink(storeBytes))
	agent = b.manySessions(n, storeEntries, bytes)
	files, err := filepath.Glob(filepath.Join(agent, "sessions/*/*.jsonl"))
	if b.must(err); len(files) != n {
		b.fail("%d sessions instead of %d", len(files), n)
	}
	return agent, files, fmt.Sprintf("%d sessions, %d MB", n, bytes/megabyte)
}
