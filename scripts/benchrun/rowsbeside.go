package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Sizes of the store of row p in the full run.
const (
	coldSessions = 2200
	coldBytes    = 5000 * megabyte
	// besides is how many listings are timed before a search, and at most during it.
	besides = 40
	// fewBesides are too few to tell anything: the search was too fast.
	fewBesides = 3
)

// rowBeside: what other requests take while a search reads files that are not in the page cache.
func rowBeside(ctx context.Context, b *bench) ([]result, error) {
	n, bytes := b.shrink(coldSessions), int64(b.shrink(coldBytes))
	agent, err := b.manySessions(n, storeEntries, bytes)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(agent) // no other row needs it, and it is the largest
	files, err := filepath.Glob(filepath.Join(agent, "sessions/*/*.jsonl"))
	if err != nil || len(files) != n {
		return nil, fmt.Errorf("%d sessions instead of %d: %w", len(files), n, err)
	}
	listed, others := ofMiddleSize(files, 2*max(2, b.shrink(besides)))
	beside := fmt.Sprintf(", while a search reads %d MB, page cache cold", bytes/megabyte)
	asBefore := goal{text: "as before"}
	res := []result{
		{what: "`ls entries` of a session that the daemon has not seen" + beside + ": median", peer: "no search", goal: asBefore},
		{what: "the slowest of these", peer: "the slowest of those", goal: asBefore},
		{what: "`ls entries` of one that it knows" + beside + ": median", peer: "no search", goal: asBefore},
		{what: "the slowest of these", peer: "the slowest of those", goal: asBefore},
	}
	err = b.repeat(func(run int) error {
		return b.withOurs(ctx, agent, &res[0].m, func(mt *mount) error {
			before, during, err := b.beside(ctx, mt, listed, others)
			if err != nil || run == 0 {
				return err
			}
			for i := range before {
				res[2*i].m.add(median(during[i]), median(before[i]))
				res[2*i+1].m.add(slices.Max(during[i]), slices.Max(before[i]))
			}
			return nil
		})
	})
	return res, err
}

// ofMiddleSize returns n files of about the same size, and the others.
func ofMiddleSize(files []string, n int) (middle, others []string) {
	size := func(name string) int64 {
		st, err := os.Stat(name)
		if err != nil {
			return 0
		}
		return st.Size()
	}
	files = slices.SortedFunc(slices.Values(files), func(a, b string) int { return cmp.Compare(size(a), size(b)) })
	from := max(0, len(files)/2-n/2)
	to := min(len(files), from+n)
	return files[from:to], append(files[:from:from], files[to:]...)
}

// timings are those of the sessions that the daemon sees for the first time, and of one that it knows, in seconds.
type timings [2][]float64

// beside times listings without a search, and then during one that has to read the other files from the disk.
func (b *bench) beside(ctx context.Context, mt *mount, listed, others []string) (before, during timings, err error) {
	known := mt.sessionPath(listed[0])
	half := listed[1 : 1+(len(listed)-1)/2]
	if _, err := command(ctx, known, "ls entries >/dev/null"); err != nil {
		return before, during, err
	}
	for _, file := range half {
		if err := before.add(ctx, mt.sessionPath(file), known); err != nil {
			return before, during, err
		}
	}
	if err := forgetPages(others); err != nil {
		return before, during, err
	}
	done := make(chan error, 1)
	go func() {
		took, err := expect(ctx, mt.dir, "cat search/"+rareWord+"/results.tsv | wc -l", 1)
		b.log("the search took %v", took.Round(time.Millisecond))
		done <- err
	}()
	for _, file := range listed[1+len(half):] {
		within := during
		if err := during.add(ctx, mt.sessionPath(file), known); err != nil {
			return before, during, errors.Join(err, <-done)
		}
		select {
		case err := <-done:
			if b.small { // there the search is over at once
				within = during
			}
			return before, within, errors.Join(err, b.enough(within)) // the last was not within it
		default:
		}
	}
	return before, during, errors.Join(<-done, b.enough(during))
}

// add times listings of both kinds.
func (t *timings) add(ctx context.Context, dirs ...string) error {
	for i, dir := range dirs {
		took, err := command(ctx, dir, "ls entries >/dev/null")
		if err != nil {
			return err
		}
		t[i] = append(t[i], took.Seconds())
	}
	return nil
}

func (b *bench) enough(t timings) error {
	if n := len(t[0]); n < fewBesides && !b.small {
		return fmt.Errorf("only %d listings while the search ran", n)
	}
	return nil
}

// sessionPath returns the directory in the mount of a session file of an agent directory.
func (m *mount) sessionPath(file string) string {
	dir := filepath.Dir(file)
	return m.path("sessions", filepath.Base(dir), strings.TrimSuffix(filepath.Base(file), ".jsonl"))
}

// forgetPages takes files, which must have been written to the disk, out of the page cache.
func forgetPages(files []string) error {
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
