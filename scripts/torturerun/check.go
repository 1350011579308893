package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// restingGoroutines is how many a daemon may have at rest: most are readers of the kernel's requests. restingMemory is how many
// MiB: what it takes while it works grows with the sessions up to -o memory, and must not stay. What is of no use any more goes
// with the next collection, which is two minutes later where nothing else is done.
const restingGoroutines, restingMemory, restSeconds = 80, 120, 150

// check is all that is looked at when the programs have ended.
func (r *run) check() {
	for _, step := range []func(*run){(*run).checkFiles, (*run).checkMounts, (*run).checkRealClient, (*run).checkCrawls, (*run).checkLeft} {
		step(r)
	}
	for _, what := range slices.Sorted(maps.Keys(r.counts)) {
		fmt.Printf("%9d  %s\n", r.counts[what], what)
	}
	for _, d := range r.daemons {
		r.checkLog(d)
	}
}

// names are those of the sessions.
func (m *model) names() []string { return slices.Sorted(maps.Keys(m.sessions)) }

// checkFiles compares all session files with the model.
func (r *run) checkFiles() {
	for _, name := range r.names() {
		file, err := readSession(r.file(name))
		if err != nil {
			r.problem("%v", err)
			delete(r.sessions, name)
			continue
		}
		r.checkFile(name, r.sessions[name], file)
	}
}

// checkFile compares one session file with what it must contain.
func (r *run) checkFile(name string, s *expected, file *session) {
	owner := ""
	for who := range s.lines {
		owner = who
	}
	ids := map[string]bool{}
	seen := map[string][]string{}
	for i, l := range file.lines {
		if ids[l.ID] {
			r.problem("%s: the id %s is there twice", name, l.ID)
		}
		ids[l.ID] = true
		if i < 2 && (l.ID == rootID || l.ID == answerID) {
			continue
		}
		who, summary, problem := l.summary(name)
		if problem != "" {
			r.problem("%s: %s", name, problem)
		}
		if who == "" {
			who = owner
		}
		seen[who] = append(seen[who], summary)
		r.count("lines checked")
	}
	for who := range seen {
		s.lines[who] = append([]string{}, s.lines[who]...) // also of whom nothing is known
	}
	for who, wants := range s.lines {
		if problem := match(wants, seen[who]); problem != "" {
			r.problem("%s, what %s wrote: %s", name, who, problem)
		}
	}
	r.counts["torn lines that kills left"] += len(file.torn)
	if len(file.torn) > s.maybes { // a kill leaves at most one for each write that it interrupted
		r.problem("%s: %d torn lines, and only %d writes were interrupted: %.200q", name, len(file.torn), s.maybes, file.torn)
	}
	if file.title != s.title {
		r.problem("%s: the title is %q, not %q", name, file.title, s.title)
	}
}

// checkMounts compares what both mounts show of each session with its file, after another write through one of them,
// which a lock or a torn end that a kill left must not hinder.
func (r *run) checkMounts() {
	for n, name := range r.names() {
		mount := mounts[n%len(mounts)]
		last := entry{fmt.Sprintf("last-%d", n), "user", 30}.line("", false)
		if out, _, err := r.control(r.mounted(mount, name, "append"), last); out.acked != 1 {
			r.problem("the last append to %s in %s: %v: %s", name, mount, err, readText(r.mounted(mount, name, "last-error")))
		}
		file, err := readSession(r.file(name))
		if err != nil {
			r.problem("%v", err)
			continue
		}
		for _, mount := range mounts {
			r.compareMount(mount, name, file)
		}
		r.count("sessions compared")
	}
}

// compareMount compares what a mount shows of a session with its file.
func (r *run) compareMount(mount, name string, file *session) {
	in := func(view string) string { return readText(r.mounted(mount, name, view)) }
	at, err := r.leafOf(mount, name)
	if want := file.leaf(); err != nil || textOf(at) != textOf(want) {
		r.problem("%s in %s: the leaf is %s, %v, not %s", name, mount, textOf(at), err, textOf(want))
	}
	if title := strings.TrimSuffix(in("title"), "\n"); title != file.title {
		r.problem("%s in %s: the title is %q, not %q", name, mount, title, file.title)
	}
	labels := map[string]string{}
	for text := range strings.Lines(in("labels")) {
		id, label, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\t")
		labels[id] = label
	}
	if want := file.labels(); !maps.Equal(labels, want) {
		r.problem("%s in %s: the labels are %v, not %v", name, mount, labels, want)
	}
	entries, err := os.ReadDir(r.mounted(mount, name, "entries"))
	if err != nil || len(entries) != len(file.lines) {
		r.problem("%s in %s: %d entries, %v, not %d", name, mount, len(entries), err, len(file.lines))
	}
}

func readText(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// checkRealClient compares how the real client loads each session with its file.
func (r *run) checkRealClient() {
	if r.bun == "" {
		return
	}
	client, err := r.startReal()
	if err != nil {
		r.problem("the real client: %v", err)
		return
	}
	defer func() { _ = client.Process.Kill() }()
	for name := range r.sessions {
		file, err := readSession(r.file(name))
		if err != nil {
			continue // was said before
		}
		a, err := client.ask("look", r.file(name), "")
		if err != nil || a.Error != "" {
			r.problem("the real client cannot open %s: %v %s", name, err, a.Error)
			if err != nil {
				return
			}
			continue
		}
		var ids []string
		for _, l := range file.lines {
			ids = append(ids, l.ID)
		}
		if !slices.Equal(a.Entries, ids) || !maps.Equal(a.Labels, file.labels()) || a.Title != file.title {
			r.problem("the real client has %d entries, %v and %q of %s, not %d, %v and %q",
				len(a.Entries), a.Labels, a.Title, name, len(ids), file.labels(), file.title)
		}
		r.count("sessions opened by the real client")
	}
}

// checkCrawls: at rest, programs that walk everything end without a complaint.
func (r *run) checkCrawls() {
	for n, script := range []string{`find "$1" -ls | wc -c`, `grep -ra first-question "$1" | wc -c`, `tar -cPf - "$1" | wc -c`} {
		if text, err := runScript(script, filepath.Join(r.dir, mounts[n%len(mounts)]), 3*callLimit); err != nil || text != "" {
			r.problem("%s on all: %v: %.500s", script, err, text)
		}
	}
}

// checkLeft: nothing is left behind, in the daemons or on disk.
func (r *run) checkLeft() {
	for _, d := range r.daemons {
		r.checkRest(d)
		if err := errors.Join(d.start(), d.unmount()); err != nil {
			r.problem("%v", err)
		}
	}
	for _, name := range r.names() { // to which the check has written
		lock := filepath.Join(filepath.Dir(r.file(name)), "."+filepath.Base(name)+".jsonl.lock")
		if _, err := os.Lstat(lock); err == nil {
			r.problem("a lock is left: %s: %q", lock, readText(lock))
		}
	}
	if left, _ := filepath.Glob(filepath.Join(r.away(), "*")); len(left) > 0 {
		r.problem("left: %q", left)
	}
	if strings.Contains(readText("/proc/self/mountinfo"), " "+r.dir+"/") {
		r.problem("a mount is left")
	}
}

// checkRest ends a daemon: how much memory it had, and which goroutines it has when nothing is to be done.
func (r *run) checkRest(d *daemon) {
	rss := d.mebibytes("VmRSS")
	for n := 0; n < restSeconds && rss > restingMemory; n++ {
		time.Sleep(time.Second)
		rss = d.mebibytes("VmRSS")
	}
	peak := d.mebibytes("VmHWM")
	goroutines := strings.Count("\n"+d.dump(), "\ngoroutine ")
	fmt.Printf("daemon %s: killed %d times; MiB of memory since then: at most %.0f, %.0f in the end; goroutines: %d\n",
		d.name, d.kills, peak, rss, goroutines)
	if goroutines > restingGoroutines {
		r.problem("daemon %s has %d goroutines at rest", d.name, goroutines)
	}
	if limit := float64(d.memory)*1.3 + 40; peak > limit && !r.race {
		r.problem("daemon %s had %.0f MiB of memory, and %.0f is the most", d.name, peak, limit)
	}
	if rss > restingMemory && !r.race {
		r.problem("daemon %s had %.0f MiB of memory at rest", d.name, rss)
	}
}

// checkLog: an error that a daemon logs is one, and a panic too. Dumps of goroutines are not meant.
func (r *run) checkLog(d *daemon) {
	log := readText(d.log)
	if _, race, found := strings.Cut(log, "WARNING: DATA RACE"); found {
		r.problem("a race in daemon %s: %.3000s", d.name, race)
	}
	said := map[string]int{}
	for text := range strings.Lines(log) {
		if strings.Contains(text, "level=ERROR") || strings.Contains(text, "panic") && strings.Contains(text, "level=") {
			_, text, _ = strings.Cut(text, "msg=")
			said[strings.TrimSpace(text)]++
		}
	}
	for text, n := range said {
		r.problem("daemon %s logged %d times: %.500s", d.name, n, text)
	}
}
