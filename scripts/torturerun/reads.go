package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// any returns any session.
func (c *client) any(d draw) string {
	switch d.session % 8 {
	case 0:
		return damagedSession(int(d.target % damagedMany))
	case 1:
		return rewrittenSession(int(d.target % rewrittenMany))
	case 2:
		return turnsSession(int(d.target % turnsMany))
	case 3, 4:
		return path.Join(ownProject(int(d.target%uint64(c.clients))), pick([]string{"first", "slot"}, d.target>>16))
	}
	return c.sharedNow(d)
}

// views are the generated files of a session.
var views = []string{
	"context.json", "header.json", "usage.json", "transcript.md", "title", "labels", "problems.jsonl", "branches.tsv",
	"last-error", "branches/current/entries.jsonl", "branches/current/context.json", "branches/current/transcript.md",
}

// read reads a generated file: JSON must be whole.
func (c *client) read(d draw) {
	session, view, mount := c.any(d), pick(views, d.size), d.mountOf()
	file := path.Join(session, view)
	_ = c.attempt("read", mount, file, damagedErrors, func() error {
		data, err := os.ReadFile(c.mounted(mount, file))
		if err == nil && strings.HasSuffix(view, ".json") && !json.Valid(data) {
			c.problem("%s in %s is no JSON: %d bytes: %.80q", file, mount, len(data), data)
		}
		return err
	})
}

// readEntry lists the entries of a session and reads some of them.
func (c *client) readEntry(d draw) {
	session, mount := c.any(d), d.mountOf()
	dir := c.mounted(mount, path.Join(session, "entries"))
	_ = c.attempt("entries", mount, session, damagedErrors, func() error {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		names, err := f.Readdirnames(-1)
		f.Close()
		for i := 0; i < 5 && err == nil && len(names) > 0; i++ {
			var data []byte
			name := pick(names, d.size>>(i*8))
			if data, err = os.ReadFile(filepath.Join(dir, name)); err == nil && !json.Valid(data) {
				c.problem("entry %s of %s in %s is no JSON: %.80q", name, session, mount, data)
			}
		}
		return err
	})
}

// found are the ways to find sessions.
var found = []string{"index.jsonl", "recent", "by-id", "by-cwd/torture", "continue", "last-error", "sessions/--torture-shared--", "history/prompts.jsonl", "."}

func (c *client) find(d draw) {
	place, mount := pick(found, d.target), d.mountOf()
	allowed := damagedErrors
	if strings.HasPrefix(place, "history/") {
		allowed = historyErrors
	}
	_ = c.attempt("find", mount, place, allowed, func() error {
		at := c.mounted(mount, place)
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			f, err := os.Open(at)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.Copy(io.Discard, f)
			return err
		}
		_, err = os.ReadDir(at) // which stats, too
		return err
	})
}

// search searches the history.
func (c *client) search(d draw) {
	mount := d.mountOf()
	word := fmt.Sprintf("word%d", d.target%1000)
	_ = c.attempt("search", mount, word, historyErrors, func() error {
		data, err := os.ReadFile(c.mounted(mount, "history/search/"+word))
		for line := range strings.Lines(string(data)) {
			if !strings.Contains(line, word) {
				c.problem("a search for %s in %s found %.80q", word, mount, line)
				break
			}
		}
		return err
	})
}

// refused tries what no mount permits.
func (c *client) refused(d draw) {
	session, mount := c.any(d), d.mountOf()
	at := c.mounted(mount, session)
	tries := map[string]func() error{
		"remove":     func() error { return os.Remove(at + ".jsonl") },
		"remove dir": func() error { return os.Remove(at) },
		"rename":     func() error { return os.Rename(at, at+"-moved") },
		"truncate":   func() error { return truncated(at + ".jsonl") },
		"create":     func() error { return os.WriteFile(filepath.Join(at, "entries", "new.json"), nil, 0o600) },
	}
	names := []string{"remove", "remove dir", "rename", "truncate", "create"}
	what := pick(names, d.size)
	_ = c.attempt("refused", mount, session, append([]syscall.Errno{syscall.EROFS, syscall.ENOTEMPTY}, damagedErrors...), func() error {
		err := tries[what]()
		if err == nil {
			c.problem("%s of %s in %s was not refused", what, session, mount)
		}
		return err
	})
}

// truncated opens a raw file to write, but no link.
func truncated(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err == nil {
		f.Close()
	}
	return err
}

// crawls are programs that walk whatever they can list; $1 is where.
var crawls = []string{
	`find "$1" -ls`, `grep -r first-question "$1"`, `tar -cf - "$1"`, `rg -uuu --no-messages first-answer "$1"`, `ls -lR "$1"`, `du -a "$1"`,
	`rsync -an "$1/" /nowhere/`, `cat "$1"/entries/*`,
}

// crawl runs such a program on a session, now and then on a project. While sessions change, it may complain.
func (c *client) crawl(d draw) {
	at := c.any(d)
	if d.size%16 == 0 {
		at = ownProject(int(d.target % uint64(c.clients)))
	}
	c.tool(d, at, c.limit/2)
}

// crawlKilled kills it in the middle.
func (c *client) crawlKilled(d draw) {
	c.tool(d, c.any(d), time.Duration(d.size>>8%50)*time.Millisecond)
}

// tool runs a crawl until it ends, or is killed after a while: then it must be gone soon.
func (c *client) tool(d draw, at string, until time.Duration) {
	mount, script := d.mountOf(), pick(crawls, d.size)
	_ = c.during(fmt.Sprintf("%s in %s on %s", script, mount, at), func() error {
		cmd := exec.Command("sh", "-c", script, "sh", c.mounted(mount, at))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		timer := time.AfterFunc(until, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		defer timer.Stop()
		err := cmd.Wait()
		var exit *exec.ExitError
		switch {
		case err == nil:
			c.count("crawl")
		case errors.As(err, &exit) && exit.ProcessState.Sys().(syscall.WaitStatus).Signaled():
			c.count("crawl killed")
		default:
			c.count("crawl with complaints")
		}
		return nil
	})
}
