package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
// loopback. A session grows by what is appended, so each run has a small one of its own.
func rowAppend(ctx context.Context, b *bench) ([]result, error) {
	lines := appendLines(b.shrink(manyAppends))
	much, err := b.session(spec{name: "much", entries: muchEntries, bytes: muchEntries * 400})
	if err != nil {
		return nil, err
	}
	n := len(lines)
	res := []result{
		{what: fmt.Sprintf("%d appends on one open `append`, a line each, session of %d entries", n, much.entries), peer: fmt.Sprintf("the same, %d entries", fewEntries), goal: goal{ratio: 1.2}},
		{what: fmt.Sprintf("the same, %d entries", fewEntries), peer: peerLoopback + ", the same writes", goal: goal{ratio: 4}},
		{what: fmt.Sprintf("the same lines, %d a write", appendBatch), peer: peerLoopback + ", a line a write", goal: goal{ratio: 0.5}},
	}
	batches := batched(lines, appendBatch)
	err = b.repeat(func(run int) error {
		var few [2]*session
		for i := range few {
			s, err := generate(b.dir, spec{name: fmt.Sprintf("few-%d-%d", run, i), entries: fewEntries, bytes: fewEntries * 400})
			if err != nil {
				return err
			}
			few[i] = s
		}
		big, err := b.timeAppends(ctx, much, lines, n)
		if err != nil {
			return err
		}
		small, err := b.timeAppends(ctx, few[0], lines, n)
		if err != nil {
			return err
		}
		batch, err := b.timeAppends(ctx, few[1], batches, n)
		if err != nil {
			return err
		}
		plain, err := b.timePlainWrites(ctx, lines)
		if err != nil || run == 0 {
			return err
		}
		res[0].m.addTime(big, small)
		res[1].m.addTime(small, plain)
		res[2].m.addTime(batch, plain)
		return nil
	})
	return res, err
}

func appendLines(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(appendedLine, i, strings.Repeat("x", 60+i%80))
	}
	return lines
}

func batched(lines []string, n int) []string {
	var out []string
	for len(lines) > 0 {
		k := min(n, len(lines))
		out = append(out, strings.Join(lines[:k], ""))
		lines = lines[k:]
	}
	return out
}

// timeAppends mounts, writes to a session's append, and checks that as many entries were added.
func (b *bench) timeAppends(ctx context.Context, s *session, writes []string, lines int) (took time.Duration, err error) {
	err = b.withOurs(ctx, s.agent, nil, func(mt *mount) error {
		if err := warmDaemon(ctx, mt, s); err != nil {
			return err
		}
		before, err := os.Stat(s.file)
		if err != nil {
			return err
		}
		if took, err = timeWrites(mt.path(s.dir, "append"), os.O_WRONLY, writes); err != nil {
			return err
		}
		added, err := os.ReadFile(s.file)
		if err != nil {
			return err
		}
		if got := strings.Count(string(added[before.Size():]), "\n"); got != lines {
			return fmt.Errorf("%d lines were added, not %d", got, lines)
		}
		return nil
	})
	return took, err
}

func (b *bench) timePlainWrites(ctx context.Context, writes []string) (took time.Duration, err error) {
	dir, err := os.MkdirTemp(b.dir, "plain-")
	if err != nil {
		return 0, err
	}
	err = b.withLoopback(ctx, dir, func(lo *mount) error {
		took, err = timeWrites(filepath.Join(lo.dir, "file"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, writes)
		return err
	})
	return took, err
}

// timeWrites opens a file and writes, a write(2) for each text. Opening is not timed, closing is.
func timeWrites(name string, flags int, writes []string) (time.Duration, error) {
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	for _, w := range writes {
		if _, err := f.WriteString(w); err != nil {
			_ = f.Close()
			return 0, err
		}
	}
	err = f.Close()
	return time.Since(start), err
}
