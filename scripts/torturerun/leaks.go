package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// keptOpen is how many sessions a daemon keeps open, and of archived ones (docs/design.md section 7).
	keptOpen = 128 + 16
	// restingGoroutines is how many more than a new daemon one has that has worked: readers of the kernel's requests.
	restingGoroutines = 40
)

// checkLeaks: nothing is left behind, in the daemons or on disk.
func (r *tortureRun) checkLeaks(m *model) {
	for _, name := range mounts {
		r.checkDescriptors(r.daemons[name])
	}
	counts := map[string]int{}
	for name, d := range r.daemons {
		d.sample()
		counts[name] = goroutines(d.dump())
	}
	fresh := newDaemon(r.o, "a")
	if err := fresh.start(); err != nil {
		r.problem("%v", err)
		return
	}
	rest := goroutines(fresh.dump())
	for name, n := range counts {
		fmt.Printf("goroutines of daemon %s: %d; of a new one: %d\n", name, n, rest)
		if n > rest+restingGoroutines {
			r.problem("daemon %s has %d goroutines at rest, a new one %d", name, n, rest)
		}
	}
	for _, name := range mounts { // both are dead now
		last := newDaemon(r.o, name)
		if err := last.start(); err != nil {
			r.problem("%v", err)
		} else if err := last.unmount(); err != nil {
			r.problem("%v", err)
		}
	}
	r.checkLeftFiles(m)
	table, _ := os.ReadFile("/proc/self/mountinfo")
	if strings.Contains(string(table), " "+r.o.dir+"/") {
		r.problem("a mount is left")
	}
}

// checkDescriptors: at rest a daemon has a descriptor for each session that it keeps, and none for anything else in
// SOURCE but directories and databases.
func (r *tortureRun) checkDescriptors(d *daemon) {
	var found string
	for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(50 * time.Millisecond) {
		if found = openFiles(r.o, d.cmd.Process.Pid); found == "" {
			return
		}
	}
	r.problem("daemon %s: %s", d.name, found)
}

func openFiles(o *options, pid int) string {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.ReadDir(dir)
	if err != nil {
		return err.Error()
	}
	sessions := map[string]int{}
	for _, fd := range fds {
		target, err := os.Readlink(filepath.Join(dir, fd.Name()))
		if err != nil || !strings.HasPrefix(target, o.source()+"/") {
			continue
		}
		name := strings.TrimSuffix(target, " (deleted)")
		if strings.HasSuffix(name, ".jsonl") {
			sessions[target]++
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, fd.Name())); err == nil && !info.IsDir() && !strings.HasSuffix(name, ".db") {
			return "open for nothing: " + target
		}
	}
	for name, n := range sessions {
		if n > 1 && !strings.HasSuffix(name, "(deleted)") {
			return fmt.Sprintf("%d descriptors on %s", n, name)
		}
	}
	if len(sessions) > keptOpen {
		return fmt.Sprintf("%d sessions are open", len(sessions))
	}
	return ""
}

// checkLeftFiles counts temporary files and locks. Only a daemon that was killed may leave any.
func (r *tortureRun) checkLeftFiles(m *model) {
	kills := r.daemons["a"].kills + r.daemons["b"].kills
	temporaries := 0
	_ = filepath.WalkDir(r.o.source(), func(file string, _ fs.DirEntry, err error) error {
		damaged := strings.Contains(file, "--torture-damaged--")
		switch {
		case err != nil:
		case strings.HasSuffix(file, ".lock") && !damaged && !m.knows(r.o, file):
			m.counts["locks left of new sessions and forks whose names nobody learned"]++
		case strings.HasSuffix(file, ".lock") && !damaged:
			r.problem("a lock is left: %s: %q", file, readText(file))
		case strings.HasSuffix(file, ".tmp"):
			temporaries++
		}
		return nil
	})
	m.counts["temporary files left after kills"] = temporaries
	if temporaries > kills*(r.o.clients+1) {
		r.problem("%d temporary files are left after %d kills", temporaries, kills)
	}
	if away, _ := os.ReadDir(r.o.awayDir()); len(away) > 0 {
		r.problem("left away: %v", away)
	}
	if unsaved, _ := filepath.Glob(filepath.Join(r.o.dir, "state", "sessionfs", "unsaved", "*")); len(unsaved) > 0 {
		r.problem("unsaved sessions: %q", unsaved)
	}
}

// knows reports whether a lock is that of a session that the check has written to.
func (m *model) knows(o *options, lock string) bool {
	dir, base := filepath.Split(strings.TrimSuffix(lock, ".jsonl.lock"))
	name, err := filepath.Rel(o.source(), filepath.Join(dir, strings.TrimPrefix(base, ".")))
	if err != nil || m.sessions[name] != nil {
		return true
	}
	for _, s := range m.sessions {
		if slices.ContainsFunc(s.forks, func(f fork) bool { return f.place == name }) {
			return true
		}
	}
	return false
}

// print says what was done.
func (r *tortureRun) print(m *model) {
	for _, what := range slices.Sorted(maps.Keys(m.counts)) {
		fmt.Printf("%9d  %s\n", m.counts[what], what)
	}
	fmt.Printf("%9d  errors that the death of a daemon explains\n", m.excused)
	for _, name := range mounts {
		d := r.daemons[name]
		fmt.Printf("daemon %s: killed %d times; MB of memory since then, in tenths of that time: %s\n", name, d.kills, tenths(d.rss))
		if peak := slices.Max(append([]int64{0}, d.rss...)); peak > memoryLimit {
			r.problem("daemon %s had %d MB of memory", name, peak>>20)
		}
		log, _ := os.ReadFile(d.log)
		r.checkLog(name, string(log))
	}
}

func tenths(samples []int64) string {
	var out []string
	for i := range 10 {
		if part := samples[len(samples)*i/10 : len(samples)*(i+1)/10]; len(part) > 0 {
			out = append(out, fmt.Sprint(slices.Max(part)>>20))
		}
	}
	return strings.Join(out, " ")
}

// historyTooSlow is in the reason where a read of the prompt history takes longer than one may (docs/design.md section 7),
// as it does on a machine with too much to do. The call ends with EIO; all other reasons for that are in the log too.
const historyTooSlow = "reading the prompt history takes too long"

// checkLog: what a daemon logs as an error is one, and a panic too. Dumps of goroutines are not meant.
func (r *tortureRun) checkLog(name, log string) {
	errors := map[string]int{}
	for text := range strings.Lines(log) {
		if strings.Contains(text, "level=ERROR") || strings.Contains(text, "panic") && strings.Contains(text, "level=") {
			_, text, _ = strings.Cut(text, "msg=")
			errors[strings.TrimSpace(text)]++
		}
	}
	if _, race, found := strings.Cut(log, "WARNING: DATA RACE"); found {
		r.problem("a race in daemon %s: %.3000s", name, race)
	}
	for text, n := range errors {
		if strings.Contains(text, historyTooSlow) {
			fmt.Printf("daemon %s %d times: %s\n", name, n, historyTooSlow)
			continue
		}
		r.problem("daemon %s logged %d times: %.500s", name, n, text)
	}
}
