package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// own is a session that only this client writes to.
type own struct {
	path    string
	ids     []string // entries that are there, the targets of leaf and labels
	at      *string  // the leaf
	slot    bool     // it has a title slot
	entries int
}

// made is a leaf at an entry whose id the mount made; it is to be looked up.
var made = new("made")

// use chooses an own session and a mount to write to it. It returns nil where there is none that can be written to.
func (c *client) use(d draw) (*own, string) {
	if len(c.own) == 0 { // which is a problem already
		return nil, ""
	}
	s := pick(c.own, d.session)
	mount := d.mountOf()
	if s.entries > ownEntries {
		return nil, ""
	}
	if s.at == made {
		at, err := c.look(s, mount)
		if err != nil {
			return nil, ""
		}
		s.at = at
		if at == nil || slices.Contains(s.ids, *at) {
			c.problem("the leaf of %s is at %s, not at an entry that the mount made", s.path, textOf(at))
		}
	}
	return s, mount
}

// onOwn returns the command that runs do on an own session, if there is one to use.
func onOwn(do func(c *client, s *own, mount string, d draw) error) func(*client, draw) {
	return func(c *client, d draw) {
		s, mount := c.use(d)
		if s != nil {
			_ = do(c, s, mount, d) // an error that may not be is a problem already
		}
	}
}

// look returns the id of the leaf of a session in a mount, nil before the first entry. An error that may not be is a
// problem.
func (c *client) look(s *own, mount string) (at *string, err error) {
	err = c.attempt("check", mount, s.path, mayEnd, func() (err error) {
		at, err = c.leafOf(mount, s.path)
		return err
	})
	return at, err
}

// appendOwn returns the command that appends so many entries in one write, and goes on at the last one that is there.
func appendOwn(many int) func(*client, *own, string, draw) error {
	return func(c *client, s *own, mount string, d draw) error {
		var entries []entry
		for i := range many {
			entries = append(entries, c.entry(draw{target: d.target >> i, size: d.size}))
		}
		there, err := c.append(mount, s.path, entries, s.at, mayEnd)
		for _, e := range entries[:there] {
			s.ids = append(s.ids, e.id)
			s.at = new(e.id)
		}
		s.entries += many
		return err
	}
}

// moveOwn makes another entry the leaf, or none in an eighth of the draws.
func (c *client) moveOwn(s *own, mount string, d draw) error {
	if len(s.ids) == 0 {
		return nil
	}
	target := "tree" // before the first entry
	var id *string
	if d.target%8 > 0 {
		id = new(pick(s.ids, d.target>>3))
		target = "entries/" + *id + ".json"
	}
	if textOf(s.at) == textOf(id) {
		return nil // would write nothing
	}
	err := c.attempt("leaf", mount, s.path, mayEnd, func() error {
		return c.link(mount, s.path, target)
	})
	out := outcome{maybe: isUnclear(err)}
	if err == nil {
		out.acked = 1
	}
	if c.wants(c.name, s.path, out, "leaf "+textOf(id)) > 0 {
		s.at = id
	}
	return err
}

// labelOwn labels an entry, which adds an entry of the mount.
func (c *client) labelOwn(s *own, mount string, d draw) error {
	if len(s.ids) == 0 {
		return nil
	}
	id := pick(s.ids, d.target)
	label := c.id()
	out, _, err := c.written("label", mount, s.path, "labels", id+" "+label+"\n", mayEnd)
	summary := fmt.Sprintf("label %s of %s under %s", label, id, textOf(s.at))
	if c.wants(c.name, s.path, out, summary) > 0 {
		s.at = made
	}
	return err
}

// titleOwn sets the title. In a session with a title slot that also adds an entry of the mount.
func (c *client) titleOwn(s *own, mount string, _ draw) error {
	title := "title " + c.id()
	out, _, err := c.written("title", mount, s.path, "title", title+"\n", mayEnd)
	c.titled(s.path, title, out)
	if s.slot && c.wants(c.name, s.path, out, "title "+title) > 0 {
		s.at = made
	}
	return err
}

// newOwn makes a session, which becomes an own one.
func (c *client) newOwn(d draw) {
	mount := d.mountOf()
	line := fmt.Sprintf(`{"cwd":"/torture/own-%d","title":"new","create":true}`+"\n", c.number)
	_, place, err := c.written("new", mount, "", "new-session", line, mayEnd)
	if err != nil || place == "" {
		return
	}
	hasSlot := strings.HasPrefix(readText(c.file(place)), `{"type":"title"`) // as the newest one beside it has
	c.own = append(c.own, &own{path: place, slot: hasSlot})
	c.expect(place, func(s *expected) { s.title = "new" })
}

// syncOwn makes a session durable.
func (c *client) syncOwn(s *own, mount string, _ draw) error {
	return c.attempt("sync", mount, s.path, mayEnd, func() error {
		f, err := os.OpenFile(c.mounted(mount, s.path, "append"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}

// cwdOwn moves a session to another working directory. Where the daemon dies meanwhile, it is at one of the two places. Which
// one is the new place, other sessions decide: also one that such a death left with the new header in its old place.
func (c *client) cwdOwn(s *own, mount string, d draw) error {
	if s.slot {
		return nil
	}
	name := fmt.Sprintf("torture-own-%d-", c.number)
	cwd := filepath.Join(c.dir, name+fmt.Sprint(d.target%3))
	_ = os.Mkdir(cwd, 0o700)
	out, _, err := c.written("cwd", mount, s.path, "cwd", cwd+"\n", mayEnd)
	places, _ := filepath.Glob(filepath.Join(c.source(), "sessions", "*"+name+"*", path.Base(s.path)+".jsonl"))
	if !c.mayBeAt(places, s, cwd, out) {
		c.problem("%s was moved to %s, %v: it is in %q", s.path, cwd, err, places)
		return err
	}
	to, _ := filepath.Rel(c.source(), strings.TrimSuffix(places[0], ".jsonl"))
	if to != s.path {
		c.moved(s.path, to)
		s.path = to
	}
	return err
}

// mayBeAt reports whether the files that have the name of an own session after a move to the working directory cwd agree
// with the outcome of the move: there must be one. After a refusal it must be at its old place, and after an acknowledged
// move it must have the new working directory.
func (c *client) mayBeAt(places []string, s *own, cwd string, out outcome) bool {
	if len(places) != 1 {
		return false
	}
	isRefused := out == outcome{}
	if isRefused {
		return places[0] == c.file(s.path)
	}
	if out.acked == 0 { // the daemon died meanwhile
		return true
	}
	return strings.Contains(readText(places[0]), fmt.Sprintf(`"cwd":%q`, cwd))
}

// checkOwn looks at an own session through either mount: it must show all acknowledged lines.
func (c *client) checkOwn(s *own, mount string, _ draw) error {
	at, err := c.look(s, mount)
	if err == nil && textOf(at) != textOf(s.at) {
		c.problem("the leaf of %s in %s is at %s, not at %s", s.path, mount, textOf(at), textOf(s.at))
	}
	if err == nil && s.at != nil {
		name := path.Join(s.path, "entries", *s.at+".json")
		err = c.attempt("check", mount, name, mayEnd, func() error {
			return c.readFile(mount, name)
		})
	}
	return err
}

// textOf returns the id of an entry, or none for nil.
func textOf(id *string) string {
	if id == nil {
		return "none"
	}
	return *id
}
