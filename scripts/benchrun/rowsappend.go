package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Sizes of row f.
const (
	manyAppends  = 10_000
	appendBatch  = 100
	fewEntries   = 100
	muchEntries  = 150_000
	appendedLine = `{"type":"custom","customType":"bench","data":{"n":%d,"text":"a line of about the size of a small entry, %s"}}` + "\n"
)

// rowAppend: the writes of one process to one open append, and the same writes to a plain file through
// loopback. A session grows by what is appended, so each run has small ones of its own.
func rowAppend(b *bench) []result {
	lines := appendLines(b.shrink(manyAppends))
	much := b.session(spec{name: "much", entries: muchEntries, bytes: muchEntries * 400})
	n := len(lines)
	run := 0
	withFew := fmt.Sprintf("the same, %d entries", fewEntries)
	res := []result{
		{
			what:  fmt.Sprintf("%d appends on one open `append`, a line each, session of %d entries", n, much.entries),
			peer:  withFew,
			ratio: 1.2,
		},
		{what: withFew, peer: "loopback, the same writes", ratio: 4},
		{
			what:  fmt.Sprintf("the same lines, %d a write", appendBatch),
			peer:  "loopback, a line a write",
			ratio: 0.5,
		},
	}
	var batches []string
	for some := range slices.Chunk(lines, appendBatch) {
		batches = append(batches, strings.Join(some, ""))
	}
	few := func() *session { // a new one for each run
		run++
		return b.session(spec{name: fmt.Sprintf("few-%d", run), entries: fewEntries, bytes: fewEntries * 400})
	}
	return b.repeat(res, func() {
		big := b.timeAppends(much, lines, n)
		s := few()
		small := b.timeAppends(s, lines, n)
		batch := b.timeAppends(few(), batches, n)
		var plain float64
		b.withLoopback(s.agent, func(at string) {
			plain = b.timeWrites(filepath.Join(at, "plain"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, lines)
		})
		res[0].add(big, small)
		res[1].add(small, plain)
		res[2].add(batch, plain)
	})
}

// appendLines returns n lines for append, of different lengths.
func appendLines(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(appendedLine, i, strings.Repeat("x", 60+i%80))
	}
	return lines
}

// timeAppends mounts, writes texts to a session's append, checks that as many lines were added, and returns the time of
// the writes.
func (b *bench) timeAppends(s *session, writes []string, lines int) (took float64) {
	b.withOurs(s.agent, &result{}, func(mt *mount) {
		b.warmDaemon(mt, s)
		before, err := os.Stat(s.file)
		b.must(err)
		took = b.timeWrites(mt.Path(s.dir, "append"), os.O_WRONLY, writes)
		b.expect("/", fmt.Sprintf("tail -c +%d '%s' | wc -l", before.Size()+1, s.file), lines)
	})
	return took
}

// timeWrites opens a file and writes, a write(2) for each text. Opening is not timed, closing is.
func (b *bench) timeWrites(name string, flags int, writes []string) float64 {
	f, err := os.OpenFile(name, flags, 0o600)
	b.must(err)
	defer f.Close()
	start := time.Now()
	for _, w := range writes {
		_, err := f.WriteString(w)
		b.must(err)
	}
	b.must(f.Close())
	return time.Since(start).Seconds()
}
