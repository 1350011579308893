package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// own is a session to which only this client writes.
type own struct {
	path    string
	ids     []string // entries that are there, the targets of leaf, labels and fork
	at      *string  // the leaf
	known   bool     // whether that is so: after the daemon's death, and after a label, it is looked up
	slot    bool     // it has a title slot
	durable bool     // it is on disk
	mount   string   // where it is, as long as it is not
	entries int
}

// goneAfter is how long a session that was not on disk is looked for, after its daemon was killed.
const goneAfter = 3 * time.Second

// use chooses an own session and a mount to write to it, and finds out where its leaf is. It returns nil where the
// session is gone, which may only be if it never was on disk.
func (c *client) use(d draw) (*own, string) {
	n := int(d.session % uint64(len(c.own)))
	s := c.own[n]
	if s.entries > ownEntries {
		return nil, ""
	}
	mount := d.mountOf()
	if !s.durable {
		mount = s.mount
	}
	if !s.known && !c.lookUp(s, mount) {
		c.write(note{Do: "gone", Session: s.path})
		if s.durable {
			c.problem("%s is gone", s.path)
		}
		c.own = append(c.own[:n], c.own[n+1:]...)
		if len(c.own) == 0 {
			c.stopped.Store(true)
		}
		return nil, ""
	}
	return s, mount
}

// lookUp finds out where the leaf is.
func (c *client) lookUp(s *own, mount string) bool {
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		at, err := (*string)(nil), error(nil)
		_ = c.during("readlink leaf of "+s.path+" in "+mount, func() error { at, err = c.leafOf(mount, s.path); return err })
		switch waited := time.Since(start); {
		case err == nil:
			s.at, s.known = at, true
			return true
		case errors.Is(err, syscall.ENOENT) && !s.durable && waited > goneAfter, waited > c.limit:
			return false
		}
	}
}

// after records what became of a write.
func (s *own) after(err error) {
	if isUnclear(err) {
		s.known = false
	}
}

func (c *client) putOwn(d draw, entries ...entry) {
	s, mount := c.use(d)
	if s == nil {
		return
	}
	done, err := c.appended(mount, s.path, entries, s.at, writeErrors)
	for _, e := range entries[:done] {
		s.ids, s.at = append(s.ids, e.id), ref(e.id)
		s.durable = s.durable || e.what == "assistant"
	}
	s.entries += len(entries)
	if errors.Is(err, syscall.ENOENT) && !s.durable {
		s.known = false
	}
	s.after(err)
}

func (c *client) appendOwn(d draw) { c.putOwn(d, c.oneEntry(d)...) }

func (c *client) batchOwn(d draw) {
	entries := make([]entry, 4)
	for i := range entries {
		entries[i] = newEntry(c.id(), pick([]string{"custom", "user", "assistant"}, d.target>>i), d.sizeOf()/4, 0)
	}
	c.putOwn(d, entries...)
}

func (c *client) imageOwn(d draw) {
	c.putOwn(d, newEntry(c.id(), "user", 20, 800+int(d.size%5000)))
}

// moveOwn makes another entry the leaf, or none.
func (c *client) moveOwn(d draw) {
	s, mount := c.use(d)
	if s == nil || len(s.ids) == 0 {
		return
	}
	target, id := "tree", (*string)(nil)
	if d.target%8 > 0 {
		id = ref(pick(s.ids, d.target>>3))
		target = "entries/" + *id + ".json"
	}
	if s.at == id || s.at != nil && id != nil && *s.at == *id {
		return // would write nothing
	}
	before := note{Do: "leaf", Session: s.path}
	if id != nil {
		before.IDs = []string{*id}
	}
	n := c.write(before)
	err := c.attempt("leaf", mount, s.path, writeErrors, func() error { return c.link(mount, s.path, target) })
	after := note{Of: n, Maybe: isUnclear(err)}
	if err == nil {
		after.Acked, s.at = 1, id
	}
	c.write(after)
	s.after(err)
}

func (c *client) labelOwn(d draw) {
	s, mount := c.use(d)
	if s == nil || len(s.ids) == 0 {
		return
	}
	id, label := pick(s.ids, d.target), c.id()
	done, _, err := c.acked(mount, note{Do: "label", Session: s.path, IDs: []string{id}, Text: label, Under: s.at}, "labels", id+" "+label+"\n", writeErrors)
	if done > 0 {
		s.known = false // at the label's entry, whose id nobody knows
	}
	s.after(err)
}

func (c *client) titleOwn(d draw) {
	s, mount := c.use(d)
	if s == nil {
		return
	}
	title := "title " + c.id()
	done, _, err := c.acked(mount, note{Do: "title", Session: s.path, Text: title}, "title", title+"\n", writeErrors)
	if done > 0 && s.slot {
		s.known = false
	}
	s.after(err)
}

func (c *client) forkOwn(d draw) {
	s, mount := c.use(d)
	if s == nil || !s.durable || len(s.ids) == 0 {
		return
	}
	id := pick(s.ids, d.target)
	done, answer, err := c.acked(mount, note{Do: "fork", Session: s.path, IDs: []string{id}}, "fork", id+"\n", writeErrors)
	// Where the daemon was killed before it told where the fork is, it is there nevertheless.
	if place := strings.TrimSuffix(answer, "\n"); done > 0 && err == nil && place != "" && path.Dir(place) != path.Dir(s.path) {
		c.problem("a fork of %s is at %q", s.path, place)
	}
}

// newOwn makes a session and goes on with it.
func (c *client) newOwn(d draw) {
	mount := d.mountOf()
	n := c.write(note{Do: "new"})
	answer := ""
	err := c.attempt("new-session", mount, "", writeErrors, func() (err error) {
		_, answer, err = c.control(c.mounted(mount, "new-session"), fmt.Sprintf(`{"cwd":"/torture/own-%d","title":"new"}`+"\n", c.number))
		return err
	})
	place := strings.TrimSuffix(answer, "\n")
	if err != nil || place == "" {
		c.write(note{Of: n, Maybe: isUnclear(err)})
		return
	}
	c.write(note{Of: n, Acked: 1, Text: place})
	c.own = append(c.own, &own{path: place, known: true, mount: mount})
}

// syncOwn makes a session durable.
func (c *client) syncOwn(d draw) {
	s, mount := c.use(d)
	if s == nil {
		return
	}
	n := c.write(note{Do: "sync", Session: s.path})
	err := c.attempt("sync", mount, s.path, writeErrors, func() error {
		f, err := os.OpenFile(c.mounted(mount, path.Join(s.path, "append")), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
	if err == nil {
		s.durable = true
		c.write(note{Of: n, Acked: 1})
	} else if !s.durable {
		s.known = false
	}
	s.after(err)
}

// checkOwn looks at an own session through either mount: it must show what was acknowledged.
func (c *client) checkOwn(d draw) {
	s, mount := c.use(d)
	if s == nil {
		return
	}
	var at *string
	err := c.attempt("check", mount, s.path, readErrors, func() (err error) { at, err = c.leafOf(mount, s.path); return err })
	if err == nil && (at == nil) != (s.at == nil) || err == nil && at != nil && *at != *s.at {
		c.problem("the leaf of %s in %s is at %s, not at %s", s.path, mount, textOf(at), textOf(s.at))
	}
	if s.at == nil || len(s.ids) == 0 || s.ids[len(s.ids)-1] != *s.at {
		return
	}
	file := filepath.Join(s.path, "entries", *s.at+".json")
	err = c.attempt("check", mount, file, readErrors, func() error { _, err := os.ReadFile(c.mounted(mount, file)); return err })
	if !s.durable && err != nil {
		s.known = false
	}
}

func textOf(id *string) string {
	if id == nil {
		return "none"
	}
	return *id
}
