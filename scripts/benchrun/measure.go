package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// output runs a shell command line in a directory and returns its output, and the wall time in seconds of the whole
// process, from before fork to after its end. The start of the shell is on both sides.
func (b *bench) output(dir, line string) (printed string, took float64) {
	cmd := exec.CommandContext(b.ctx, "/bin/sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=/nonexistent"}
	var out, errs bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &errs
	start := time.Now()
	err := cmd.Run()
	took = time.Since(start).Seconds()
	if err != nil || errs.Len() > 0 {
		b.fail("%s: %v: %.200s", line, err, errs.String())
	}
	return out.String(), took
}

// time is output for the time alone.
func (b *bench) time(dir, line string) float64 {
	_, took := b.output(dir, line)
	return took
}

// expect runs a command line that must print a number or a word, and returns its time: a fast wrong answer is no result.
func (b *bench) expect(dir, line string, want any) float64 {
	out, took := b.output(dir, line)
	if strings.TrimSpace(out) != fmt.Sprint(want) {
		b.fail("%s: printed %q, %v was expected", line, out, want)
	}
	return took
}

// same runs a command line in both directories, and fails if it does not print the same: only the same
// work may be compared.
func (b *bench) same(one, other, line string) {
	text, _ := b.output(one, line)
	b.expect(other, line, strings.TrimSpace(text))
}

// seconds returns a time for people.
func seconds(time float64) string {
	if time < 0.1 {
		return fmt.Sprintf("%.2f ms", time*1000)
	}
	return fmt.Sprintf("%.3f s", time)
}

// megabytes returns a number of bytes for people.
func megabytes(bytes float64) string { return fmt.Sprintf("%.1f MB", bytes/megabyte) }

// result is a line of the table: ours and the peer's figures in turn, one a run.
type result struct {
	row, what, peer string
	ratio, limit    float64              // the goal, if there is one: of the ratio, or of our own figure
	unit            func(float64) string // of the figures: seconds, where it is nil
	ours, peers     []float64
	peak            float64 // of the daemon over all runs, in bytes
}

// add adds the figures of a run. Without a peer its figure is 0.
func (r *result) add(ours, peer float64) {
	r.ours = append(r.ours, ours)
	if peer > 0 {
		r.peers = append(r.peers, peer)
	}
}

// ratios returns the ratio of each run of ours to the peer's run next to it, nil without a peer.
func (r *result) ratios() []float64 {
	if len(r.peers) != len(r.ours) {
		return nil
	}
	ratios := make([]float64, len(r.ours))
	for i := range ratios {
		ratios[i] = r.ours[i] / r.peers[i]
	}
	return ratios
}

// median returns the median of figures. There must be at least one.
func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	lower := sorted[(len(sorted)-1)/2]
	upper := sorted[len(sorted)/2] // the same, if their number is odd
	return (lower + upper) / 2
}
