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

const (
	// restingGoroutines bounds the goroutines of a daemon at rest: most are readers of the kernel's requests.
	restingGoroutines = 80
	// restingMemory bounds the memory of a daemon at rest, in MiB. The memory of a working one grows with the
	// sessions up to -o memory, and must not stay.
	restingMemory = 120
	// restSeconds is how long a daemon has to come to rest: garbage goes with the next collection, which is two
	// minutes later where nothing else is done.
	restSeconds = 150
)

// check looks at the sessions, the mounts and the daemons when the programs have ended, and prints the counts of the
// run. Each step notes its problems in the model.
func (r *run) check() {
	r.checkFiles()
	r.checkMounts()
	r.checkRealClient()
	r.checkCrawls()
	r.checkLeft() // which ends the daemons
	for _, what := range slices.Sorted(maps.Keys(r.counts)) {
		fmt.Printf("%9d  %s\n", r.counts[what], what)
	}
	for _, d := range r.daemons {
		r.checkLog(d)
	}
}

// names returns the names of the sessions, sorted.
func (m *model) names() []string { return slices.Sorted(maps.Keys(m.sessions)) }

// checkFiles compares all session files with the model. A session without a readable file is left out of later checks.
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

// checkFile compares one session file with the model.
func (r *run) checkFile(name string, s *expected, file *session) {
	owner := "" // the program of an own session, which alone moves its leaf and sets its title
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
		isFirst := i < 2 && (l.ID == rootID || l.ID == answerID) // which makeSession has written
		if isFirst {
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
		s.lines[who] = append([]string{}, s.lines[who]...) // also of a program that should have written nothing
	}
	for who, wants := range s.lines {
		problem := match(wants, seen[who])
		if problem != "" {
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

// checkMounts compares each session in both mounts with its file, after another write through one of them,
// which a lock or a torn end that a kill left must not hinder.
func (r *run) checkMounts() {
	for n, name := range r.names() {
		mount := mounts[n%len(mounts)]
		last := entry{id: fmt.Sprintf("last-%d", n), what: "user", size: 30}
		out, _, err := r.control(r.mounted(mount, name, "append"), last.line("", false))
		if out.acked != 1 {
			reason := readText(r.mounted(mount, name, "last-error"))
			r.problem("the last append to %s in %s: %v: %s", name, mount, err, reason)
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

// compareMount compares a session in a mount with its file.
func (r *run) compareMount(mount, name string, file *session) {
	leaf, err := r.leafOf(mount, name)
	wantedLeaf := textOf(file.leaf())
	if err != nil || textOf(leaf) != wantedLeaf {
		r.problem("%s in %s: the leaf is %s, %v, not %s", name, mount, textOf(leaf), err, wantedLeaf)
	}
	title := strings.TrimSuffix(readText(r.mounted(mount, name, "title")), "\n")
	if title != file.title {
		r.problem("%s in %s: the title is %q, not %q", name, mount, title, file.title)
	}
	labels := map[string]string{}
	for text := range strings.Lines(readText(r.mounted(mount, name, "labels"))) {
		id, label, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\t")
		labels[id] = label
	}
	wantedLabels := file.labels()
	if !maps.Equal(labels, wantedLabels) {
		r.problem("%s in %s: the labels are %v, not %v", name, mount, labels, wantedLabels)
	}
	entries, err := os.ReadDir(r.mounted(mount, name, "entries"))
	if err != nil || len(entries) != len(file.lines) {
		r.problem("%s in %s: %d entries, %v, not %d", name, mount, len(entries), err, len(file.lines))
	}
}

// readText returns the text of a file, or of the error of reading it.
func readText(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// checkRealClient compares how the real client, if there is one, loads each session with its file.
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
		isSame := slices.Equal(a.Entries, ids) && maps.Equal(a.Labels, file.labels()) && a.Title == file.title
		if !isSame {
			r.problem("the real client has %d entries, %v and %q of %s, not %d, %v and %q",
				len(a.Entries), a.Labels, a.Title, name, len(ids), file.labels(), file.title)
		}
		r.count("sessions opened by the real client")
	}
}

// checkCrawls: at rest, programs that walk everything end without a complaint.
func (r *run) checkCrawls() {
	for n, script := range []string{`find "$1" -ls | wc -c`, `grep -ra first-question "$1" | wc -c`, `tar -cPf - "$1" | wc -c`} {
		mount := r.mounted(mounts[n%len(mounts)])
		complaints, err := runScript(script, mount, 3*callLimit)
		if err != nil || complaints != "" {
			r.problem("%s on all: %v: %.500s", script, err, complaints)
		}
	}
}

// checkLeft: nothing is left behind, in the daemons or on disk. It ends the daemons, and starts each once more, which
// removes its dead mount, to unmount it.
func (r *run) checkLeft() {
	for _, d := range r.daemons {
		r.checkRest(d)
		err := errors.Join(d.start(), d.unmount())
		if err != nil {
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

// checkRest waits until a daemon is at rest, checks how much memory it has had and how many goroutines it has, and
// ends it.
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
	limit := float64(d.memory)*1.3 + 40 // -o memory is not exact, and the program itself takes some
	if peak > limit && !r.race {
		r.problem("daemon %s had %.0f MiB of memory, and %.0f is the most", d.name, peak, limit)
	}
	if rss > restingMemory && !r.race {
		r.problem("daemon %s had %.0f MiB of memory at rest", d.name, rss)
	}
}

// checkLog: an error that a daemon logs is one, and a panic too. Dumps of goroutines are not meant.
func (r *run) checkLog(d *daemon) {
	log := readText(d.log)
	_, race, hasRace := strings.Cut(log, "WARNING: DATA RACE")
	if hasRace {
		r.problem("a race in daemon %s: %.3000s", d.name, race)
	}
	said := map[string]int{}
	for text := range strings.Lines(log) {
		isLogged := strings.Contains(text, "level=") // the other lines are of dumps
		isError := strings.Contains(text, "level=ERROR") || strings.Contains(text, "panic")
		if isLogged && isError {
			_, text, _ = strings.Cut(text, "msg=")
			said[strings.TrimSpace(text)]++
		}
	}
	for text, n := range said {
		r.problem("daemon %s logged %d times: %.500s", d.name, n, text)
	}
}
