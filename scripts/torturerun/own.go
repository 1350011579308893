package main

import (
	"errors"
	"fmt"
	"os"
	"path"
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
	if len(c.own) == 0 { // which is a problem already
		return nil, ""
	}
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
		if s.durable {
			c.problem("%s is gone", s.path)
		}
		c.own = append(c.own[:n], c.own[n+1:]...)
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

// after records what became of a write: whether the leaf is known.
func (s *own) after(err error) {
	if isUnclear(err) || errors.Is(err, syscall.ENOENT) && !s.durable {
		s.known = false
	}
}

func (c *client) putOwn(d draw, entries ...entry) {
	s, mount := c.use(d)
	if s == nil {
		return
	}
	done, err := c.append(mount, s.path, entries, s.at, mayEnd)
	for _, e := range entries[:done] {
		s.ids, s.at = append(s.ids, e.id), ref(e.id)
		if e.what == "assistant" && !s.durable {
			s.durable = true
			c.isDurable(s.path)
		}
	}
	s.entries += len(entries)
	s.after(err)
}

func (c *client) appendOwn(d draw) { c.putOwn(d, c.entry(d)) }

func (c *client) batchOwn(d draw) {
	entries := make([]entry, 4)
	for i := range entries {
		entries[i] = c.entry(draw{target: d.target >> i, size: d.size})
	}
	c.putOwn(d, entries...)
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
	if textOf(s.at) == textOf(id) {
		return // would write nothing
	}
	err := c.attempt("leaf", mount, s.path, mayEnd, func() error { return c.link(mount, s.path, target) })
	out := outcome{maybe: isUnclear(err)}
	if err == nil {
		out.acked, s.at = 1, id
	}
	c.wants(c.name, s.path, out, "leaf "+textOf(id))
	s.after(err)
}

func (c *client) labelOwn(d draw) {
	s, mount := c.use(d)
	if s == nil || len(s.ids) == 0 {
		return
	}
	id, label := pick(s.ids, d.target), c.id()
	out, _, err := c.written("label", mount, s.path, "labels", id+" "+label+"\n", mayEnd)
	c.wants(c.name, s.path, out, fmt.Sprintf("label %s of %s under %s", label, id, textOf(s.at)))
	s.known = out.acked == 0 // else at the label's entry, whose id nobody knows
	s.after(err)
}

func (c *client) titleOwn(d draw) {
	s, mount := c.use(d)
	if s == nil {
		return
	}
	title := "title " + c.id()
	out, _, err := c.written("title", mount, s.path, "title", title+"\n", mayEnd)
	c.titled(s.path, title, out)
	if s.slot { // then a line says so, too
		c.wants(c.name, s.path, out, "title "+title)
		s.known = out.acked == 0
	}
	s.after(err)
}

// newOwn makes a session and goes on with it.
func (c *client) newOwn(d draw) {
	mount, line := d.mountOf(), fmt.Sprintf(`{"cwd":"/torture/own-%d","title":"new"}`+"\n", c.number)
	if _, place, err := c.written("new", mount, "", "new-session", line, mayEnd); err == nil && place != "" {
		c.own = append(c.own, &own{path: place, known: true, mount: mount})
	}
}

// syncOwn makes a session durable.
func (c *client) syncOwn(d draw) {
	s, mount := c.use(d)
	if s == nil {
		return
	}
	err := c.attempt("sync", mount, s.path, mayEnd, func() error {
		f, err := os.OpenFile(c.mounted(mount, s.path, "append"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
	if err == nil {
		s.durable = true
		c.isDurable(s.path)
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
	err := c.attempt("check", mount, s.path, mayEnd, func() (err error) { at, err = c.leafOf(mount, s.path); return err })
	if err == nil && textOf(at) != textOf(s.at) {
		c.problem("the leaf of %s in %s is at %s, not at %s", s.path, mount, textOf(at), textOf(s.at))
	}
	if err == nil && s.at != nil {
		name := path.Join(s.path, "entries", *s.at+".json")
		err = c.attempt("check", mount, name, mayEnd, func() error { return c.readFile(mount, name) })
	}
	s.after(err)
}

func textOf(id *string) string {
	if id == nil {
		return "none"
	}
	return *id
}
