package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// damages is what happens to the files of damaged sessions.
var damages = []func(x *other, session, file string, rnd *rand.Rand) error{
	func(x *other, session, file string, rnd *rand.Rand) error {
		return os.Truncate(file, rnd.Int64N(20_000))
	},
	func(x *other, session, file string, rnd *rand.Rand) error { return os.Remove(file) },
	func(x *other, session, file string, rnd *rand.Rand) error { return restored(session, file) },
	func(x *other, session, file string, rnd *rand.Rand) error { return restored(session, file) },
	func(x *other, session, file string, rnd *rand.Rand) error {
		return renamedOver(file, garbage(rnd, 50_000))
	},
	func(x *other, session, file string, rnd *rand.Rand) error { return overwritten(file, rnd) },
	func(x *other, session, file string, rnd *rand.Rand) error { return archived(x, file) },
	func(x *other, session, file string, rnd *rand.Rand) error {
		return added(file, `{"type":"custom","id":"half`)
	},
	func(x *other, session, file string, rnd *rand.Rand) error {
		return added(file, string(garbage(rnd, 3000))+"\n")
	},
	func(x *other, session, file string, rnd *rand.Rand) error {
		return added(file, strings.Repeat("[", 100_000)+"\n"+strings.Repeat(`{"type":"label","targetId":"first-question","label":"a\u0000b"}`+"\n", 100))
	},
	func(x *other, session, file string, rnd *rand.Rand) error {
		return added(file, `{"type":"custom","id":"long","data":"`+strings.Repeat("x", 3<<20)+"\"}\n")
	},
	func(x *other, session, file string, rnd *rand.Rand) error { return inItsPlace(file, "fifo") },
	func(x *other, session, file string, rnd *rand.Rand) error { return inItsPlace(file, x.outside()) },
	func(x *other, session, file string, rnd *rand.Rand) error { return inItsPlace(file, "dir") },
	func(x *other, session, file string, rnd *rand.Rand) error {
		return os.Chtimes(file, time.Unix(0, 0), time.Unix(rnd.Int64N(4e9), 0))
	},
	func(x *other, session, file string, rnd *rand.Rand) error { return withArtifacts(file, rnd) },
	func(x *other, session, file string, rnd *rand.Rand) error { return os.Rename(file, file+".bak") },
	func(x *other, session, file string, rnd *rand.Rand) error {
		return os.WriteFile(filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".lock"), garbage(rnd, 30), 0o600)
	},
}

func (x *other) damage(d draw) {
	session := damagedSession(int(d.session % damagedMany))
	file := x.file(session)
	if info, err := os.Lstat(file); err == nil && (!info.Mode().IsRegular() || info.Size() > 20<<20) {
		_ = os.RemoveAll(file) // what another damage left
	}
	n := d.target % uint64(len(damages))
	err := damages[n](x, session, file, rand.New(rand.NewPCG(d.size, d.mount)))
	if err == nil {
		x.count("damage")
	} else {
		x.count("damage not possible")
	}
}

func restored(session, file string) error { return renamedOver(file, []byte(firstText(session))) }

func renamedOver(file string, text []byte) error {
	temporary := fmt.Sprintf("%s.%d.new", file, os.Getpid())
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(temporary, file); err != nil {
		_ = os.Remove(temporary)
		return err
	}
	return nil
}

// garbage is text that looks like a session here and there.
func garbage(rnd *rand.Rand, size int) []byte {
	words := []string{`{"type":"session","version":1,"id":"x"}` + "\n", `{"type":"message"`, "\n", "\x00", `"id":`, `[`, `}`, "\xff\xfe", `{"a":1}` + "\n", ` `}
	var out bytes.Buffer
	for n := rnd.IntN(size); out.Len() < n; {
		out.WriteString(words[rnd.IntN(len(words))])
	}
	return out.Bytes()
}

// overwritten changes bytes in place.
func overwritten(file string, rnd *rand.Rand) error {
	f, err := os.OpenFile(file, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(garbage(rnd, 200), rnd.Int64N(5000))
	return err
}

// archived moves a session away for good, as the client's garbage collection does.
func archived(x *other, file string) error {
	return os.Rename(file, filepath.Join(x.source(), "archive", "sessions", filepath.Base(file)))
}

func added(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// inItsPlace puts something that is no file where the session was: a FIFO, a directory, or a link to a path.
func inItsPlace(file, what string) error {
	_ = os.Remove(file)
	switch what {
	case "fifo":
		return syscall.Mkfifo(file, 0o600)
	case "dir":
		return os.Mkdir(file, 0o700)
	}
	return os.Symlink(what, file)
}

// outside is a file that links in the store lead to. All that damages files follows them: it is a file of the run.
func (o *options) outside() string { return filepath.Join(o.dir, "outside") }

// withArtifacts puts files beside the session, a subagent's session among them.
func withArtifacts(file string, rnd *rand.Rand) error {
	dir := strings.TrimSuffix(file, ".jsonl")
	if rnd.IntN(3) == 0 {
		return os.RemoveAll(dir)
	}
	_ = os.Mkdir(dir, 0o700)
	if err := os.WriteFile(filepath.Join(dir, "3.bash.log"), garbage(rnd, 1000), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "agent.jsonl"), []byte(firstText("sessions/p/agent")), 0o600)
}

// copied is the name of a session that is copied into the store.
func copied(number int, n uint64) string {
	return fmt.Sprintf("sessions/--torture-copied--/copied-%d-%d", number, n%50)
}

// copyIn copies a session into the store; the mounts show it at once.
func (x *other) copyIn(d draw) {
	session := copied(x.number, d.target)
	_ = os.Mkdir(filepath.Dir(x.file(session)), 0o700) // not what is above: another may have moved it away
	if restored(session, x.file(session)) != nil {
		x.count("copy not possible")
		return
	}
	mount := d.mountOf()
	// In between, another may move sessions away.
	_ = x.attempt("look at a copy", mount, session, readErrors, func() error {
		target, err := os.Readlink(filepath.Join(x.mounted(mount, session), "leaf"))
		if err == nil && target != "entries/"+answerID+".json" {
			x.problem("the leaf of a copied session, %s in %s, is %q", session, mount, target)
		}
		return err
	})
}

func (x *other) removeCopy(d draw) {
	if os.Remove(x.file(copied(x.number, d.target))) == nil {
		x.count("copy removed")
	}
}
