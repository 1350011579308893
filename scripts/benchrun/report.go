package main

import (
	_ "embed"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// unit is what a result's figures are in.
type unit int

const (
	unitSeconds unit = iota
	unitBytes
)

// goal is what a row has to reach: of the ratio, of our own figure, or neither.
type goal struct {
	ratio   float64
	seconds float64
	bytes   float64
	worst   bool // every run must reach it, not the median
	root    bool // it is meant for root
	user    bool // it is meant for others
	text    string
}

// result is a line of the table.
type result struct {
	row, what, peer string
	goal            goal
	unit            unit
	m               measured
	note            string
}

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
	fmt.Fprintf(&out, "- Each row %d times in turn with its peer (rows i and l %d times, j once), page cache warm; times are wall times of whole processes\n", b.runs, appends)
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
// the peer's next to it; ours and the peer's: medians, and where a goal is for the worst run, that too.
func (r *result) line() string {
	work := r.what
	if r.note != "" {
		work += " (" + r.note + ")"
	}
	cells := []string{r.row, work, dash(r.peer), "–", "–", "–", r.goal.String(), "–", "–", "–", "–"}
	if ratios := r.m.ratios(); len(ratios) > 0 {
		cells[3] = fmt.Sprintf("%.2f", median(ratios))
		cells[4] = fmt.Sprintf("%.2f", slices.Min(ratios))
		cells[5] = fmt.Sprintf("%.2f", slices.Max(ratios))
	}
	cells[7] = r.reached()
	if len(r.m.ours) > 0 {
		cells[8] = r.unit.format(median(r.m.ours))
		if r.goal.worst {
			cells[8] += ", worst " + r.unit.format(slices.Max(r.m.ours))
		}
	}
	if len(r.m.peer) > 0 {
		cells[9] = r.unit.format(median(r.m.peer))
	}
	if r.m.peak > 0 {
		cells[10] = unitBytes.format(float64(r.m.peak))
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

func (u unit) format(v float64) string {
	switch {
	case u == unitBytes:
		return fmt.Sprintf("%.1f MB", v/megabyte)
	case v < 0.1:
		return fmt.Sprintf("%.2f ms", v*1000)
	}
	return fmt.Sprintf("%.3f s", v)
}

func (g goal) String() string {
	text := g.text
	switch {
	case g.ratio > 0:
		text = fmt.Sprintf("≤ %g", g.ratio)
	case g.seconds >= 1:
		text = fmt.Sprintf("each ≤ %g s", g.seconds)
	case g.seconds > 0:
		text = fmt.Sprintf("≤ %g ms", g.seconds*1000)
	case g.bytes > 0:
		text = fmt.Sprintf("≤ %.0f MB", g.bytes/megabyte)
	}
	switch {
	case g.root:
		text += " as root"
	case g.user:
		text += " as a user"
	}
	return dash(text)
}

// reached compares with the goal where it is a number and is meant for who ran this.
func (r *result) reached() string {
	isRoot := os.Geteuid() == 0
	if len(r.m.ours) == 0 || r.goal.root && !isRoot || r.goal.user && isRoot {
		return "–"
	}
	figure, limit := median(r.m.ours), r.goal.seconds+r.goal.bytes
	if r.goal.worst {
		figure = slices.Max(r.m.ours)
	}
	if r.goal.ratio > 0 {
		ratios := r.m.ratios()
		if len(ratios) == 0 {
			return "–"
		}
		figure, limit = median(ratios), r.goal.ratio
	}
	switch {
	case limit == 0:
		return "–"
	case figure <= limit:
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
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return "an unknown file system"
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	}
	return fmt.Sprintf("file system type %#x", st.Type)
}
