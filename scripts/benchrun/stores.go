package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The stores are made when the first row asks for them, in the run's temporary directory, so that they
// and the plain files beside them lie on one disk.

const megabyte = 1_000_000

// session returns the session of a specification, made once.
func (b *bench) session(sp spec) *session {
	known := b.sessions[sp.name]
	if known != nil {
		return known
	}
	sp.entries = b.shrink(sp.entries)
	sp.bytes = b.shrink(sp.bytes)
	sp.bad /= b.divisor
	b.log("making %s: %d entries, %d MB", sp.name, sp.entries, sp.bytes/megabyte)
	s, err := newGenerator(sp.entries).session(filepath.Join(b.dir, sp.name), idOf(0), cwdOf(0), sp)
	b.must(err)
	settle()
	b.sessions[sp.name] = s
	return s
}

// settle has the kernel write the new files now, so that it does not do so while something is timed. The
// pages stay in its cache.
func settle() { unix.Sync() }

// The sessions that more than one row uses.
var (
	longSession   = spec{name: "long", entries: 20_000, bytes: 233 * megabyte, bad: 20, plain: true}
	middleSession = spec{name: "middle", entries: 3_816, bytes: 25 * megabyte, plain: true}
	hugeSession   = spec{name: "large", entries: 15_000, bytes: 250 * megabyte}
)

// shrink divides a size of the full run in a small one.
func (b *bench) shrink(n int) int { return max(1, n/b.divisor) }

// manySessions makes an agent directory of n sessions, of so many entries each on average and so many bytes in all. It
// makes each one once.
func (b *bench) manySessions(n, entries, bytes int) (agent string) {
	name := fmt.Sprintf("many-%d-%d", n, bytes/1000)
	agent = filepath.Join(b.dir, name)
	if _, err := os.Stat(agent); err == nil {
		return agent
	}
	b.log("making %s: %d sessions, %d MB", name, n, bytes/megabyte)
	g := newGenerator(n)
	for i, size := range sizes(g.rng, n, bytes) {
		share := float64(size) / float64(bytes) // of all entries
		count := int(share * float64(n*entries))
		_, err := g.session(agent, idOf(i), cwdOf(i), spec{entries: max(2, count), bytes: size})
		b.must(err)
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

// Words of a few sessions of the store, and of no other: the generator does not know them.
const (
	rareWord   = "zygomorphic"
	rareFile   = "/home/dev/project-0/deep/syzygy.go"
	rareCopies = 5
)

// store returns the agent directory of many sessions, its session files, and its description.
// In some a rare word is said and a rare file edited. The first call makes it.
func (b *bench) store() (agent string, files []string, what string) {
	n := b.shrink(storeSessions)
	bytes := b.shrink(storeBytes)
	agent = b.manySessions(n, storeEntries, bytes)
	files, err := filepath.Glob(filepath.Join(agent, "sessions/*/*.jsonl"))
	b.must(err)
	if len(files) != n {
		b.fail("%d sessions instead of %d", len(files), n)
	}
	for i := 0; i < rareCopies && !b.rare; i++ {
		said := strings.Replace(foreignLine(fmt.Sprintf("yy%06d", 2*i), "", i), "line ", rareWord+" line ", 1)
		call := fmt.Sprintf(`[{"type":"toolCall","id":"t%d","name":"edit","arguments":{"path":%q}}]`, i, rareFile)
		edited := strings.NewReplacer(`"role":"user"`, `"role":"assistant"`, fmt.Sprintf(`"line %d"`, i), call).
			Replace(foreignLine(fmt.Sprintf("yy%06d", 2*i+1), "", i))
		b.append(files[i*n/rareCopies], said+edited)
	}
	b.rare = true
	settle()
	return agent, files, fmt.Sprintf("%d sessions, %d MB", n, bytes/megabyte)
}
