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

func (x *other) next() {
	d := x.draw()
	pick(otherCommands, d.kind)(x, d)
	time.Sleep(otherPause)
}

// put appends or replaces. Nobody kills these programs: what fails is not done.
func (x *other) put(what, session string, d draw, change func(line string) error) {
	e := x.entry(d)
	out := outcome{}
	if x.during(what+" to "+session, func() error { return change(e.line(rootID, true)) }) == nil {
		out.acked = 1
		x.count(what)
	}
	x.appended(x.name, session, []entry{e}, nil, out)
}

// underLock has change add a line to a session under its lock: the file must have what it has and the line. A lock that
// another breaks meanwhile must not be: its holder lives.
func (x *other) underLock(what, session string, d draw, change func(file string, has []byte, line string) error) {
	x.put(what, session, d, func(line string) error {
		l, err := lockFile(x.file(session))
		if err != nil {
			return err
		}
		has, err := os.ReadFile(x.file(session))
		if err == nil {
			err = change(x.file(session), has, onItsOwn(has)+line)
		}
		if !l.release() {
			x.problem("the lock of %s was broken while we held it", session)
		}
		return err
	})
}

// lockedSession chooses one of those to which others append under the lock.
func lockedSession(d draw) string {
	return pick([]func(uint64) string{turnsSession, rewrittenSession, rewrittenSession, sharedSession}, d.session)(d.session >> 8)
}

func (x *other) appendLocked(d draw) {
	x.underLock("append under the lock", lockedSession(d), d, func(file string, _ []byte, line string) error { return added(file, line) })
}

func (x *other) replaceLocked(d draw) {
	x.underLock("replace under the lock", rewrittenSession(d.session), d, func(file string, has []byte, line string) error {
		return renamedOver(file, append(has, line...))
	})
}

// appendUnlocked appends as pi and older clients do.
func (x *other) appendUnlocked(d draw) {
	session := sharedSession(d.session)
	x.put("append without the lock", session, d, func(line string) error { return added(x.file(session), line) })
}

// leaveLock leaves the lock of a process that died; not where the real client may meet it, which breaks such locks in
// a way that can hit the next one.
func (x *other) leaveLock(d draw) {
	d.session |= 2
	if l, err := lockFile(x.file(lockedSession(d))); err == nil {
		_ = os.WriteFile(l.path, fmt.Appendf(nil, "%d:%d\n", math.MaxInt32, time.Now().UnixMilli()), 0o600)
		x.count("lock left behind")
	}
}

// moveFile moves an own session of a client away and soon back. Each program moves those of other clients.
func (x *other) moveFile(d draw) {
	share := max(x.clients/manyOthers, 1)
	client := (int(d.session%uint64(share))*manyOthers + x.number) % x.clients
	at := x.file(ownSession(client, "slot")) // the other one moves
	aside := filepath.Join(x.away(), fmt.Sprintf("%d-%s", x.number, filepath.Base(at)))
	if os.Rename(at, aside) != nil {
		return
	}
	time.Sleep(time.Duration(d.size%30) * time.Millisecond)
	if err := os.Link(aside, at); err != nil { // not over what was made there meanwhile
		x.problem("%s was made while it was away: %v", at, err)
	}
	if err := os.Remove(aside); err != nil {
		x.problem("%v", err)
	}
	x.count("file moved away and back")
}

// damages is what happens to the files of damaged sessions.
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

func (x *other) damage(d draw) {
	session := damagedSession(d.session)
	at := x.file(session)
	if info, err := os.Lstat(at); err == nil && (!info.Mode().IsRegular() || info.Size() > 20<<20) {
		_ = os.RemoveAll(at) // what another damage left
	}
	if pick(damages, d.target)(session, at, rand.New(rand.NewPCG(d.size, d.mount))) == nil {
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
