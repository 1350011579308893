package fs_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// copiers are the ways to copy sessions in; $1 is a directory like sessions/, $2 sessions/ in the mount.
var copiers = map[string]string{
	"cp":            `cp -r "$1/." "$2"`,
	"cp -p":         `cp -rp "$1/." "$2"`,
	"cp -a":         `cp -a "$1/." "$2"`,
	"rsync -a":      `rsync -a "$1/" "$2/"`,
	"tar":           `tar c -C "$1" . | tar xp -C "$2"`,
	"mv":            `mv "$1"/* "$2"`,
	"busybox tar":   `tar c -C "$1" . | busybox tar xp -C "$2"`,
	"busybox cp":    `busybox cp -a "$1/." "$2"`,
	"shutil":        `python3 -c 'import shutil, sys; shutil.copytree(sys.argv[1], sys.argv[2], dirs_exist_ok=True)' "$1" "$2"`,
	"one by one":    `cd "$1" && find . -type d -exec mkdir -p "$2/{}" \; && find . -type f -exec cp -p {} "$2/{}" \;`,
	"rsync inplace": `rsync -a --inplace "$1/" "$2/"`,
}

// copierOptions are the options of rsync that finds no difference, where that is not -ain: times that are not kept, or
// times and modes of directories.
var copierOptions = map[string]string{"cp": "-rnic", "busybox tar": "-rptinO", "one by one": "-rtinO"}

// uncopied are the sessions of the conformance cases that end in the middle of something, or are none; and the names in a
// project's directory that no session has.
var uncopied = []string{"complete-tail", "empty-file", "header-without-id", "no-header", "nul-tail", "torn-tail", ".hidden.jsonl", "notes.txt", "old.jsonl.bak"}

// conformanceSessions is a directory like sessions/ with the sessions of all conformance cases.
func conformanceSessions(t *testing.T) (whole string, refused []string) {
	whole = filepath.Join(scratch(t), "sessions")
	for _, c := range conformanceCases(t) {
		if slices.Contains(largeCases, c.name) {
			continue
		}
		run(t, "cp", "-a", filepath.Join(c.dir, "agent/sessions")+"/.", whole)
	}
	require.NoError(t, os.Chmod(whole, 0o755))
	aside := scratch(t)
	require.NoError(t, filepath.WalkDir(whole, func(path string, item os.DirEntry, err error) error {
		if slices.ContainsFunc(uncopied, func(name string) bool {
			return item.Name() == name || strings.HasSuffix(item.Name(), "_"+name+".jsonl")
		}) {
			refused = append(refused, filepath.Join(aside, item.Name()))
			err = os.Rename(path, refused[len(refused)-1])
		}
		return err
	}))
	return whole, refused
}

// forDatabase removes from the conformance cases what a database has no place for: artifacts that are no sessions, and what
// is not UTF-8.
func forDatabase(t *testing.T, dir string) {
	shell(t, `cd "$1" && find . -type f ! -name '*.jsonl' -delete -o -name '*_invalid-utf8.jsonl' -delete; find . -type d -empty -delete`, dir)
}

// TestCopiedIn: what programs copy into an empty mount is in SOURCE byte for byte, with its times and, in a directory, its
// modes, and each session is one at once.
func TestCopiedIn(t *testing.T) {
	onceIsEnough(t)
	whole, refused := conformanceSessions(t)
	require.NotEmpty(t, refused)
	inRows := filepath.Join(scratch(t), "sessions")
	run(t, "cp", "-a", whole, inRows)
	forDatabase(t, inRows)
	require.Greater(t, strings.Count(run(t, "find", inRows, "-name", "*.jsonl"), "\n"), 20)
	for name, script := range copiers {
		t.Run(name, func(t *testing.T) {
			copyTargets(t, func(t *testing.T, to copyTarget) {
				same, whole := cmp.Or(copierOptions[name], "-ain"), whole
				if to.table != nil { // without modes, and times of directories
					whole, same = inRows, strings.NewReplacer("-ain", "-rtinO", "-rptinO", "-rtinO").Replace(same)
				}
				m := to.mount(false)
				from := filepath.Join(scratch(t), "from")
				run(t, "cp", "-a", whole, from)
				shell(t, script, from, m.path("sessions"))
				stored := to.dir()
				run(t, "diff", "-r", whole, stored)
				run(t, "touch", "-r", whole, stored) // whose time is not copied
				require.Empty(t, run(t, "rsync", same, whole+"/", stored+"/"))
				require.Empty(t, run(t, "rsync", same, "-O", whole+"/", m.path("sessions")+"/"), "a second copy finds nothing to do")
				require.Empty(t, shell(t, `cat "$1"`, m.path("last-error")))
				shell(t, `cd "$1/sessions" && for f in ./*/*.jsonl; do [ -d "${f%.jsonl}/entries" ] || { echo "$f" >&2; exit 1; }; done`, m.dir)
				shell(t, `cd "$1" && find . -name '*.jsonl' | while read -r f; do cmp "$f" "$2/$f" || exit 1; done`, whole, m.path("sessions"))
				if to.table == nil {
					require.Empty(t, shell(t, `find "$1" -name '.*.tmp' -o -name '*.lock'`, to.agent.dir))
				}
			})
		})
	}
}

// TestCopiedOut: a session that is copied out of the mount, or from one mount to another, is the same file, which its
// owner can write to.
func TestCopiedOut(t *testing.T) {
	a, b := newAgent(t), newAgent(t)
	a.write("s", header("s"), entry(1, entryID(1), "", "hello"))
	from, to := mountForTest(t, a.dir), mountForTest(t, b.dir)
	run(t, "cp", "--no-preserve=mode", from.path("sessions/p/s.jsonl"), to.path("sessions/p"))
	run(t, "cp", to.path("sessions/p/s.jsonl"), b.path("home.jsonl"))
	for _, name := range []string{"s", "home"} {
		require.Equal(t, a.raw("s"), b.raw(name))
		st, err := os.Stat(b.path(name + ".jsonl"))
		require.NoError(t, err)
		require.NotZero(t, st.Mode()&0o200)
	}
	require.NoError(t, put(to.session("s", "append"), message("goes on")+"\n"))
}

// TestCopyRefused: what is no session, or torn, is refused when it is closed or renamed, with a reason; nothing is on
// disk.
func TestCopyRefused(t *testing.T) {
	t.Parallel()
	copyTargets(t, testCopyRefused)
}

func testCopyRefused(t *testing.T, to copyTarget) {
	m := to.mount(true)
	before := to.state()
	whole := header("x") + entry(1, entryID(1), "", "hello")
	for name, content := range map[string]string{
		"no session":       "hello\n",
		"other JSON":       "{}\n" + whole,
		"torn":             whole[:len(whole)-20],
		"without newline":  whole[:len(whole)-1],
		"zeros at the end": whole + strings.Repeat("\x00", 100),
		"empty":            "",
	} {
		file := filepath.Join(t.TempDir(), "x.jsonl")
		require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
		for _, script := range []string{
			`cp "$1" "$2/x.jsonl"`,
			`rsync "$1" "$2/x.jsonl"`,
			`cp "$1" "$2/.x.jsonl.AbC123"; mv "$2/.x.jsonl.AbC123" "$2/x.jsonl"; e=$?; rm "$2/.x.jsonl.AbC123"; exit $e`,
			`mv "$1" "$2"; e=$?; cp "$1" "$1.2" || exit 9; exit $e`,
			`cp "$1" "$2/.x.jsonl.AbC124"; mv -n "$2/.x.jsonl.AbC124" "$2/x.jsonl"; e=$?; rm "$2/.x.jsonl.AbC124"; [ $e = 0 ] || exit $e; [ -e "$2/x.jsonl" ] || { echo Invalid argument >&2; exit 1; }`,
		} {
			_, problem, err := tool(t, "bash", "-c", script, "bash", file, m.path("sessions/p"))
			require.Error(t, err, "%s: %s", name, script)
			// rename(2) says EINVAL for a directory too, which mv takes it for.
			require.True(t, containsAny(problem, "Invalid argument", "subdirectory of itself"), "%s: %s: %s", name, script, problem)
			require.NoFileExists(t, m.path("sessions/p/x.jsonl"))
			require.Eventually(t, func() bool {
				return strings.Contains(shell(t, `cat "$1"`, m.path("last-error")), "sessions/p/")
			}, patience, time.Millisecond, "%s: %s", name, script)
		}
	}
	for _, name := range []string{"notes.txt", ".x.jsonl.lock", ".x.jsonl.0123abcd.tmp", "x.jsonl~", "4913", ".hidden"} {
		require.ErrorIs(t, os.WriteFile(m.path("sessions/p", name), []byte(whole), 0o644), syscall.EPERM, name)
	}
	require.ErrorIs(t, os.Mkdir(m.path("sessions/.hidden"), 0o755), syscall.EPERM)
	for _, name := range []string{"blobs", "terminal-sessions", "."} {
		require.Error(t, os.WriteFile(m.path(name, "x.jsonl"), []byte(whole), 0o644), name)
	}
	require.Eventually(t, func() bool { return before == to.state() }, patience, time.Millisecond)
	require.Empty(t, names(t, m.path("sessions/p")))
}

// TestCopyToFullDisk: a copy for which there is no room is ENOSPC, and gives back the room that it took.
func TestCopyToFullDisk(t *testing.T) {
	w := writtenIn(t, tmpfs(t, "size=1m"), header("s"))
	large := header("x") + strings.Repeat(entry(1, entryID(1), "", strings.Repeat("x", 1000)), 1500)
	for range 2 {
		_, problem, err := tool(t, "cp", tempFile(t, large), w.m.path("sessions/p/x.jsonl"))
		require.Error(t, err)
		require.Contains(t, problem, "No space left")
		require.ErrorIs(t, replaceBy(w.m.path("sessions/p"), "x.jsonl", large), syscall.ENOSPC)
		require.Eventually(t, func() bool { return len(names(t, w.path(""))) == 1 }, patience, time.Millisecond)
	}
	require.NoError(t, os.WriteFile(w.m.path("sessions/p/y.jsonl"), []byte(large[:strings.LastIndexByte(large[:len(large)/4], '\n')+1]), 0o644))
}

// TestCopyAfterKill: of a copy for which the daemon is killed nothing is left.
func TestCopyAfterKill(t *testing.T) {
	copyTargets(t, func(t *testing.T, to copyTarget) {
		whole := header("x") + entry(1, entryID(1), "", "hello")
		m := to.mount(true)
		before := to.state()
		var open []*os.File
		for _, name := range []string{"x.jsonl", ".y.jsonl.AbC123"} {
			f, err := os.Create(m.path("sessions/p", name))
			require.NoError(t, err)
			_, err = f.WriteString(whole)
			require.NoError(t, err)
			open = append(open, f)
		}
		m.crash()
		for _, f := range open {
			_ = f.Close()
		}
		require.Equal(t, before, to.state())
		m = to.mount(true)
		require.Empty(t, names(t, m.path("sessions/p")))
		run(t, "cp", tempFile(t, whole), m.path("sessions/p/x.jsonl"))
		require.Equal(t, whole, to.raw("x"))
	})
}

// TestManyCopies: only so many files are on their way at a time, and one that is never renamed gives way.
func TestManyCopies(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	m := mountForTest(t, a.dir)
	var open []*os.File
	var err error
	for n := 0; err == nil; n++ {
		var f *os.File
		if f, err = os.Create(m.path("sessions/p", entryID(n)+".jsonl")); err == nil {
			open = append(open, f)
			_, err := f.WriteString(header(entryID(n)))
			require.NoError(t, err)
		}
	}
	require.ErrorIs(t, err, syscall.EBUSY)
	require.Len(t, open, 64)
	for _, f := range open {
		require.NoError(t, f.Close())
	}
	require.Eventually(t, func() bool {
		for n := range 80 { // left behind under temporary names
			if os.WriteFile(m.path("sessions/p", "x.jsonl."+entryID(n)+".part"), []byte(header("x")), 0o644) != nil {
				return false
			}
		}
		return true
	}, patience, time.Millisecond)
	require.Len(t, names(t, m.path("sessions/p")), 2*64)
	require.NoError(t, endMount(m))
	require.Len(t, names(t, a.path("")), 64, "they end with the mount")
}

// TestCopyOfAMount: whoever copies all that a mount shows into another one gets errors, the sessions, and nothing else.
func TestCopyOfAMount(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"rsync": `rsync -a "$1"/ "$2"/`,
		"cp":    `cp -a "$1"/. "$2"/`,
		"tar":   `tar -C "$1" -cf - . | tar -C "$2" -xf -`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := newAgent(t), newAgent(t)
			const s = "2026-03-30T07-12-41-318Z_" + "s"
			a.write(s, header("s"), entry(1, "e1", "", "one"), entry(2, "e2", "e1", "two"))
			require.NoError(t, os.MkdirAll(a.path(s), 0o755))
			a.write(s+"/Task", header("t"), entry(1, "e1", "", "one"))
			require.NoError(t, os.WriteFile(a.path(s+"/0.bash.log"), []byte("output"), 0o644))
			from, to := mountForTest(t, a.dir), mountForTest(t, b.dir)
			_, _, err := tool(t, "bash", "-c", script, "bash", from.path("sessions"), to.path("sessions"))
			require.Error(t, err)
			require.Equal(t, a.raw(s), b.raw(s))
			shell(t, `cd "$1" && find . -type f | while read -r f; do cmp "$f" "$2/$f" || exit 1; done`,
				filepath.Join(b.dir, "sessions"), filepath.Join(a.dir, "sessions"))
			require.Contains(t, run(t, "cat", to.path("last-error")), "operation not permitted")
		})
	}
}
