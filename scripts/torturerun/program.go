package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// program is something that uses the mounts, or the files beside them.
type program struct {
	*run
	drawer *rand.Rand
	name   string // of its role and number; the ids of its entries begin with it
	number int
	n      int // counts its ids
}

// id makes the id of a new entry.
func (p *program) id() string {
	p.n++
	return fmt.Sprintf("%s-%d", p.name, p.n)
}

// entry makes a new entry of a kind and a size that are drawn.
func (p *program) entry(d draw) entry {
	return entry{
		id:   p.id(),
		what: pick([]string{"custom", "user", "assistant"}, d.target),
		size: pick(sizes, d.size),
	}
}

// during runs f as a call that must end within callLimit, and returns its error. A call that hangs ends the run: it may
// not end even with SIGKILL.
func (p *program) during(what string, f func() error) error {
	alarm := time.AfterFunc(callLimit, func() {
		p.hung <- fmt.Sprintf("%s hangs: %s for more than %v", p.name, what, callLimit)
	})
	defer alarm.Stop()
	return f()
}

// attempt runs f on a session in a mount, counts how it ended, and returns its error. An error that is not among the
// allowed ones is a problem, unless the mount's daemon was killed meanwhile. what names the call.
func (p *program) attempt(what, mount, session string, allowed []syscall.Errno, f func() error) error {
	from := time.Now()
	err := p.during(fmt.Sprintf("%s of %s in %s", what, session, mount), f)
	if err == nil {
		p.count(what)
		return nil
	}
	var errno syscall.Errno
	_ = errors.As(err, &errno)
	p.count(what + " " + unix.ErrnoName(errno))
	if errno == syscall.ENOTCONN || errno == syscall.ECONNABORTED {
		time.Sleep(20 * time.Millisecond) // until the daemon is back
	}
	if !slices.Contains(allowed, errno) {
		p.problemOf(mount, from, "%s of %s: %v", what, session, err)
	}
	return err
}

// problemOf notes a problem of a mount, unless its daemon was not there at some moment since from.
func (p *program) problemOf(mount string, from time.Time, format string, args ...any) {
	if p.daemons[mount].wasDownSince(from) {
		p.count("errors that the death of a daemon explains")
		return
	}
	p.problem(p.name+" in "+mount+": "+format, args...)
}

// isUnclear reports whether a write that ended with this error may have taken effect: the daemon died after it was sent.
// Of a link that is renamed to leaf, that is the second call.
func isUnclear(err error) bool {
	link, isLink := errors.AsType[*os.LinkError](err)
	isFirstCall := isLink && link.Op != "rename"
	return errors.Is(err, syscall.ECONNABORTED) && !isFirstCall
}
