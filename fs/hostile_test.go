package fs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Contents and names of SOURCE are hostile until checked: each kind of bad input gets what the design
// says, and the mount lives on (docs/design.md section 7).

// hostile mounts an agent directory with a healthy session beside what put makes there, and sees that the
// healthy one still reads afterwards.
func hostile(t *testing.T, put func(a agent), check func(t *testing.T, a agent, m *mount)) {
	a := newAgent(t)
	a.write("healthy", header("healthy"), entry(0, "e0", "", "well"))
	put(a)
	m := mountForTest(t, a.dir)
	check(t, a, m)
	require.Equal(t, entry(0, "e0", "", "well"), run(t, "cat", m.session("healthy", "leaf")))
	require.Equal(t, "well\n", run(t, "jq", "-r", ".messages[0].content", m.session("healthy", "context.json")))
	require.Contains(t, names(t, m.path("sessions/p")), "healthy")
}

// hurt are sessions with something wrong: what is in entries/, and a word that problems.jsonl has.
var hurt = map[string]struct {
	content string
	entries []string
	problem string
}{
	"torn tail":     {header("s") + entry(0, "a", "", "x") + entry(1, "b", "a", "x")[:60], []string{"a"}, "cut off"},
	"NUL tail":      {header("s") + entry(0, "a", "", "x") + strings.Repeat("\x00", 5_000), []string{"a"}, "skipped"},
	"NUL inside":    {header("s") + entry(0, "a", "", "x\x00y") + entry(1, "b", "", "x"), []string{"b"}, "not JSON"},
	"invalid UTF-8": {header("s") + entry(0, "a", "", "x\xff\xfey"), []string{"a"}, ""},
	"garbage":       {header("s") + "garbage\n" + entry(0, "a", "garbage", "x"), []string{"a"}, "orphan"},
	"deep":          {header("s") + deepEntry(12_000) + entry(1, "b", "deep", "x"), []string{"deep", "b"}, ""},
	"open brackets": {header("s") + strings.Repeat("[", 1<<20) + "\n" + entry(1, "b", "", "x"), []string{"b"}, "skipped"},
	"many torn":     {header("s") + strings.Repeat("{\"a\":\n", scaled(20_000)) + entry(1, "b", "", "x"), []string{"b"}, "skipped"},
	"a cycle":       {header("s") + entry(0, "a", "b", "x") + entry(1, "b", "a", "x"), []string{"a", "b"}, "cycle"},
	"no id":         {header("s") + `{"type":"custom"}` + "\n" + `{"type":"custom","id":null}`, []string{"~2", "~3"}, "no-id"},
	"repeated ids":  {header("s") + entry(0, "a", "", "1") + entry(1, "a", "", "2") + entry(2, "a", "", "3"), []string{"a~2", "a~3", "a"}, "repeated"},
	"odd fields":    {header("s") + `{"type":7,"id":"a","parentId":{},"timestamp":[],"message":7}` + "\n", []string{"a"}, ""},
	"a call": {header("s") +
		`{"type":"message","id":"a","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash"}]}}` + "\n" +
		entry(1, "b", "a", "x"), []string{"a", "b"}, "the call of bash c has no result"},
	"second header": {header("s") + entry(0, "a", "", "x") + header("t"), []string{"a"}, "header"},
}

func deepEntry(levels int) string {
	return `{"type":"custom","id":"deep","parentId":null,"data":` + strings.Repeat(`{"d":[`, levels/2) + "1" + strings.Repeat("]}", levels/2) + "}\n"
}

func TestHurtSessions(t *testing.T) {
	onceIsEnough(t)
	hostile(t, func(a agent) {
		for name, h := range hurt {
			a.write(name, h.content)
		}
	}, func(t *testing.T, _ agent, m *mount) {
		for name, h := range hurt {
			var want []string
			for _, e := range h.entries {
				want = append(want, e+".json")
			}
			require.Equal(t, want, names(t, m.session(name, "entries")), name)
			problems := string(read(t, m.session(name, "problems.jsonl")))
			require.Contains(t, problems, h.problem, name)
			require.True(t, h.problem != "" || problems == "", "%s: %s", name, problems)
			run(t, "grep", "-rc", "", m.session(name))
			for _, file := range []string{"context.json", "header.json"} {
				require.True(t, json.Valid(read(t, m.session(name, file))), name)
			}
			require.Equal(t, h.content, string(read(t, m.path("sessions/p", name+".jsonl"))), name)
		}
	})
}

// TestBlobReferences: a malformed reference opens no file, here or elsewhere, and stays as it is.
func TestBlobReferences(t *testing.T) {
	good := strings.Repeat("ab", 32)
	refs := []string{
		"../auth.json", "../../../../etc/passwd", "/etc/passwd", strings.ToUpper(good), good[:63], good + "0", "", ".", good + "/../x",
		strings.Repeat("cd", 32), strings.Repeat("ef", 32), good[:60] + "\\u0000abc",
	}
	a := newAgent(t)
	require.NoError(t, os.Mkdir(filepath.Join(a.dir, "blobs"), 0o755))
	for _, name := range []string{good, strings.ToUpper(good), good[:63], good + "0"} {
		require.NoError(t, os.WriteFile(filepath.Join(a.dir, "blobs", name), []byte("blob "+name[:1]), 0o644))
	}
	secret := filepath.Join(a.dir, "auth.json")
	require.NoError(t, os.WriteFile(secret, []byte("SECRET"), 0o644))
	require.NoError(t, os.Symlink(secret, filepath.Join(a.dir, "blobs", strings.Repeat("cd", 32))))
	require.NoError(t, os.Mkdir(filepath.Join(a.dir, "blobs", strings.Repeat("ef", 32)), 0o755))
	lines := []string{header("s")}
	for i, ref := range append(refs, good) {
		lines = append(lines, fmt.Sprintf(`{"type":"message","id":"m%d","parentId":null,`+
			`"message":{"role":"user","content":[{"type":"image","data":"blob:sha256:%s"},{"image_url":"blob:sha256:%s"}]}}`+"\n", i, ref, ref))
	}
	for i := range refs {
		a.write(fmt.Sprintf("s%d", i), lines[0], lines[i+1])
	}
	a.write("good", lines[0], lines[len(lines)-1])
	m := mountForTest(t, a.dir)
	for i, ref := range refs {
		context := run(t, "cat", m.session(fmt.Sprintf("s%d", i), "context.json"))
		require.Equal(t, 2, strings.Count(context, `"blob:sha256:`+ref+`"`), "%s", context)
		require.NotContains(t, context, "SECRET")
	}
	context := run(t, "cat", m.session("good", "context.json"))
	require.Contains(t, context, `"data":"YmxvYiBh"`)
	require.Contains(t, context, `"image_url":"blob a"`)
}

// TestLinksAndOtherFiles: links out of SOURCE are shown as links and are no sessions, and what is no file
// hangs nothing.
func TestLinksAndOtherFiles(t *testing.T) {
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "o.jsonl"), []byte(header("o")), 0o644))
	hostile(t, func(a agent) {
		require.NoError(t, os.Symlink(filepath.Join(outside, "o.jsonl"), a.path("file.jsonl")))
		require.NoError(t, os.Symlink(outside, a.path("folder")))
		require.NoError(t, os.Symlink("healthy.jsonl", a.path("inside.jsonl")))
		require.NoError(t, os.Symlink("loop.jsonl", a.path("loop.jsonl")))
		require.NoError(t, os.Mkdir(a.path("dir.jsonl"), 0o755))
		require.NoError(t, os.WriteFile(a.path("dir.jsonl/in.jsonl"), []byte(header("in")), 0o644))
		require.NoError(t, unix.Mkfifo(a.path("pipe.jsonl"), 0o644))
		require.NoError(t, os.Symlink(outside, a.path("art"))) // in the place of artifacts
		a.write("art", header("art"))
		require.NoError(t, os.Symlink("/etc", filepath.Join(filepath.Dir(a.path("")), "etc")))
	}, func(t *testing.T, _ agent, m *mount) {
		for name, target := range map[string]string{
			"file.jsonl": filepath.Join(outside, "o.jsonl"), "folder": outside, "inside.jsonl": "healthy.jsonl", "loop.jsonl": "loop.jsonl", "art": outside,
		} {
			got := readLink(t, m.path("sessions/p", name))
			require.Equal(t, target, got)
		}
		list := names(t, m.path("sessions/p"))
		require.ElementsMatch(t, []string{"art", "art.jsonl", "dir.jsonl", "file.jsonl", "folder", "healthy", "healthy.jsonl", "inside.jsonl",
			"loop.jsonl"}, list)
		for _, no := range []string{"file", "inside", "loop", "dir", "pipe", "pipe.jsonl", "folder/o"} {
			_, err := os.Stat(m.path("sessions/p", no))
			require.ErrorIs(t, err, os.ErrNotExist, no)
		}
		require.DirExists(t, m.path("sessions/p/dir.jsonl/in"))
		got := readLink(t, m.path("sessions/etc"))
		require.Equal(t, "/etc", got)
		require.Equal(t, 2, strings.Count(run(t, "find", m.path(), "-name", "header.json"), "\n"), "healthy and in: what is really there wins over art")
	})
}

// TestHugeLine: a line over 64 MiB, which a mount would not write, is an entry like any other.
func TestHugeLine(t *testing.T) {
	onceIsEnough(t)
	size := sized(65<<20, 20<<20)
	hostile(t, func(a agent) {
		a.write("bad", header("s"), entry(0, "huge", "", strings.Repeat("x", size)), entry(1, "b", "huge", "y"))
	}, func(t *testing.T, _ agent, m *mount) {
		require.Equal(t, []string{"huge.json", "b.json"}, names(t, m.session("bad", "entries")))
		want := len(entry(0, "huge", "", "")) + size
		require.Equal(t, fmt.Sprintln(want), shell(t, `cat "$1" | wc -c`, m.session("bad", "entries/huge.json")))
		require.Equal(t, fmt.Sprintln(want), run(t, "stat", "-c", "%s", m.session("bad", "entries/huge.json")))
		require.Equal(t, "2\n", run(t, "jq", ".messages|length", m.session("bad", "context.json")))
		require.Equal(t, entry(1, "b", "huge", "y"), run(t, "cat", m.session("bad", "leaf")))
	})
}
