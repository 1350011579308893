package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// memoryLimit is how much a daemon may have: twice what this mix needs.
const memoryLimit = 600 << 20

// check is all that is looked at when the programs have ended.
func (r *tortureRun) check() {
	hung := len(r.problems) > 0
	m, err := readModel(r.o, r.daemons)
	if err != nil {
		r.problem("%v", err)
		return
	}
	start := time.Now()
	step := func(what string, check func()) {
		fmt.Printf("%4.0f s  checking %s\n", time.Since(start).Seconds(), what)
		check()
	}
	step("the files", func() { m.checkFiles(r.o) })
	if !hung { // else the daemons were ended
		step("the mounts", func() { r.checkMounts(m, &client{process: &process{options: r.o}}) })
		step("with the real client", func() { r.checkRealClient(m) })
		step("crawls", r.checkCrawls)
		step("what is left", func() { r.checkLeaks(m) })
	}
	r.problems = append(r.problems, m.problems...)
	r.print(m)
}

// checkMounts compares what both mounts show of each session with its file, after another write through one of them,
// which a lock or a torn end that a kill left must not hinder.
func (r *tortureRun) checkMounts(m *model, c *client) {
	for n, s := range m.sorted() {
		mount := mounts[n%len(mounts)]
		id := fmt.Sprintf("last-%d", n)
		done, _, err := c.control(c.mounted(mount, s.name+"/append"), newEntry(id, "user", 30, 0).line("", false))
		if done != 1 {
			m.problem("the last append to %s in %s: %v: %s", s.name, mount, err, readText(c.mounted(mount, s.name+"/last-error")))
			continue
		}
		file, err := readSession(filepath.Join(r.o.source(), s.name+".jsonl"))
		if err != nil {
			m.problem("%v", err)
			continue
		}
		for _, mount := range mounts {
			m.compareMount(c, mount, s.name, file)
		}
		for _, f := range s.forks {
			if done, _, err := c.control(c.mounted(mount, f.place+"/append"), newEntry(id, "user", 30, 0).line("", false)); done != 1 {
				m.problem("the last append to the fork %s in %s: %v", f.place, mount, err)
			}
		}
		m.counts["sessions compared"]++
	}
}

// compareMount compares what a mount shows of a session with its file.
func (m *model) compareMount(c *client, mount, name string, file *session) {
	in := func(view string) string { return readText(c.mounted(mount, path.Join(name, view))) }
	at, err := c.leafOf(mount, name)
	if want := file.leaf(); err != nil || textOf(at) != textOf(want) {
		m.problem("%s in %s: the leaf is %s, %v, not %s", name, mount, textOf(at), err, textOf(want))
	}
	if title := strings.TrimSuffix(in("title"), "\n"); title != file.title() {
		m.problem("%s in %s: the title is %q, not %q", name, mount, title, file.title())
	}
	labels := map[string]string{}
	for text := range strings.Lines(in("labels")) {
		id, label, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\t")
		labels[id] = label
	}
	if want := file.labels(); !maps.Equal(labels, want) {
		m.problem("%s in %s: the labels are %v, not %v", name, mount, labels, want)
	}
	entries, err := os.ReadDir(c.mounted(mount, path.Join(name, "entries")))
	if err != nil || len(entries) != len(file.lines) {
		m.problem("%s in %s: %d entries, %v, not %d", name, mount, len(entries), err, len(file.lines))
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
func (r *tortureRun) checkRealClient(m *model) {
	if r.o.bun == "" {
		return
	}
	real, err := startReal(r.o)
	if err != nil {
		m.problem("the real client: %v", err)
		return
	}
	defer real.kill()
	for _, s := range m.sorted() {
		name := filepath.Join(r.o.source(), s.name+".jsonl")
		file, err := readSession(name)
		if err != nil {
			continue // was said before
		}
		a, err := real.ask("look", name, "")
		if err != nil || a.Error != "" {
			m.problem("the real client cannot open %s: %v %s", s.name, err, a.Error)
			if err != nil {
				return
			}
			continue
		}
		var ids []string
		for _, l := range file.lines {
			ids = append(ids, l.ID)
		}
		if !slices.Equal(a.Entries, ids) {
			m.problem("the real client has %d entries of %s, not the %d that are there", len(a.Entries), s.name, len(ids))
		}
		if !maps.Equal(a.Labels, file.labels()) || a.Title != file.title() {
			m.problem("the real client has %v and %q of %s, not %v and %q", a.Labels, a.Title, s.name, file.labels(), file.title())
		}
		m.counts["sessions opened by the real client"]++
	}
}

// checkCrawls: at rest, programs that walk everything end without a complaint.
func (r *tortureRun) checkCrawls() {
	for n, script := range []string{`find "$1" -ls`, `grep -ra first-question "$1"`, `tar -cf - "$1"`} {
		cmd := exec.Command("sh", "-c", script+" | wc -c", "sh", filepath.Join(r.o.dir, mounts[n%len(mounts)]))
		var problems strings.Builder
		cmd.Stderr = &problems
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		err := cmd.Start()
		if err == nil {
			timer := time.AfterFunc(3*r.o.limit, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
			err = cmd.Wait()
			timer.Stop()
		}
		if text := strings.ReplaceAll(problems.String(), "tar: Removing leading `/' from member names\n", ""); err != nil || text != "" {
			r.problem("%s on all: %v: %.500s", script, err, text)
		}
	}
}
