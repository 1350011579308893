package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"
)

// other is a program beside the mounts: it works on the files themselves.
type other struct {
	*process
	dead int // the number of a process that has ended
}

var otherCommands = []weighted[func(*other, draw)]{
	{10, (*other).appendLocked}, {4, (*other).appendUnlocked}, {3, (*other).replaceLocked}, {1, (*other).leaveLock},
	{12, (*other).damage}, {2, (*other).moveFile}, {1, (*other).moveDir}, {1, (*other).moveSessions},
	{2, (*other).copyIn}, {1, (*other).removeCopy},
}

// otherPause is between two commands of such a program: several act while a client does one.
const otherPause = 5 * time.Millisecond

func runOther(o *options) error {
	p, err := start(o)
	if err != nil {
		return err
	}
	x := &other{process: p}
	if x.dead, err = deadProcess(); err != nil {
		return err
	}
	for d := newDrawer(o); !p.stopped.Load(); time.Sleep(otherPause) {
		command := d.next()
		choose(otherCommands, command.kind)(x, command)
	}
	return p.end()
}

// deadProcess returns the number of a process that has ended.
func deadProcess() (int, error) {
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	if err != nil {
		return 0, err
	}
	_, err = p.Wait()
	return p.Pid, err
}

func (x *other) file(session string) string { return filepath.Join(x.source(), session+".jsonl") }

// own returns an own session of a client. Each program moves those of other clients.
func (x *other) own(d draw) (client int) {
	share := max(x.clients/manyOthers, 1)
	return (int(d.session%uint64(share))*manyOthers + x.number) % x.clients
}

// put appends or replaces, with a note before and after it.
func (x *other) put(what, session string, d draw, change func(line string) (written bool, err error)) {
	e := newEntry(fmt.Sprintf("o%d-%d", x.number, x.next()), pick([]string{"custom", "user", "assistant"}, d.target), d.sizeOf(), 0)
	n := x.write(note{Do: "append", Session: session, IDs: []string{e.id}, Sizes: []int{e.size}})
	written := false
	err := x.during(what+" to "+session, func() (err error) { written, err = change(e.line(rootID, true)); return err })
	after := note{Of: n}
	switch {
	case err == nil:
		after.Acked = 1
		x.count(what)
	case errors.Is(err, errBusy):
		x.count(what + " EBUSY")
	default:
		x.count(fmt.Sprintf("%s: %v", what, errors.Unwrap(err)))
		after.Maybe, after.Error = written, err.Error()
	}
	x.write(after)
}

func (x *other) next() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.n++
	return x.n
}

// lockedSession chooses one of those to which others append under the lock.
func lockedSession(d draw) string {
	switch d.session % 4 {
	case 0:
		return turnsSession(int(d.session >> 8 % turnsMany))
	case 1, 2:
		return rewrittenSession(int(d.session >> 8 % rewrittenMany))
	}
	return sharedSession(int(d.session >> 8 % (sharedAtOnce * sharedSets)))
}

// underLock calls change under the lock of a session. A lock that another breaks meanwhile must not be: its holder lives.
func (x *other) underLock(session string, change func(l *locked) (bool, error)) (written bool, err error) {
	l, err := lockFile(x.file(session))
	if err != nil {
		return false, err
	}
	written, err = change(l)
	if !l.release() {
		x.count("lock broken")
		x.problem("the lock of %s was broken while we held it", session)
	}
	return written, err
}

func (x *other) appendLocked(d draw) {
	session := lockedSession(d)
	x.put("append under the lock", session, d, func(line string) (bool, error) {
		return x.underLock(session, func(l *locked) (bool, error) { return l.add(line) })
	})
}

func (x *other) replaceLocked(d draw) {
	session := rewrittenSession(int(d.session % rewrittenMany))
	x.put("replace under the lock", session, d, func(line string) (bool, error) {
		return x.underLock(session, func(l *locked) (bool, error) { return l.replace(line) })
	})
}

// appendUnlocked appends as pi and older clients do.
func (x *other) appendUnlocked(d draw) {
	session := sharedSession(int(d.session % (sharedAtOnce * sharedSets)))
	x.put("append without the lock", session, d, func(line string) (bool, error) {
		f, err := os.OpenFile(x.file(session), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return false, err
		}
		defer f.Close()
		n, err := f.WriteString(line)
		return n > 0, err
	})
}

// leaveLock leaves the lock of a process that died; not where the real client may meet it, which breaks such locks in
// a way that can hit the next one.
func (x *other) leaveLock(d draw) {
	d.session |= 2
	l, err := lockFile(x.file(lockedSession(d)))
	if err != nil {
		return
	}
	defer l.dir.Close()
	if f, err := l.open(l.lock, os.O_WRONLY|os.O_TRUNC); err == nil {
		_, _ = fmt.Fprintf(f, "%d:%d\n", x.dead, time.Now().UnixMilli())
		f.Close()
		x.count("lock left behind")
	}
}

// away moves a file or directory away and soon back. Where it is meanwhile, no mount finds it and makes sessions there.
func (x *other) away(what, at string, d draw) {
	aside := filepath.Join(x.awayDir(), fmt.Sprintf("%d-%s", x.number, filepath.Base(at)))
	if os.Rename(at, aside) != nil {
		x.count(what + " not there")
		return
	}
	time.Sleep(time.Duration(d.size%30) * time.Millisecond)
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		err := os.Rename(aside, at)
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) { // the daemon made it anew
			err = x.merge(aside, at)
		}
		if err == nil {
			x.count(what)
			return
		}
		if time.Since(start) > x.limit {
			x.problem("%s: %v", what, err)
			return
		}
	}
}

func (o *options) awayDir() string { return filepath.Join(o.dir, "away") }

// merge moves what is in a directory into another.
func (x *other) merge(from, to string) error {
	x.count("directory made anew")
	items, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, item := range items {
		source, target := filepath.Join(from, item.Name()), filepath.Join(to, item.Name())
		_, err := os.Lstat(target)
		switch {
		case err == nil && item.IsDir():
			err = x.merge(source, target)
		case err == nil && filepath.Ext(target) == ".jsonl":
			return fmt.Errorf("%s was made while %s was away", target, to)
		default:
			err = os.Rename(source, target)
		}
		if err != nil {
			return err
		}
	}
	return os.Remove(from)
}

func (x *other) moveFile(d draw) {
	x.away("file moved away and back", x.file(path.Join(ownProject(x.own(d)), pick([]string{"first", "slot"}, d.target))), d)
}

func (x *other) moveDir(d draw) {
	x.away("project moved away and back", filepath.Join(x.source(), ownProject(x.own(d))), d)
}

// moveSessions moves all sessions; one program does, and not often. It waits for the real client's turn to end, which
// would make the file anew that it was told to open.
func (x *other) moveSessions(d draw) {
	if x.number != 0 || d.target%4 != 0 {
		return
	}
	unlock, err := x.exclude("turns")
	if err != nil {
		x.problem("%v", err)
		return
	}
	defer unlock()
	x.away("sessions moved away and back", filepath.Join(x.source(), "sessions"), d)
}

// exclude keeps out all other programs that exclude the same.
func (o *options) exclude(what string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(o.dir, "exclude-"+what), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return f.Close, syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
}
