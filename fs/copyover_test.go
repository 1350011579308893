package fs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// overCopiers are the ways to copy a file $1 over $2. Those of renames work on every session, the others on one that was
// copied in through the mount.
var overCopiers = map[string]struct {
	script  string
	renames bool
}{
	"cp":      {`cp "$1" "$2"`, false},
	"cp -p":   {`cp -p "$1" "$2"`, false},
	"cat":     {`cat "$1" > "$2"`, false},
	"tar":     {`cp -p "$1" "$1.d/${2##*/}" && tar c -C "$1.d" "${2##*/}" | tar x --overwrite -C "${2%/*}"`, false},
	"rsync":   {`rsync -a "$1" "$2"`, true},
	"rsync 2": {`rsync -a --partial-dir=.p "$1" "$2" || rsync -a "$1" "$2"`, true},
	"mv":      {`cp "$1" "$2.part" && mv -f "$2.part" "$2" || { rm "$2.part"; exit 1; }`, true},
}

// TestCopyOver: a copy over a session that is there adds what it has more, and replaces nothing.
func TestCopyOver(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	for name := range overCopiers {
		t.Run(name, func(t *testing.T) {
			copyTargets(t, func(t *testing.T, to copyTarget) { testCopyOver(t, to, name) })
		})
	}
}

func testCopyOver(t *testing.T, to copyTarget, name string) {
	c := overCopiers[name]
	lines := header("s") + entry(1, entryID(1), "", "one")
	longer := lines + entry(2, entryID(2), entryID(1), "two") + entry(3, entryID(3), entryID(2), "three")
	if c.renames {
		to.write("s", lines)
	}
	m := to.mount(true)
	file := filepath.Join(t.TempDir(), "s.jsonl")
	require.NoError(t, os.Mkdir(file+".d", 0o755))
	copyOver := func(content string) error {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o640))
		require.NoError(t, os.Chtimes(file, time.Time{}, time.Unix(1_700_000_000, 123456789)))
		_, _, err := tool(t, "bash", "-c", "set -o pipefail; "+c.script, "bash", file, m.path("sessions/p/s.jsonl"))
		return err
	}
	if !c.renames {
		require.NoError(t, copyOver(lines))
	}
	inode := run(t, "stat", "-c", "%i", m.path("sessions/p/s.jsonl"))
	require.NoError(t, copyOver(longer))
	require.Equal(t, longer, to.raw("s"))
	require.Equal(t, inode, run(t, "stat", "-c", "%i", m.path("sessions/p/s.jsonl")), "it is the same file")
	if name == "rsync" || name == "cp -p" {
		require.Contains(t, to.times("s"), "2023-11-14 22:13:20.123")
		if to.table == nil {
			require.Contains(t, run(t, "stat", "-c", "%a %y", to.agent.path("s.jsonl")), "640 2023-11-14 22:13:20.123456789")
		}
	}
	require.NoError(t, copyOver(longer), "the same once more")
	require.Contains(t, shell(t, `cat "$1"`, m.session("s", "branches.tsv")), "three")

	before := to.state()
	require.Error(t, copyOver(lines), "an older version")
	require.Error(t, copyOver(header("s")+entry(4, entryID(4), "", "other")), "another session")
	require.Error(t, copyOver(longer+"{\"torn"), "a torn one")
	require.Contains(t, shell(t, `cat "$1"`, m.session("s", "last-error")), "s.jsonl")
	if name != "cat" { // the shell does not ask what close says
		require.Error(t, copyOver(""), "an empty one")
	}
	require.Equal(t, before, to.state())

	if to.table == nil {
		live, err := os.OpenFile(to.agent.path("s.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		require.Error(t, copyOver(longer+entry(9999, entryID(9999), entryID(1), "beside a client")))
		require.Contains(t, shell(t, `cat "$1"`, m.session("s", "last-error")), "busy")
		require.NoError(t, live.Close())
	}
	large := longer
	for n := 4; len(large) < 6<<20; n++ {
		large += entry(n, entryID(n), entryID(n-1), strings.Repeat("x", 10_000))
	}
	require.NoError(t, copyOver(large), "much more")
	require.True(t, large == to.raw("s"))
	require.NoError(t, copyOver(large), "that once more")
	require.Contains(t, shell(t, `cat "$1"`, m.session("s", "branches.tsv")), "xxx")
	if to.table == nil {
		require.Empty(t, shell(t, `find "$1" -name '.*'`, to.agent.path("")))
	}
}

// TestCopyAgain: rsync that has copied everything changes nothing, through the same mount and through another one, and adds
// what has grown since; cp and tar can be repeated through the same mount; and what was copied by mistake can be removed,
// but for the sessions.
func TestCopyAgain(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	const name = "2026-03-30T07-12-41-318Z_019d3d96"
	from, source := scratch(t), scratch(t)
	session, log := filepath.Join(from, "--p--", name+".jsonl"), filepath.Join(from, "--p--", name, "0.bash.log")
	nested := filepath.Join(from, "--p--", name, "local", "LICENSE")
	require.NoError(t, os.Chmod(from, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Dir(nested), 0o755))
	whole := header("s") + entry(1, entryID(1), "", "hello")
	for file, content := range map[string]string{session: whole, log: "a log\n", nested: "a license\n"} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(source, "sessions"), 0o755))
	shell(t, `find "$1" -exec touch -d 2026-03-30 {} +`, from) // tar keeps whole seconds
	again := func(m *mount) {
		before := statListing(t, source)
		run(t, "rsync", "-a", from+"/", m.path("sessions")+"/")
		run(t, "rsync", "-a", from+"/", m.path("sessions")+"/")
		require.Equal(t, before, statListing(t, source))
	}
	m := mountForTest(t, source)
	run(t, "cp", "-a", from+"/.", m.path("sessions"))
	run(t, "diff", "-r", from, filepath.Join(source, "sessions"))
	run(t, "touch", "-r", from, filepath.Join(source, "sessions"))
	before := statListing(t, source)
	run(t, "cp", "-a", from+"/.", m.path("sessions"))
	shell(t, `tar c -C "$1" . | tar x --overwrite -C "$2"`, from, m.path("sessions"))
	require.Equal(t, before, statListing(t, source))
	again(m)

	require.Error(t, os.Remove(m.path("sessions/--p--", name+".jsonl")), "sessions are not removed")
	require.ErrorIs(t, os.Remove(m.path("sessions/--p--", name, "local")), syscall.ENOTEMPTY)
	require.NoError(t, os.WriteFile(filepath.Join(source, "sessions/--p--", name, "local/LICENSE"), []byte("changed\n"), 0o644))
	require.ErrorIs(t, os.Remove(m.path("sessions/--p--", name, "local/LICENSE")), syscall.EPERM, "somebody has changed it since")
	require.NoError(t, os.Remove(m.path("sessions/--p--", name, "0.bash.log")))
	require.NoFileExists(t, filepath.Join(source, "sessions/--p--", name, "0.bash.log"))
	require.NoError(t, os.Remove(filepath.Join(source, "sessions/--p--", name, "local/LICENSE")))
	require.NoError(t, os.Remove(m.path("sessions/--p--", name, "local")))
	run(t, "rsync", "-a", from+"/", m.path("sessions")+"/")
	run(t, "diff", "-r", from, filepath.Join(source, "sessions"))
	require.NoError(t, endMount(m))

	m = mountForTest(t, source)
	again(m)
	for _, file := range []string{name + ".jsonl", name + "/0.bash.log"} {
		require.ErrorIs(t, os.Remove(m.path("sessions/--p--", file)), syscall.EPERM)
		require.ErrorIs(t, os.WriteFile(m.path("sessions/--p--", file), nil, 0o644), refusedOpen())
		require.ErrorIs(t, os.Chmod(m.path("sessions/--p--", file), 0o600), syscall.EPERM)
	}
	require.NoError(t, os.WriteFile(session, []byte(whole+entry(2, entryID(2), entryID(1), "more")), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(log), "1.bash.log"), []byte("another log\n"), 0o644))
	run(t, "rsync", "-a", from+"/", m.path("sessions")+"/")
	run(t, "diff", "-r", from, filepath.Join(source, "sessions"))
	again(m)
}

// TestCopyBesideOthers: artifacts are copied to sessions that were copied in, and nowhere else.
func TestCopyBesideOthers(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.write("s", header("s")+entry(1, entryID(1), "", "one"))
	require.NoError(t, os.Mkdir(a.path("s"), 0o755))
	m := mountForTest(t, a.dir)
	before := statListing(t, a.dir)
	for _, name := range []string{"s/0.bash.log", "s/.0.bash.log.AbC123", "s/artifacts/0.bash.log", "s/sub.jsonl"} {
		require.ErrorIs(t, os.WriteFile(m.path("sessions/p", name), []byte("x\n"), 0o644), syscall.EPERM, name)
	}
	for _, name := range []string{"s/new", "s/artifacts/new", "new"} {
		require.ErrorIs(t, os.Mkdir(m.path("sessions/p", name), 0o755), syscall.EPERM, name)
	}
	require.Equal(t, before, statListing(t, a.dir))
	require.NoError(t, replaceBy(m.path("sessions/p"), "s.jsonl", a.raw("s")), "all of it is there")
	require.NoError(t, os.WriteFile(m.path("sessions/p/s/0.bash.log"), []byte("x\n"), 0o644))
	require.ErrorIs(t, os.WriteFile(m.path("sessions/p/s/title.bak~"), []byte("x\n"), 0o644), syscall.EPERM)
	require.NoError(t, os.Mkdir(m.path("sessions/p/s/local"), 0o755))
	require.FileExists(t, a.path("s/0.bash.log"))
}

// TestReadWhileCopying: a session that is being read takes what is copied over it, whether the kernel reads it without us
// or not.
func TestReadWhileCopying(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	whole := header("s") + entry(1, entryID(1), "", "one")
	longer := whole + entry(2, entryID(2), entryID(1), "two")
	a.write("old", whole)
	m := mountForTest(t, a.dir)
	require.NoError(t, os.WriteFile(m.path("sessions/p/new.jsonl"), []byte(whole), 0o644))
	for _, name := range []string{"old", "new"} {
		file := m.path("sessions/p", name+".jsonl")
		reader := exec.Command("tail", "-c", "+1", "-f", file)
		out, err := reader.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, reader.Start())
		read := make([]byte, len(whole))
		_, err = out.Read(read)
		require.NoError(t, err)
		require.NoError(t, replaceBy(m.path("sessions/p"), name+".jsonl", longer))
		if name == "new" {
			longest := longer + entry(3, entryID(3), entryID(2), "three")
			require.NoError(t, os.WriteFile(file, []byte(longest), 0o644))
			require.Equal(t, longest, a.raw(name))
		} else {
			require.ErrorIs(t, os.WriteFile(file, nil, 0o644), refusedOpen())
			require.Equal(t, longer, a.raw(name))
		}
		require.Equal(t, a.raw(name), shell(t, `cat "$1"`, file))
		require.NoError(t, reader.Process.Kill())
		_ = reader.Wait()
	}
}

// TestEditors: an editor that saves a session in place, or beside it, changes nothing.
func TestEditors(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.write("s", header("s")+entry(1, entryID(1), "", "one"))
	m := mountForTest(t, a.dir)
	before := statListing(t, a.dir)
	for name, script := range map[string]string{
		"sed -i":   `sed -i s/one/two/ "$1"`,
		"perl -i":  `perl -pi -e s/one/two/ "$1"`,
		"vim":      `vim -es -c '%s/one/two/' -c 'wq!' "$1" < /dev/null`,
		"echo >":   `echo x > "$1"`,
		"printf >": `printf '%s\n' '{"type":"session","version":3,"id":"t"}' > "$1"`,
		"sponge":   `sed s/one/two/ "$1" | sponge "$1"`,
		"dd":       `echo x | dd of="$1" conv=notrunc`,
		"truncate": `truncate -s 10 "$1"`,
		">>":       `echo '{}' >> "$1"`,
	} {
		_, _, err := tool(t, "bash", "-c", script, "bash", m.path("sessions/p/s.jsonl"))
		require.True(t, err != nil || name == "perl -i", name) // which tells on stderr alone
		require.Eventually(t, func() bool { return len(names(t, a.path(""))) == 1 }, patience, time.Millisecond, name)
		require.Equal(t, before, statListing(t, a.dir))
	}
}

// TestCopiesTogether: of two programs that copy different sessions to one name, one succeeds; and what is appended beside
// a copy is not lost.
func TestCopiesTogether(t *testing.T) {
	t.Parallel()
	copyTargets(t, testCopiesTogether)
}

func testCopiesTogether(t *testing.T, to copyTarget) {
	lines := header("s") + entry(1, "aaaa0001", "", "one")
	to.write("s", lines)
	m := to.mount(true)
	for n := range 20 {
		id := entryID(n)
		var contents [2]string
		var errs [2]error
		var wg sync.WaitGroup
		for i := range contents {
			contents[i] = header(id) + strings.Repeat(entry(i, entryID(i), "", "hello"), 1000*(i+1))
			wg.Go(func() { errs[i] = os.WriteFile(m.path("sessions/p", id+".jsonl"), []byte(contents[i]), 0o644) })
		}
		wg.Wait()
		won := slices.Index(contents[:], to.raw(id))
		require.NotEqual(t, -1, won)
		require.NoError(t, errs[won])
		require.ErrorIs(t, errs[1-won], syscall.EEXIST)
	}
	added := ""
	for n := range 30 {
		longer := to.raw("s") + entry(n, entryID(1000+n), "", "copied")
		var copied, appended error
		var wg sync.WaitGroup
		wg.Go(func() { copied = replaceBy(m.path("sessions/p"), "s.jsonl", longer) })
		wg.Go(func() { appended = put(m.session("s", "append"), message("appended "+mark(n))+"\n") })
		wg.Wait()
		require.NoError(t, appended)
		added += mark(n)
		if copied == nil {
			require.Contains(t, to.raw("s"), entryID(1000+n))
		} else {
			require.ErrorIs(t, copied, syscall.EEXIST)
		}
	}
	for n := range 30 {
		require.Equal(t, 1, strings.Count(to.raw("s"), "appended "+mark(n)))
	}
}

// replaceBy writes a temporary file and renames it, as rsync does.
func replaceBy(dir, name, content string) error {
	temporary := filepath.Join(dir, "."+name+".AbC123")
	if err := os.WriteFile(temporary, []byte(content), 0o600); err != nil {
		return err
	}
	err := os.Rename(temporary, filepath.Join(dir, name))
	if err != nil {
		_ = os.Remove(temporary)
	}
	return err
}

// endMount unmounts before the test ends.
func endMount(m *mount) error {
	err := unix.Unmount(m.dir, 0)
	if err != nil {
		err = exec.Command("fusermount3", "-u", m.dir).Run()
	}
	if err == nil {
		<-m.ended
	}
	return err
}
