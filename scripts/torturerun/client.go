package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// client is a program that uses the mounts.
type client struct {
	*process
	own []*own
	did int // commands
}

// The errors that a call may end with. Files are moved away and back, and the daemons killed, all the time.
var (
	readErrors    = []syscall.Errno{syscall.ENOENT, syscall.ESTALE, syscall.EBUSY}
	historyErrors = append(readErrors, syscall.EIO) // whose reason checkLog looks at
	writeErrors   = []syscall.Errno{syscall.ENOENT, syscall.ESTALE, syscall.EBUSY}
	damagedErrors = []syscall.Errno{
		syscall.ENOENT, syscall.ESTALE, syscall.EBUSY, syscall.EINVAL, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP,
		syscall.ENXIO, syscall.EPERM, syscall.EACCES, syscall.EEXIST, syscall.EFBIG,
	}
)

var clientCommands = []weighted[func(*client, draw)]{
	{18, (*client).appendOwn}, {4, (*client).batchOwn}, {2, (*client).imageOwn}, {6, (*client).moveOwn}, {6, (*client).labelOwn},
	{2, (*client).titleOwn}, {2, (*client).forkOwn}, {2, (*client).newOwn}, {2, (*client).syncOwn}, {8, (*client).checkOwn},
	{16, (*client).appendShared}, {3, (*client).labelShared}, {5, (*client).appendRewritten}, {1, (*client).titleRewritten},
	{4, (*client).appendTurns}, {6, (*client).writeDamaged},
	{12, (*client).read}, {6, (*client).readEntry}, {4, (*client).find}, {3, (*client).search}, {2, (*client).refused},
	{2, (*client).crawl}, {1, (*client).crawlKilled},
}

func runClient(o *options) error {
	p, err := start(o)
	if err != nil {
		return err
	}
	c := &client{process: p}
	for _, name := range []string{"first", "slot"} {
		c.own = append(c.own, &own{
			path: path.Join(ownProject(o.number), name), ids: []string{rootID, answerID}, at: ref(answerID), known: true, durable: true,
			slot: name == "slot",
		})
	}
	for d := newDrawer(o); !p.stopped.Load(); c.did++ {
		command := d.next()
		choose(clientCommands, command.kind)(c, command)
	}
	return p.end()
}

func ref(id string) *string { return &id }

// id makes the id of a new entry.
func (c *client) id() string {
	c.process.mu.Lock()
	defer c.process.mu.Unlock()
	c.process.n++
	return fmt.Sprintf("c%d-%d", c.number, c.process.n)
}

// control writes text to a control file in one write(2), and returns how many lines took effect, and what can be read
// back.
func (c *client) control(file, text string) (lines int, answer string, err error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	n, err := f.WriteString(text)
	lines = strings.Count(text[:n], "\n")
	if lines == 0 {
		return 0, "", err
	}
	buf := make([]byte, 4096)
	got, _ := f.Read(buf) // io.EOF for files that answer nothing
	return lines, string(buf[:got]), err
}

// acked writes to a control file, with a note before and after it. done reports whether all took effect.
func (c *client) acked(mount string, before note, file, text string, allowed []syscall.Errno) (done int, answer string, err error) {
	n := c.write(before)
	err = c.attempt(before.Do, mount, before.Session, allowed, func() (err error) {
		done, answer, err = c.control(c.mounted(mount, path.Join(before.Session, file)), text)
		return err
	})
	after := note{Of: n, Acked: done, Maybe: isUnclear(err)}
	if err != nil {
		after.Error = err.Error()
	}
	if before.Do == "fork" {
		after.Text = strings.TrimSuffix(answer, "\n")
	}
	c.write(after)
	return done, answer, err
}

// appended appends entries to a session, and looks at what is read back.
func (c *client) appended(mount, session string, entries []entry, under *string, allowed []syscall.Errno) (done int, err error) {
	before := note{Do: "append", Session: session, Under: under}
	text := ""
	for _, e := range entries {
		before.IDs, before.Sizes = append(before.IDs, e.id), append(before.Sizes, e.size)
		before.Answer = before.Answer || e.what == "assistant"
		text += e.line("", false)
	}
	done, answer, err := c.acked(mount, before, "append", text, allowed)
	if want := strings.Join(before.IDs[:done], "\n"); err == nil && strings.TrimSuffix(answer, "\n") != want {
		c.write(note{
			Problem: fmt.Sprintf("append to %s in %s gave back %.200q, not %q", session, mount, answer, want), Mount: mount,
			From: time.Now().Add(-time.Second).UnixMilli(), To: time.Now().UnixMilli(),
		})
	}
	return done, err
}

// leafOf reads where a session's leaf is: nil before the first entry.
func (c *client) leafOf(mount, session string) (*string, error) {
	target, err := os.Readlink(c.mounted(mount, path.Join(session, "leaf")))
	if err != nil {
		return nil, err
	}
	if target == "tree" {
		return nil, nil
	}
	return ref(strings.TrimSuffix(filepath.Base(target), ".json")), nil
}

func (c *client) sharedNow(d draw) string {
	set := min(c.did/sharedFor, sharedSets-1)
	return sharedSession(set*sharedAtOnce + int(d.session%sharedAtOnce))
}

func (c *client) oneEntry(d draw) []entry {
	return []entry{newEntry(c.id(), pick([]string{"custom", "user", "assistant"}, d.target), d.sizeOf(), 0)}
}

func (c *client) appendShared(d draw) {
	_, _ = c.appended(d.mountOf(), c.sharedNow(d), c.oneEntry(d), nil, writeErrors)
}

func (c *client) appendRewritten(d draw) {
	_, _ = c.appended(d.mountOf(), rewrittenSession(int(d.session%rewrittenMany)), c.oneEntry(d), nil, writeErrors)
}

func (c *client) appendTurns(d draw) {
	_, _ = c.appended(d.mountOf(), turnsSession(int(d.session%turnsMany)), c.oneEntry(d), nil, writeErrors)
}

// labelShared labels an entry that all sessions have, with a label that nobody else sets.
func (c *client) labelShared(d draw) {
	label := c.id()
	_, _, _ = c.acked(d.mountOf(), note{Do: "label", Session: c.sharedNow(d), IDs: []string{rootID}, Text: label}, "labels",
		rootID+" "+label+"\n", writeErrors)
}

func (c *client) titleRewritten(d draw) {
	title := "title " + c.id()
	_, _, _ = c.acked(d.mountOf(), note{Do: "title", Session: rewrittenSession(int(d.session % rewrittenMany)), Text: title}, "title",
		title+"\n", writeErrors)
}

// writeDamaged writes in any way to a session that others damage.
func (c *client) writeDamaged(d draw) {
	session, mount := damagedSession(int(d.session%damagedMany)), d.mountOf()
	switch d.target % 5 {
	case 0:
		_, _, _ = c.acked(mount, note{Do: "title", Session: session, Text: "t"}, "title", "title "+c.id()+"\n", damagedErrors)
	case 1:
		_, _, _ = c.acked(mount, note{Do: "label", Session: session}, "labels", rootID+" "+c.id()+"\n", damagedErrors)
	case 2:
		_ = c.attempt("leaf", mount, session, damagedErrors, func() error { return c.link(mount, session, "entries/"+rootID+".json") })
	default:
		_, _ = c.appended(mount, session, c.oneEntry(d), nil, damagedErrors)
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
