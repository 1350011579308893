package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// other is a program beside the mounts: it works on the files themselves.
type other struct{ *program }

var otherCommands = slices.Concat(
	times(10, (*other).appendLocked), times(4, (*other).appendUnlocked), times(3, (*other).replaceLocked), times(1, (*other).leaveLock),
	times(12, (*other).damage), times(3, (*other).moveFile),
)

// otherPause is between two commands of such a program: several act while a client does one.
const otherPause = 5 * time.Millisecond

// next draws a command, runs it, and pauses.
func (x *other) next() {
	d := x.draw()
	command := pick(otherCommands, d.kind)
	command(x, d)
	time.Sleep(otherPause)
}

// put has change put a new line into a session, and notes it in the model. Nobody kills these programs: a change that
// fails is not done. Messages call the change what.
func (x *other) put(what, session string, d draw, change func(line string) error) {
	e := x.entry(d)
	err := x.during(what+" to "+session, func() error {
		return change(e.line(rootID, true))
	})
	out := outcome{}
	if err == nil {
		out.acked = 1
		x.count(what)
	}
	x.appended(x.name, session, []entry{e}, nil, out)
}

// underLock has change add a line to a session under its lock: change gets the file, its content, and the line, and must
// leave a file with both. A lock that somebody else breaks meanwhile is a problem: its holder lives.
func (x *other) underLock(what, session string, d draw, change func(file string, has []byte, line string) error) {
	x.put(what, session, d, func(line string) error {
		l, err := lockFile(x.file(session))
		if err != nil {
			return err
		}
		has, err := os.ReadFile(x.file(session))
		if err == nil {
			err = change(x.file(session), has, cutOffEnd(has)+line)
		}
		if !l.release() {
			x.problem("the lock of %s was broken while we held it", session)
		}
		return err
	})
}

// lockedSession chooses one of the sessions that others append to under the lock.
func lockedSession(d draw) string {
	kinds := []func(uint64) string{turnsSession, rewrittenSession, rewrittenSession, sharedSession}
	session := pick(kinds, d.session)
	return session(d.session >> 8)
}

// appendLocked appends a line under the lock.
func (x *other) appendLocked(d draw) {
	x.underLock("append under the lock", lockedSession(d), d, func(file string, _ []byte, line string) error {
		return added(file, line)
	})
}

// replaceLocked replaces a file under the lock by one with a line more, as the client does when it rewrites a session.
func (x *other) replaceLocked(d draw) {
	x.underLock("replace under the lock", rewrittenSession(d.session), d, func(file string, has []byte, line string) error {
		return renamedOver(file, append(has, line...))
	})
}

// appendUnlocked appends as pi and older clients do.
func (x *other) appendUnlocked(d draw) {
	session := sharedSession(d.session)
	x.put("append without the lock", session, d, func(line string) error {
		return added(x.file(session), line)
	})
}

// leaveLock leaves the lock of a process that died; not where the real client may meet it, which breaks such locks in
// a way that can hit the next one.
func (x *other) leaveLock(d draw) {
	d.session |= 2 // lockedSession then has no session of turns with the real client
	l, err := lockFile(x.file(lockedSession(d)))
	if err != nil {
		return
	}
	const noProcess = math.MaxInt32 // no process has the number
	text := fmt.Appendf(nil, "%d:%d\n", noProcess, time.Now().UnixMilli())
	_ = os.WriteFile(l.path, text, 0o600)
	x.count("lock left behind")
}

// moveFile moves an own session of a client away and soon back. Each program has clients of its own for that.
func (x *other) moveFile(d draw) {
	share := max(x.clients/manyOthers, 1) // every manyOthers-th client is this program's
	turn := int(d.session % uint64(share))
	client := (turn*manyOthers + x.number) % x.clients
	at := x.file(ownSession(client, "slot")) // the other one moves by its cwd
	aside := filepath.Join(x.away(), fmt.Sprintf("%d-%s", x.number, filepath.Base(at)))
	if os.Rename(at, aside) != nil {
		return
	}
	time.Sleep(time.Duration(d.size%30) * time.Millisecond)
	err := os.Link(aside, at) // which does not replace a file that was made there meanwhile
	if err != nil {
		x.problem("%s was made while it was away: %v", at, err)
	}
	err = os.Remove(aside)
	if err != nil {
		x.problem("%v", err)
	}
	x.count("file moved away and back")
}

// damages are the changes of the files of damaged sessions.
var damages = []func(session, at string, rnd *rand.Rand) error{
	restored, restored, overwritten,
	func(_, at string, rnd *rand.Rand) error { return os.Truncate(at, rnd.Int64N(20_000)) },
	func(_, at string, _ *rand.Rand) error { return os.Remove(at) },
	func(_, at string, rnd *rand.Rand) error { return renamedOver(at, garbage(rnd, 50_000)) },
	func(_, at string, _ *rand.Rand) error { return added(at, `{"type":"custom","id":"half`) },
	func(_, at string, rnd *rand.Rand) error { return added(at, string(garbage(rnd, 3000))+"\n") },
	func(_, at string, _ *rand.Rand) error {
		return added(at, strings.Repeat("[", 100_000)+"\n"+strings.Repeat(`{"type":"label","targetId":"first-question","label":"a\u0000b"}`+"\n", 100))
	},
	func(_, at string, _ *rand.Rand) error {
		return added(at, `{"type":"custom","id":"long","data":"`+strings.Repeat("x", 3<<20)+"\"}\n")
	},
	func(_, at string, _ *rand.Rand) error { return errors.Join(os.Remove(at), syscall.Mkfifo(at, 0o600)) },
}

// damage damages the file of a damaged session. One that another damage has made a pipe, or too long, is removed before.
func (x *other) damage(d draw) {
	session := damagedSession(d.session)
	at := x.file(session)
	info, err := os.Lstat(at)
	const maxSize = 20 << 20
	isBad := err == nil && (!info.Mode().IsRegular() || info.Size() > maxSize)
	if isBad {
		_ = os.RemoveAll(at)
	}
	rnd := rand.New(rand.NewPCG(d.size, d.mount))
	change := pick(damages, d.target)
	err = change(session, at, rnd)
	if err == nil {
		x.count("damage")
	}
}

func restored(session, at string, _ *rand.Rand) error {
	return renamedOver(at, []byte(firstText(session)))
}

// garbage is text that looks like a session here and there.
func garbage(rnd *rand.Rand, size int) []byte {
	words := []string{`{"type":"session","version":1,"id":"x"}` + "\n", `{"type":"message"`, "\n", "\x00", `"id":`, `[`, `}`, "\xff\xfe", `{"a":1}` + "\n", ` `}
	var out bytes.Buffer
	for n := rnd.IntN(size); out.Len() < n; {
		out.WriteString(pick(words, rnd.Uint64()))
	}
	return out.Bytes()
}

// overwritten changes bytes in place.
func overwritten(_, at string, rnd *rand.Rand) error {
	f, err := os.OpenFile(at, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(garbage(rnd, 200), rnd.Int64N(5000))
	return err
}
