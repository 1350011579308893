package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func (s *session) describe() string {
	return fmt.Sprintf("%d MB / %d entries", s.bytes/megabyte, s.entries)
}

// render makes the page from what was measured in this run.
func (b *bench) render(about machine, results []result, now time.Time) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Benchmarks\n\nWritten by `scripts/bench` on %s; every figure is from that run.\n\n", now.UTC().Format("2006-01-02"))
	fmt.Fprintf(&out, "- Machine: %s, %d cores, %.0f GB memory; load average %s at the start\n", about.processor, about.cores, float64(about.memory)/1e9, about.load)
	fmt.Fprintf(&out, "- Linux %s, %s, temporary files on %s, %s\n", about.kernel, runtime.Version(), about.disk, about.user)
	if b.client != nil && b.client.version != "" {
		fmt.Fprintf(&out, "- Client: @oh-my-pi/pi-coding-agent %s, bun %s; its time is that of the call alone, without the start of bun\n", b.client.version, b.client.runtime)
	}
	fmt.Fprintf(&out, "- Each row %d times in turn with its peer (row i %d times, j once), page cache warm; times are wall times of whole processes\n", b.runs, appends)
	if b.small {
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

// profiles tells what the rows that miss their goals spend their time on.
//
//go:embed profiles.md
var profiles string

// line renders a result. Ratio: the median, the smallest and the largest of those of one run of ours to
// the peer's next to it; ours and the peer's: medians.
func (r *result) line() string {
	cells := []string{r.row, r.what, r.peer, "", "", "", r.goal.String(), r.reached(), "", "", ""}
	if ratios := r.ratios(); len(ratios) > 0 {
		for i, ratio := range []float64{median(ratios), slices.Min(ratios), slices.Max(ratios)} {
			cells[3+i] = fmt.Sprintf("%.2f", ratio)
		}
	}
	if len(r.ours) > 0 {
		cells[8] = r.unit.format(median(r.ours))
	}
	if len(r.peers) > 0 {
		cells[9] = r.unit.format(median(r.peers))
	}
	if r.peak > 0 {
		cells[10] = unitBytes.format(r.peak)
	}
	for i, cell := range cells {
		cells[i] = cmp.Or(cell, "–")
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

func (g goal) String() string {
	switch {
	case g.root:
		return fmt.Sprintf("≤ %g as root", g.ratio)
	case g.ratio > 0:
		return fmt.Sprintf("≤ %g", g.ratio)
	case g.seconds > 0:
		return fmt.Sprintf("≤ %g ms", g.seconds*1000)
	case g.bytes > 0:
		return fmt.Sprintf("≤ %.0f MB", g.bytes/megabyte)
	}
	return ""
}

// reached compares with the goal where there is one that is meant for who ran this.
func (r *result) reached() string {
	figures, limit := r.ours, r.goal.seconds+r.goal.bytes
	if r.goal.ratio > 0 {
		figures, limit = r.ratios(), r.goal.ratio
	}
	switch {
	case limit == 0, len(figures) == 0, r.goal.root && os.Geteuid() != 0:
		return ""
	case median(figures) <= limit:
		return "yes"
	}
	return "**no**"
}

// machine is what the figures were taken on: no names, no paths.
type machine struct {
	processor, kernel, disk, load, user string
	cores                               int
	memory                              uint64
}

func aboutMachine(dir string) machine {
	m := machine{cores: runtime.NumCPU(), processor: "unknown processor", load: "unknown", user: "as a user"}
	if os.Geteuid() == 0 {
		m.user = "as root"
	}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		m.kernel = unix.ByteSliceToString(uts.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.memory = info.Totalram * uint64(info.Unit)
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.load, _, _ = strings.Cut(string(load), " ")
	}
	if cpus, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(cpus)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				m.processor = strings.TrimSpace(value)
				break
			}
		}
	}
	m.disk = diskKind(dir)
	return m
}

// diskKind names the file system that the temporary files are on.
func diskKind(dir string) string {
	out, _ := exec.Command("df", "--output=fstype", dir).Output()
	_, kind, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return cmp.Or(kind, "an unknown file system")
}
