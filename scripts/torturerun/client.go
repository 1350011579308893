package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// client is a program that uses the mounts.
type client struct {
	*program
	own []*own
	did uint64 // commands
}

// The errors that a call may end with. Files are moved away and back, and the daemons killed, all the time.
var (
	mayEnd        = []syscall.Errno{syscall.ENOENT, syscall.ESTALE, syscall.EBUSY}
	mayEndDamaged = append(mayEnd, syscall.EINVAL, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENXIO, syscall.EPERM,
		syscall.EACCES, syscall.EEXIST, syscall.EFBIG)
)

// clientCommands are the commands of a client, each as often as it is to be drawn.
var clientCommands = slices.Concat(
	times(18, onOwn(appendOwn(1))), times(4, onOwn(appendOwn(4))), times(6, onOwn((*client).moveOwn)), times(6, onOwn((*client).labelOwn)),
	times(2, onOwn((*client).titleOwn)), times(2, (*client).newOwn), times(2, onOwn((*client).syncOwn)), times(2, onOwn((*client).cwdOwn)),
	times(8, onOwn((*client).checkOwn)),
	times(25, (*client).appendOthers), times(3, (*client).labelShared), times(6, (*client).writeDamaged),
	times(22, (*client).read), times(3, (*client).crawl),
)

// newClient returns the client of a program, which begins with two own sessions.
func newClient(p *program) *client {
	c := &client{program: p}
	for _, name := range []string{"first", "slot"} {
		s := &own{
			path: ownSession(p.number, name),
			ids:  []string{rootID, answerID},
			at:   new(answerID),
			slot: name == "slot",
		}
		c.own = append(c.own, s)
		c.expect(s.path, func(*expected) {})
	}
	return c
}

// next draws a command and runs it.
func (c *client) next() {
	d := c.draw()
	command := pick(clientCommands, d.kind)
	command(c, d)
	c.did++
}

// control writes text to a control file in one write(2), and returns the outcome of its lines, and the answer that can be
// read back, "" for none. The kernel may divide a long write.
func (o *options) control(file, text string) (out outcome, answer string, err error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return out, "", err
	}
	defer f.Close()
	n, err := f.WriteString(text)
	isCutOff := n > 0 && errors.Is(err, syscall.ENOTCONN) // the daemon died between two parts of the write
	out = outcome{
		acked: strings.Count(text[:n], "\n"),
		maybe: isUnclear(err) || isCutOff,
	}
	if out.acked == 0 {
		return out, "", err
	}
	buffer := make([]byte, 4096)
	size, _ := f.Read(buffer) // io.EOF for files that answer nothing
	return out, strings.TrimSuffix(string(buffer[:size]), "\n"), err
}

// written writes a text to a control file of a session in a mount, as attempt does: what names the call. It returns the
// outcome of the lines and the answer, as control does.
func (c *client) written(what, mount, session, file, text string, allowed []syscall.Errno) (out outcome, answer string, err error) {
	err = c.attempt(what, mount, session, allowed, func() (err error) {
		out, answer, err = c.control(c.mounted(mount, session, file), text)
		return err
	})
	return out, answer, err
}

// append appends entries to a session, under an entry where that is known, checks the answer, which has their ids, and
// returns how many of them are there. An error beside the allowed ones is a problem.
func (c *client) append(mount, session string, entries []entry, under *string, allowed []syscall.Errno) (there int, err error) {
	var ids []string
	text := ""
	from := time.Now()
	for _, e := range entries {
		ids = append(ids, e.id)
		text += e.line("", false)
	}
	out, answer, err := c.written("append", mount, session, "append", text, allowed)
	there = c.appended(c.name, session, entries, under, out)
	want := strings.Join(ids[:out.acked], "\n")
	if err == nil && answer != want {
		c.problemOf(mount, from, "append to %s gave back %.200q, not %q", session, answer, want)
	}
	return there, err
}

// leafOf reads where a session's leaf is: nil before the first entry.
func (o *options) leafOf(mount, session string) (*string, error) {
	target, err := os.Readlink(o.mounted(mount, session, "leaf"))
	if err != nil || target == "tree" {
		return nil, err
	}
	return new(strings.TrimSuffix(filepath.Base(target), ".json")), nil
}

// sharedNow returns one of the shared sessions that are in use now: the clients go from set to set.
func (c *client) sharedNow(d draw) string {
	set := min(c.did/sharedFor, sharedSets-1)
	return sharedSession(set*sharedAtOnce + d.session%sharedAtOnce)
}

// appendOthers appends to a session that others write to as well.
func (c *client) appendOthers(d draw) {
	session := c.sharedNow(d)
	share := d.kind >> 16 % 25 // the lower bits have chosen the command
	switch {
	case share < 5:
		session = rewrittenSession(d.session)
	case share < 9:
		session = turnsSession(d.session)
	}
	_, _ = c.append(d.mountOf(), session, []entry{c.entry(d)}, nil, mayEnd)
}

// labelShared labels an entry that all sessions have, with a label that nobody else sets.
func (c *client) labelShared(d draw) {
	session := c.sharedNow(d)
	label := c.id()
	out, _, _ := c.written("label", d.mountOf(), session, "labels", rootID+" "+label+"\n", mayEnd)
	c.wants(c.name, session, out, fmt.Sprintf("label %s of %s", label, rootID))
}

// writeDamaged writes in any way to a session that others damage.
func (c *client) writeDamaged(d draw) {
	session, mount := damagedSession(d.session), d.mountOf()
	switch d.target % 5 {
	case 0:
		_, _, _ = c.written("title", mount, session, "title", "title "+c.id()+"\n", mayEndDamaged)
	case 1:
		_, _, _ = c.written("label", mount, session, "labels", rootID+" "+c.id()+"\n", mayEndDamaged)
	case 2:
		_ = c.attempt("leaf", mount, session, mayEndDamaged, func() error { return c.link(mount, session, "entries/"+rootID+".json") })
	default:
		_, _ = c.append(mount, session, []entry{c.entry(d)}, nil, mayEndDamaged)
	}
}

// link replaces the leaf as ln -sfn does.
func (c *client) link(mount, session, target string) error {
	dir := c.mounted(mount, session)
	temporary := filepath.Join(dir, "Cu"+c.id())
	if err := os.Symlink(target, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, "leaf"))
}

// any returns the name of any session: in a quarter of the draws one that a client began with.
func (c *client) any(d draw) string {
	if d.session%8 < 2 {
		owner := int(d.target % uint64(c.clients))
		name := pick([]string{"first", "slot"}, d.target>>16)
		return ownSession(owner, name)
	}
	kinds := []func(uint64) string{damagedSession, rewrittenSession, turnsSession, sharedSession, sharedSession}
	session := pick(kinds, d.session)
	return session(d.target)
}

// views are the generated files of a session, and places are ways to find sessions.
var (
	views = []string{
		"context.json", "header.json", "usage.json", "transcript.md", "title", "labels", "problems.jsonl", "branches.tsv",
		"last-error", "entries", "entries/" + rootID + ".json", "branches/current/entries.jsonl", "branches/current/context.json", "branches/current/transcript.md",
	}
	places = []string{"index.jsonl", "recent", "by-id", "by-cwd/torture", "continue", "last-error", "sessions/--torture-shared--", "search/first-answer/sessions", "."}
)

// read reads a generated file of any session, or, in a quarter of the draws, a place to find sessions.
func (c *client) read(d draw) {
	name := path.Join(c.any(d), pick(views, d.size))
	if d.kind>>16%4 == 0 {
		name = pick(places, d.size)
	}
	mount := d.mountOf()
	_ = c.attempt("read", mount, name, mayEndDamaged, func() error { return c.readFile(mount, name) })
}

// readFile reads a file, or lists a directory. JSON must be whole.
func (c *client) readFile(mount, name string) error {
	data, err := os.ReadFile(c.mounted(mount, name))
	if errors.Is(err, syscall.EISDIR) {
		_, err = os.ReadDir(c.mounted(mount, name)) // which stats, too
	} else if err == nil && strings.HasSuffix(name, ".json") && !json.Valid(data) {
		c.problem("%s in %s is no JSON: %d bytes: %.80q", name, mount, len(data), data)
	}
	return err
}

// crawls are programs that walk whatever they can list; $1 is where.
var crawls = []string{
	`find "$1" -ls`, `grep -r first-question "$1"`, `tar -cf - "$1"`, `rg -uuu --no-messages first-answer "$1"`, `du -a "$1"`,
	`rsync -an "$1/" /nowhere/`, `cat "$1"/entries/*`,
}

// crawl runs such a program until it ends, or, often, is killed in the middle: then it must be gone soon. While sessions
// change, it may complain.
func (c *client) crawl(d draw) {
	mount := d.mountOf()
	at := c.any(d)
	script := pick(crawls, d.size)
	until := callLimit / 2
	if d.kind>>16%3 == 0 {
		until = time.Duration(d.size>>8%50) * time.Millisecond
	}
	_ = c.during(fmt.Sprintf("%s in %s on %s", script, mount, at), func() error {
		_, _ = runScript(script, c.mounted(mount, at), until)
		return nil
	})
	c.count("crawl")
}

// secret is in every session that nobody damages, and no reader of the redacted mount may see it.
const secret = "ghp" + "_" + "R7tq2LmX9vKc4WzN8bHdY3fJp6sGa1uEoQ5i"

// lookForSecret looks for it in a session, or in the files about all sessions.
func (c *client) lookForSecret() {
	d := c.draw()
	found := ""
	at := c.any(d)
	if d.kind%4 == 0 {
		at = pick([]string{"index.jsonl", "recent", "by-cwd", "search/first-question"}, d.target)
	}
	_ = c.during("the search for a secret in "+at, func() error {
		found, _ = runScript(`{ grep -ra `+secret+` "$1"; find "$1" -printf '%P %l\n' | grep `+secret+`; } >&2`, c.mounted(redacted, at), callLimit/2)
		return nil
	})
	for text := range strings.Lines(found) {
		if strings.Contains(text, secret) {
			c.problem("the redacted mount shows a secret in %s: %.300s", at, text)
		}
	}
	c.count("looked for a secret")
}

// runScript runs a script on a path, its $1, until it ends or is killed after the time until, and returns its stderr. It is
// killed also where this program has ended: some go on asking a mount that is gone.
func runScript(script, at string, until time.Duration) (complaints string, err error) {
	after := fmt.Sprint((until + time.Millisecond).Seconds()) // 0 would be never
	cmd := exec.Command("timeout", "-s", "KILL", after, "sh", "-c", script, "sh", at)
	var out strings.Builder
	cmd.Stderr = &out
	err = cmd.Run()
	return out.String(), err
}
