package fs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Directories of SOURCE, and SOURCE itself, are replaced while others read and write through the mount: what they
// get is what stands there, and nothing is written to what was moved away (docs/design.md section 6).

// replacedRounds is how often each directory is replaced.
const replacedRounds = 200

// replacedLibrary is what the Python programs share: each writes what it does to a log, with the time at which that
// began and ended, and runs until its stdin ends.
const replacedLibrary = `
import base64, ctypes, errno, hashlib, json, os, random, select, shutil, subprocess, sys, time
now = time.monotonic_ns
log = open(sys.argv[1], "w")
def note(**what): log.write(json.dumps(what) + "\n")
def stopped():
    return bool(select.select([sys.stdin], [], [], 0)[0])
def attempt(op, f):
    start, error = now(), ""
    try: f()
    except OSError as e: error = "%s: %s" % (errno.errorcode.get(e.errno, "?"), e)
    note(op=op, start=start, end=now(), error=error)
print("ready", flush=True)
`

// replacedReader reads in all ways: $2 is the mount, $3 says in a Python expression what there is to be read.
const replacedReader = replacedLibrary + `
mnt, p = sys.argv[2], os.path.join
def cat(*name):
    def read():
        with open(p(mnt, *name), "rb") as f: return f.read()
    return read
def whole(*name):
    def read():
        text = cat(*name)()
        if not text: raise OSError(errno.ENODATA, "empty: " + "/".join(name))
    return read
def listed(want, *name):
    def read():
        got = os.listdir(p(mnt, *name))
        if want not in got: raise OSError(errno.ENODATA, "%s has no %s: %s" % ("/".join(name), want, got))
    return read
s = ("sessions", "p", "s0")
reads = {
    "list": listed("s0", "sessions", "p"), "raw": whole("sessions", "p", "s0.jsonl"), "header": whole(*s, "header.json"),
    "leaf": lambda: os.readlink(p(mnt, *s, "leaf")), "context": whole(*s, "context.json"), "entries": listed("e0.json", *s, "entries"),
    "entry": whole(*s, "entries", "e0.json"), "tree": listed("e0", *s, "tree"), "transcript": whole(*s, "transcript.md"),
    "artifacts": listed("Task", *s, "artifacts"), "by-id": whole("by-id", "s0", "header.json"), "recent": lambda: os.listdir(p(mnt, "recent")),
    "by-cwd": listed("s0", "by-cwd", "home", "dev", "project"), "index": whole("index.jsonl"), "stat": lambda: os.stat(p(mnt, *s, "entries", "e0.json")),
    "blob": whole("blobs", hashlib.sha256(b"blob").hexdigest()), "crumb": whole("terminal-sessions", "tty1"), "history": whole("history", "prompts.jsonl"),
    "root": listed("sessions"), "df": lambda: os.statvfs(mnt), "continue": listed("tty1", "continue"),
}
while not stopped():
    for op in random.sample(sorted(reads), len(reads)): attempt(op, reads[op])
`

// replacedWriter appends lines to sessions; $2 is the mount, $3 its name, $4 whether each line has an image of its own, then
// the directories of the sessions.
const replacedWriter = replacedLibrary + `
mnt, name, images, dirs = sys.argv[2], sys.argv[3], sys.argv[4] == "true", sys.argv[5:]
count = 0
while not stopped():
    count += 1
    id = "%s-%d" % (name, count)
    content = "text"
    if images: content = [{"type": "image", "mimeType": "image/png", "data": base64.b64encode(id.encode() * 200).decode()}]
    line = json.dumps({"type": "message", "id": id, "message": {"role": "user", "content": content}}, separators=(",", ":")) + "\n"
    dir = random.choice(dirs)
    start, error = now(), ""
    try:
        fd = os.open(os.path.join(mnt, dir, "append"), os.O_WRONLY)
        try: os.write(fd, line.encode())
        finally: os.close(fd)
    except OSError as e: error = "%s: %s" % (errno.errorcode.get(e.errno, "?"), e)
    note(op="write", id=id, dir=dir, start=start, end=now(), error=error)
    time.sleep(0.25 if images else 0.01) # what is written is copied in each round
`

// replacer replaces a directory: $2, in $3 rounds, with copies in $4. What it notes of each round: when the old one
// went (begin … gone) and the new one was there (back), where the old one is afterwards, if it is anywhere, and
// what was copied of it before that, and when.
const replacer = replacedLibrary + `
target, rounds, olds = sys.argv[2], int(sys.argv[3]), sys.argv[4]
libc = ctypes.CDLL(None, use_errno=True)
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2): raise OSError(ctypes.get_errno(), "exchange")
def cp(a, b): # again, if a write that met the replacement took its temporary file away meanwhile
    for left in range(20, 0, -1):
        done = subprocess.run(["cp", "-rT", a, b], stderr=subprocess.DEVNULL if left > 1 else None)
        if done.returncode == 0: return
    done.check_returncode()
def cp_live(a, b): # of what is being written to: temporary files come and go
    subprocess.run(["cp", "-r", a, b], stderr=subprocess.DEVNULL)
def restore(a):
    cp(a, target)
    return now()
for i in range(rounds):
    old = os.path.join(olds, str(i))
    r = {"op": "round", "old": "", "copy": ""}
    if i % 3 == 0: # mv and cp
        r["begin"] = now(); os.rename(target, old); r["gone"] = now(); r["old"] = old
        time.sleep(random.random() / 100)
        r["back"] = restore(old)
    elif i % 3 == 1: # rm and a restore
        r["copied"] = now(); cp_live(target, old); r["copy"] = old
        r["begin"] = now()
        if os.path.isdir(target): shutil.rmtree(target, ignore_errors=True)
        while os.path.lexists(target): subprocess.run(["rm", "-rf", target], stderr=subprocess.DEVNULL)
        r["gone"] = now()
        time.sleep(random.random() / 100)
        r["back"] = restore(old)
    else: # the two are exchanged
        cp_live(target, old)
        r["begin"] = now(); exchange(target, old); r["gone"] = r["back"] = now(); r["old"] = old
    note(**r)
    time.sleep(0.02 + random.random() / 50)
log.flush()
print("done", flush=True)
sys.stdin.read()
`

// replacedEvent is a line of a log.
type replacedEvent struct {
	Who, Op, ID, Dir, Error string
	Start, End              int64
	Begin, Gone, Back       int64
	Old, Copy               string
	Copied                  int64
}

func replacedLog(t *testing.T, file string) (events []replacedEvent) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var e replacedEvent
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		e.Who = filepath.Base(file)
		events = append(events, e)
	}
	return events
}

// replaceable makes SOURCE in dir: two sessions, one in the other's artifacts, a blob, a breadcrumb, a history.
func replaceable(t *testing.T, dir string) {
	a := agent{t, dir}
	require.NoError(t, os.MkdirAll(a.path("s0"), 0o755))
	for _, name := range []string{"s0", "s1", "s0/Task"} {
		id := filepath.Base(name)
		a.write(name, header(id), entry(0, "e0", "", "zero"))
	}
	blob := []byte("blob")
	sum := sha256.Sum256(blob)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "blobs"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "blobs", hex.EncodeToString(sum[:])), blob, 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "terminal-sessions"), 0o755))
	crumb := "/home/dev/project\n" + a.path("s0.jsonl") + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "terminal-sessions", "tty1"), []byte(crumb), 0o644))
	history(t, `db = open_history(sys.argv[1])
db.execute("PRAGMA journal_mode=DELETE")
add(db, "a prompt")
db.close()`, filepath.Join(dir, "history.db"))
}

// TestReplacedWhileInUse replaces each directory 200 times (fewer but at full size), in three ways, while 8 readers
// and writers are at work.
func TestReplacedWhileInUse(t *testing.T) {
	onceIsEnough(t)
	for what, path := range map[string]string{
		"the one above SOURCE": "top", "SOURCE": "top/agent", "sessions": "top/agent/sessions", "scope": "top/agent/sessions/p",
		"artifacts": "top/agent/sessions/p/s0", "blobs": "top/agent/blobs", "terminal-sessions": "top/agent/terminal-sessions",
		"history.db": "top/agent/history.db",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			replaceInUse(t, path)
		})
	}
}

func replaceInUse(t *testing.T, path string) {
	base, logs := scratch(t), t.TempDir()
	source, target, olds := filepath.Join(base, "top/agent"), filepath.Join(base, path), filepath.Join(base, "olds")
	require.NoError(t, os.MkdirAll(olds, 0o755))
	replaceable(t, source)
	m := mountForTest(t, source)
	var users []*companion
	for i := range 4 {
		users = append(users, accompany(t, replacedReader, filepath.Join(logs, fmt.Sprint("reader", i)), m.dir))
		dirs := []string{"sessions/p/s0", "sessions/p/s1", "sessions/p/s0/Task"}
		if i == 3 {
			dirs = []string{"by-id/s1", "sessions/p/s0/artifacts/Task"}
		}
		images := fmt.Sprint(strings.HasSuffix(path, "blobs"))
		args := append([]string{filepath.Join(logs, fmt.Sprint("writer", i)), m.dir, fmt.Sprint("w", i), images}, dirs...)
		users = append(users, accompany(t, replacedWriter, args...))
	}
	rounds := filepath.Join(logs, "replacer")
	r := accompany(t, replacer, rounds, target, fmt.Sprint(sized(replacedRounds, 9)), olds)
	r.expect("done\n")
	r.end()
	shell(t, `sleep 0.5`) // of undisturbed use
	for _, u := range users {
		u.end()
	}
	check := newReplacedCheck(t, path, target, replacedLog(t, rounds))
	for _, file := range names(t, logs) {
		if file != "replacer" {
			check.user(replacedLog(t, filepath.Join(logs, file)))
		}
	}
	check.report()
	// Everything is there still, and healthy.
	for _, s := range []string{"sessions/p/s0", "sessions/p/s1", "sessions/p/s0/Task"} {
		require.NoError(t, put(m.path(s, "append"), message("after")+"\n"))
		require.Contains(t, run(t, "cat", m.path(s, "context.json")), "after")
		require.Contains(t, run(t, "tail", "-n1", filepath.Join(source, s+".jsonl")), "after")
	}
}

// replacedCheck judges what the users of a mount met.
type replacedCheck struct {
	t        *testing.T
	rounds   []replacedEvent
	has      []map[string]bool // what is in the old directory or the copy of each round
	final    map[string]bool
	evidence func(e replacedEvent) string // what shows in the directory that a line was written; "" for nothing
	ok, bad  int                          // writes that succeeded, that failed
	busy     int                          // of those that failed, for want of the lock
	reads    int
	problems []string
}

var writtenID = regexp.MustCompile(`"id":"(w\d+-\d+)"`)

func newReplacedCheck(t *testing.T, path, target string, rounds []replacedEvent) *replacedCheck {
	c := &replacedCheck{t: t, rounds: rounds, evidence: func(e replacedEvent) string { return e.ID }}
	switch filepath.Base(path) {
	case "blobs":
		c.evidence = func(e replacedEvent) string {
			sum := sha256.Sum256([]byte(strings.Repeat(e.ID, 200)))
			return hex.EncodeToString(sum[:])
		}
	case "s0":
		c.evidence = func(e replacedEvent) string {
			if !strings.HasSuffix(e.Dir, "Task") {
				return ""
			}
			return e.ID
		}
	case "terminal-sessions", "history.db":
		c.evidence = func(replacedEvent) string { return "" }
	}
	for _, r := range rounds {
		dir := r.Old
		if dir == "" {
			dir = r.Copy
		}
		c.has = append(c.has, shownIn(t, dir))
	}
	c.final = shownIn(t, target)
	return c
}

// shownIn are the ids of lines and the names of blobs in a directory.
func shownIn(t *testing.T, dir string) map[string]bool {
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		found[e.Name()] = true
		if !strings.HasSuffix(path, ".jsonl") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, id := range writtenID.FindAllSubmatch(text, -1) {
			found[string(id[1])] = true
		}
		return err
	}))
	return found
}

func (c *replacedCheck) user(events []replacedEvent) {
	for _, e := range events {
		if e.Op == "write" {
			c.write(e)
		} else {
			c.reads++
		}
		if e.Error == "" {
			continue
		}
		if e.Op == "write" && strings.HasPrefix(e.Error, "EBUSY: ") { // the lock was not to be had in 500 ms on a busy machine
			c.busy++
			continue
		}
		if at, disturbed := c.during(e); !disturbed {
			c.problem("%s: %s failed, after round %d and before the next: %s", e.Who, e.Op, at, e.Error)
		}
	}
}

// during reports whether the directory was away at some time of an event, and else after which round that was.
func (c *replacedCheck) during(e replacedEvent) (round int, disturbed bool) {
	round = -1
	for i, r := range c.rounds {
		if e.Start <= r.Back && e.End >= r.Begin {
			return i, true
		}
		if e.Start > r.Back {
			round = i
		}
	}
	return round, false
}

func (c *replacedCheck) write(e replacedEvent) {
	if e.Error == "" {
		c.ok++
	} else {
		c.bad++
	}
	shown := c.evidence(e)
	if shown == "" {
		return
	}
	for i, r := range c.rounds {
		if r.Old != "" && e.Start > r.Gone && c.has[i][shown] {
			c.problem("%s is in the directory of round %d, which was moved away %d µs before it was written (%s)", e.ID, i, (e.Start-r.Gone)/1000, e.Error)
		}
		if e.Error != "" || i > 0 && e.Start < c.rounds[i-1].Back {
			continue
		}
		until := r.Begin
		if r.Copy != "" {
			until = r.Copied
		}
		if e.End < until && (i == 0 || e.Start > c.rounds[i-1].Back) && !c.has[i][shown] {
			c.problem("%s was acknowledged %d µs before round %d and is not in what stood there", e.ID, (until-e.End)/1000, i)
		}
	}
	if last := c.rounds[len(c.rounds)-1]; e.Error == "" && e.Start > last.Back && !c.final[shown] {
		c.problem("%s was acknowledged after the last round and is not there", e.ID)
	}
}

func (c *replacedCheck) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *replacedCheck) report() {
	c.t.Logf("%d rounds, %d writes and %d refused, %d reads", len(c.rounds), c.ok, c.bad, c.reads)
	require.NotZero(c.t, c.ok)
	require.LessOrEqual(c.t, c.busy, c.ok/20)
	if n := len(c.problems); n > 0 {
		c.t.Errorf("%d problems:\n%s", n, strings.Join(c.problems[:min(n, 30)], "\n"))
	}
}
