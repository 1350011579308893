package main

import (
	"crypto/sha256"
	"encoding/hex"
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
func (b *bench) session(sp spec) (*session, error) {
	if b.small {
		sp.entries /= smallDivisor
		sp.bytes /= smallDivisor
		sp.bad = (sp.bad + smallDivisor - 1) / smallDivisor
	}
	if s := b.sessions[sp.name]; s != nil {
		return s, nil
	}
	b.log("making %s: %d entries, %d MB", sp.name, sp.entries, sp.bytes/megabyte)
	s, err := generate(b.dir, sp)
	if err != nil {
		return nil, err
	}
	settle()
	b.sessions[sp.name] = s
	return s, nil
}

// settle has the kernel write what was made, so that it does not do so while something is timed. The
// pages stay in its cache.
func settle() { unix.Sync() }

// The sessions that more than one row uses.
func (b *bench) longSession() (*session, error) {
	return b.session(spec{name: "long", entries: 20_000, bytes: 233 * megabyte, bad: 20, plain: true})
}

func (b *bench) middleSession() (*session, error) {
	return b.session(spec{name: "middle", entries: 3_816, bytes: 25 * megabyte, plain: true})
}

// hugeSession is 2.5 GB with -large.
func (b *bench) hugeSession() (*session, error) {
	if b.large {
		return b.session(spec{name: "huge", entries: 150_000, bytes: 2500 * megabyte})
	}
	return b.session(spec{name: "large", entries: 15_000, bytes: 250 * megabyte})
}

// shrink divides a count in a small run.
func (b *bench) shrink(n int) int {
	if b.small {
		return max(1, n/smallDivisor)
	}
	return n
}

// manySessions makes an agent directory of n sessions of a few entries each.
func (b *bench) manySessions(n, entries int, bytes int64) (agent string, err error) {
	name := fmt.Sprintf("many-%d-%d", n, bytes/1000)
	agent = filepath.Join(b.dir, name)
	if _, err := os.Stat(agent); err == nil {
		return agent, nil
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
		if err := g.writeNamed(s, id, cwd); err != nil {
			return "", err
		}
	}
	settle()
	return agent, nil
}

// blob makes an agent directory with one blob of that size, named as the client does.
func (b *bench) blob(size int64) (agent, name string, err error) {
	agent = filepath.Join(b.dir, "blob")
	dir := filepath.Join(agent, "blobs")
	if found, err := os.ReadDir(dir); err == nil && len(found) == 1 {
		return agent, found[0].Name(), nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", err
	}
	b.log("making a blob of %d MB", size/megabyte)
	f, err := os.Create(filepath.Join(dir, "new"))
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	g := newGenerator(1)
	hash := sha256.New()
	chunk := make([]byte, 1<<20)
	for left := size; left > 0; left -= int64(len(chunk)) {
		chunk = chunk[:min(int64(len(chunk)), left)]
		for i := 0; i+8 <= len(chunk); i += 8 {
			n := g.rng.Uint64()
			for k := range 8 {
				chunk[i+k] = byte(n >> (8 * k))
			}
		}
		hash.Write(chunk)
		if _, err := f.Write(chunk); err != nil {
			return "", "", err
		}
	}
	name = hex.EncodeToString(hash.Sum(nil))
	settle()
	return agent, name, os.Rename(f.Name(), filepath.Join(dir, name))
}
