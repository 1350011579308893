package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// command runs a shell command line in a directory and returns the wall time of the whole process, from
// before fork to after its end, by the monotonic clock. What starts the shell costs is on both sides.
func command(ctx context.Context, dir, line string) (time.Duration, error) {
	_, took, err := output(ctx, dir, line)
	return took, err
}

// output is command, and returns what was printed.
func output(ctx context.Context, dir, line string) (string, time.Duration, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=/nonexistent"}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start)
	if err == nil && errs.Len() > 0 {
		err = fmt.Errorf("it complains")
	}
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w: %s", line, err, firstLine(errs.String()))
	}
	return out.String(), took, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// expect runs a command line that prints a number and compares it: a fast wrong answer is no result.
func expect(ctx context.Context, dir, line string, want int) (time.Duration, error) {
	out, took, err := output(ctx, dir, line)
	if err != nil {
		return 0, err
	}
	if got, err := strconv.Atoi(strings.TrimSpace(out)); err != nil || got != want {
		return 0, fmt.Errorf("%s: printed %q, %d was expected", line, strings.TrimSpace(out), want)
	}
	return took, nil
}

// measured is what a series of runs gave: ours and the peer's figures in turn, in seconds or, for rows
// about memory, in bytes.
type measured struct {
	ours, peer []float64
	peak       int64 // of the daemon over all runs, in bytes
}

func (m *measured) add(ours, peer float64) {
	m.ours, m.peer = append(m.ours, ours), append(m.peer, peer)
}

func (m *measured) addTime(ours, peer time.Duration) {
	m.ours = append(m.ours, ours.Seconds())
	if peer > 0 {
		m.peer = append(m.peer, peer.Seconds())
	}
}

func (m *measured) notePeak(of *mount) error {
	mem, err := of.memory()
	m.peak = max(m.peak, mem.peak)
	return err
}

// ratios are those of each run of ours to the peer's run next to it.
func (m *measured) ratios() []float64 {
	if len(m.peer) != len(m.ours) {
		return nil
	}
	r := make([]float64, len(m.ours))
	for i := range r {
		r[i] = m.ours[i] / m.peer[i]
	}
	return r
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	if n == 0 {
		return 0
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}
