package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// describe returns the size of a session for the table.
func (s *session) describe() string {
	return fmt.Sprintf("%d MB / %d entries", s.bytes/megabyte, s.entries)
}

// render makes the page from the results of this run.
func (b *bench) render(about string, results []result, now time.Time) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Benchmarks\n\nWritten by `scripts/bench` on %s; every figure is from that run.\n\n", now.UTC().Format("2006-01-02"))
	fmt.Fprintf(&out, "%s- %s\n", about, runtime.Version())
	if b.client.version != "" {
		fmt.Fprintf(&out, "- Client: @oh-my-pi/pi-coding-agent %s, bun %s; its time is that of the call alone, without the start of bun\n", b.client.version, b.client.runtime)
	}
	fmt.Fprintf(&out, "- Each row %d times in turn with its peer (row i %d times, rows j and v once), page cache warm; times are wall times of whole processes, those of rows u and x processor times\n", b.runs, appends)
	if b.divisor > 1 {
		out.WriteString("- **Small stores, to try the script: the figures mean nothing**\n")
	}
	out.WriteString("\n| # | work | peer | ratio | min | max | goal | reached | ours | peer's | peak memory |\n")
	out.WriteString("| --- | --- | --- | --: | --: | --: | --- | --- | --: | --: | --: |\n")
	for _, r := range results {
		out.WriteString(r.line())
	}
	out.WriteString(profiles)
	return out.String()
}

// profiles is the text about the time of the rows that miss their goals.
//
//go:embed profiles.md
var profiles string

// line renders a result as a row of the table, with the columns that render has named. Ratio: the median, the smallest
// and the largest of those of one run of ours to the peer's next to it; ours and the peer's: medians. The goal is one of
// the ratio where there is one, else of our own figure.
func (r *result) line() string {
	cells := [11]string{r.row, r.what, r.peer}
	unit := r.unit
	if unit == nil {
		unit = seconds
	}
	figures := r.ours // which must not be above limit
	limit := r.limit
	ratios := r.ratios()
	if r.limit > 0 {
		cells[6] = "≤ " + unit(r.limit)
	}
	if r.ratio > 0 {
		figures = ratios
		limit = r.ratio
		cells[6] = fmt.Sprintf("≤ %g", r.ratio)
	}
	if limit > 0 && len(figures) > 0 {
		cells[7] = "**no**"
		if median(figures) <= limit {
			cells[7] = "yes"
		}
	}
	if len(ratios) > 0 {
		for i, ratio := range []float64{median(ratios), slices.Min(ratios), slices.Max(ratios)} {
			cells[3+i] = fmt.Sprintf("%.2f", ratio)
		}
	}
	for i, figures := range [][]float64{r.ours, r.peers} {
		if len(figures) > 0 {
			cells[8+i] = unit(median(figures))
		}
	}
	if r.peak > 0 {
		cells[10] = megabytes(r.peak)
	}
	for i, cell := range cells {
		cells[i] = cmp.Or(cell, "–")
	}
	return "| " + strings.Join(cells[:], " | ") + " |\n"
}

// aboutMachine returns lines about the machine of the figures: no names, no paths.
func (b *bench) aboutMachine() string {
	about, _ := b.output(b.dir, `
		echo "- Machine: $(grep -m1 "model name" /proc/cpuinfo | cut -d: -f2 | xargs), $(nproc) cores, $(awk "/^MemTotal/ { printf \"%.0f\", \$2 / 1e6 }" /proc/meminfo) GB memory; load average $(cut -d" " -f1 /proc/loadavg) at the start"
		echo "- Linux $(uname -r), temporary files on $(df --output=fstype . | tail -n 1), as $(id -un | sed "/^root$/!s/.*/a user/")"`)
	return about
}
