package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// own is a session to which only this client writes.
type own struct {
	path    string
	ids     []string  // entries that are there, the targets of leaf, labels and fork
	at      *string   // the leaf
	may     []*string // if not nil: the leaf, after that many of the last lines; it is to be looked up
	slot    bool      // it has a title slot
	durable bool      // it is on disk
	mount   string    // where it is, as long as it is not
	entries int
}

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
	if s.may != nil && !c.lookUp(s, mount) {
		if s.durable {
			c.problem("%s is gone", s.path)
		}
		c.own = append(c.own[:n], c.own[n+1:]...)
		return nil, ""
	}
	return s, mount
}

// onOwn is a command on an own session.
func onOwn(do func(c *client, s *own, mount string, d draw)) func(*client, draw) {
	return func(c *client, d draw) {
		if s, mount := c.use(d); s != nil {
			do(c, s, mount, d)
		}
	}
}

// made is a leaf at an entry whose id the mount makes.
var made = ref("made")

// resolve compares a leaf with where it may be, and notes which lines are there that may be.
func (c *client) resolve(s *own, at *string) {
	n := slices.IndexFunc(s.may, func(m *string) bool {
		return textOf(m) == textOf(at) || m == made && at != nil && textOf(at) != textOf(s.at) && !slices.Contains(s.ids, *at)
	})
	if n < 0 {
		c.problem("the leaf of %s is at %s, which it cannot be", s.path, textOf(at))
		n = 0
	}
	c.resolved(c.name, s.path, len(s.may)-1, n)
	s.at, s.may = at, nil
}

// lookUp finds out where the leaf is. A session that was not on disk is looked for so long after its daemon was killed.
func (c *client) lookUp(s *own, mount string) bool {
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		at, err := (*string)(nil), error(nil)
		_ = c.during("readlink leaf of "+s.path+" in "+mount, func() error { at, err = c.leafOf(mount, s.path); return err })
		switch waited := time.Since(start); {
		case err == nil:
			c.resolve(s, at)
			return true
		case errors.Is(err, syscall.ENOENT) && !s.durable && waited > 3*time.Second, waited > callLimit:
			return false
		}
	}
}

// after records what became of a write that moves the leaf to those, one after the other.
func (s *own) after(out outcome, err error, leaves ...*string) {
	if n := out.acked; n > 0 && len(leaves) > 0 {
		if leaves[n-1] == made {
			s.may = []*string{made}
			return
		}
		s.at = leaves[n-1]
	}
	if out.maybe && len(leaves) > 0 || errors.Is(err, syscall.ENOENT) && !s.durable {
		s.may = append([]*string{s.at}, leaves[min(out.acked, len(leaves)):]...)
	}
}

// appendOwn appends entries in one write.
func appendOwn(many int) func(*client, *own, string, draw) {
	return func(c *client, s *own, mount string, d draw) {
		var entries []entry
		var leaves []*string
		for i := range many {
			e := c.entry(draw{target: d.target >> i, size: d.size})
			entries, leaves = append(entries, e), append(leaves, ref(e.id))
		}
		out, err := c.append(mount, s.path, entries, s.at, mayEnd)
		for _, e := range entries[:out.acked] {
			s.ids = append(s.ids, e.id)
			if e.what == "assistant" && !s.durable {
				s.durable = true
				c.isDurable(s.path)
			}
		}
		s.entries += many
		s.after(out, err, leaves...)
	}
}

// moveOwn makes another entry the leaf, or none.
func (c *client) moveOwn(s *own, mount string, d draw) {
	if len(s.ids) == 0 {
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
		out.acked = 1
	}
	c.wants(c.name, s.path, out, "leaf "+textOf(id))
	s.after(out, err, id)
}

func (c *client) labelOwn(s *own, mount string, d draw) {
	if len(s.ids) == 0 {
		return
	}
	id, label := pick(s.ids, d.target), c.id()
	out, _, err := c.written("label", mount, s.path, "labels", id+" "+label+"\n", mayEnd)
	c.wants(c.name, s.path, out, fmt.Sprintf("label %s of %s under %s", label, id, textOf(s.at)))
	s.after(out, err, made)
}

func (c *client) titleOwn(s *own, mount string, _ draw) {
	title := "title " + c.id()
	out, _, err := c.written("title", mount, s.path, "title", title+"\n", mayEnd)
	c.titled(s.path, title, out)
	var leaves []*string
	if s.slot { // then a line says so, too
		c.wants(c.name, s.path, out, "title "+title)
		leaves = []*string{made}
	}
	s.after(out, err, leaves...)
}

// newOwn makes a session and goes on with it.
func (c *client) newOwn(d draw) {
	mount, line := d.mountOf(), fmt.Sprintf(`{"cwd":"/torture/own-%d","title":"new","create":true}`+"\n", c.number)
	if _, place, err := c.written("new", mount, "", "new-session", line, mayEnd); err == nil && place != "" {
		c.own = append(c.own, &own{path: place, mount: mount})
		c.expect(place, func(s *expected) { s.titles = []string{"new"} })
	}
}

// syncOwn makes a session durable.
func (c *client) syncOwn(s *own, mount string, _ draw) {
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
	s.after(outcome{}, err)
}

// cwdOwn moves a session to another working directory. Where the daemon dies meanwhile, it is at one of the two places. Which
// one is the new place, other sessions decide: also one that such a death left with the new header in its old place.
func (c *client) cwdOwn(s *own, mount string, d draw) {
	if !s.durable || s.slot {
		return
	}
	name := fmt.Sprintf("torture-own-%d-", c.number)
	cwd := filepath.Join(c.dir, name+fmt.Sprint(d.target%3))
	_ = os.Mkdir(cwd, 0o700)
	out, _, err := c.written("cwd", mount, s.path, "cwd", cwd+"\n", mayEnd)
	places, _ := filepath.Glob(filepath.Join(c.source(), "sessions", "*"+name+"*", path.Base(s.path)+".jsonl"))
	if len(places) != 1 || out == (outcome{}) && places[0] != c.file(s.path) ||
		out.acked > 0 && !strings.Contains(readText(places[0]), fmt.Sprintf(`"cwd":%q`, cwd)) {
		c.problem("%s was moved to %s, %v: it is in %q", s.path, cwd, err, places)
	} else if to, _ := filepath.Rel(c.source(), strings.TrimSuffix(places[0], ".jsonl")); to != s.path {
		c.moved(s.path, to)
		s.path = to
	}
}

// checkOwn looks at an own session through either mount: it must show what was acknowledged.
func (c *client) checkOwn(s *own, mount string, _ draw) {
	var at *string
	err := c.attempt("check", mount, s.path, mayEnd, func() (err error) { at, err = c.leafOf(mount, s.path); return err })
	if err == nil && textOf(at) != textOf(s.at) {
		c.problem("the leaf of %s in %s is at %s, not at %s", s.path, mount, textOf(at), textOf(s.at))
	}
	if err == nil && s.at != nil {
		name := path.Join(s.path, "entries", *s.at+".json")
		err = c.attempt("check", mount, name, mayEnd, func() error { return c.readFile(mount, name) })
	}
	s.after(outcome{}, err)
}

func textOf(id *string) string {
	if id == nil {
		return "none"
	}
	return *id
}
