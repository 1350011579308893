package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	agents "sessionfs/sessioncore/clients"
)

// Writing to cwd (docs/design.md section 2).

// movedName is the file name of a session as a client makes it.
const movedName = "2026-02-16T10-20-30-000Z_019d3d96-1111-7000-8000-000000000001"

// movable is a mounted session with artifacts, and what names it: a child, a breadcrumb, and a subagent's child.
type movable struct {
	agent
	m       *mount
	project string // an existing directory
	text    string // of the file, without its header
}

func newMovable(t *testing.T, opts ...mountOption) *movable {
	a := newAgent(t)
	v := &movable{agent: a, project: t.TempDir(), text: strings.Join(writtenEntries, "")}
	a.write(movedName, slot("Moved"), header("moved"), v.text)
	require.NoError(t, os.MkdirAll(a.path(movedName), 0o755))
	a.write(movedName+"/Task", header("task"), v.text)
	require.NoError(t, os.WriteFile(a.path(movedName+"/3.bash.log"), []byte("output\n"), 0o644))
	parent := func(path string) string {
		return fmt.Sprintf(`"parentSession":"%s","cwd"`, path)
	}
	a.write("child", strings.Replace(header("child"), `"cwd"`, parent(a.path(movedName+".jsonl")), 1))
	a.write("grandchild", strings.Replace(header("grandchild"), `"cwd"`, parent(a.path(movedName+"/Task.jsonl")), 1))
	for _, older := range []string{"child", "grandchild"} {
		require.NoError(t, os.Chtimes(a.path(older+".jsonl"), time.Time{}, time.Now().Add(-time.Hour)))
	}
	require.NoError(t, os.Mkdir(filepath.Join(a.dir, "terminal-sessions"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, "terminal-sessions/pts-77"),
		[]byte("/home/dev/project\n"+a.path(movedName+".jsonl")+"\ncwdstat 1 2\n"), 0o644))
	v.m = mountForTest(t, a.dir, opts...)
	return v
}

// scope is the directory for the sessions of a working directory.
func scope(cwd string) string { return agents.ScopesOf(uint32(os.Geteuid())).Name(cwd) }

// isAt: the session is in the directory for cwd and nowhere else, with all that belongs to it, on disk and in the mount, where
// all other names lead to it.
func (v *movable) isAt(cwd, cwdShown string) {
	v.t.Helper()
	at := filepath.Join("sessions", cwd, movedName)
	for _, root := range []string{v.dir, v.m.dir} {
		require.Equal(v.t, at+"\n"+at+".jsonl\n", shell(v.t, `cd "$1" && find sessions -name "$2" -o -name "$2.jsonl" | sort`, root, movedName))
		text := string(read(v.t, filepath.Join(root, at+".jsonl")))
		require.True(v.t, strings.HasSuffix(text, v.text) && strings.HasPrefix(text, slot("Moved")))
	}
	require.Equal(v.t, "output\noutput\n", run(v.t, "cat", filepath.Join(v.dir, at, "3.bash.log"), v.m.path(at, "3.bash.log")))
	shell(v.t, `set -e; trap 'echo "not so: $BASH_COMMAND" >&2' ERR; cd "$1"; at=$1/$2
		[ "$(cat "$at/cwd")" = "$3" ]; [ "$(stat -c %s "$at/cwd")" = $((${#3} + 1)) ]; [ "$(readlink "$at/leaf")" = entries/e3.json ]
		[ "$(echo $(ls "$at/artifacts"))" = "3.bash.log Task Task.jsonl" ]; [ "$(jq -r .id "$at/artifacts/Task/header.json")" = task ]
		for name in by-id/moved "by-cwd$3/latest" recent/*-Moved continue/pts-77 sessions/p/child/parent; do [ "$(realpath "$name")" = "$at" ]; done
		[ "$(jq -r 'select(.id == "moved") | .cwd' index.jsonl)" = "$3" ]; [ "$(ls "$at/children")" = child ]
		case $(realpath sessions/p/grandchild/parent) in "$at/Task"|"$at/artifacts/Task") ;; *) false;; esac`, v.m.dir, at, cwdShown)
}

// TestCWD moves a session with real tools: there, on, and back.
func TestCWD(t *testing.T) {
	v := newMovable(t)
	v.isAt("p", "/home/dev/project")
	at := v.m.path("sessions/p", movedName)
	require.ErrorIs(t, put(at+"/cwd", v.project+"/x\n"), syscall.ENOENT)
	require.Contains(t, run(t, "cat", at+"/last-error"), "no such directory: "+v.project+"/x") // package writer has all reasons
	shell(t, `touch "$1/cwd"; truncate -s 0 "$1/cwd"; echo /home/dev/project >"$1/cwd"`, at)
	v.isAt("p", "/home/dev/project") // as the child's is there
	for i, move := range []struct{ script, project string }{
		{`echo "$2" >"$1/cwd"`, v.project},
		{`cat "$1/cwd" >/dev/null; printf %s "$2/" | dd of="$1/cwd" conv=fsync status=none`, filepath.Dir(v.project)},
		{`python3 -c 'import sys; f = open(sys.argv[1] + "/cwd", "r+"); assert f.read()[0] == "/"; f.write(sys.argv[2] + "\n"); f.close()' "$1" "$2/."`,
			v.project},
	} {
		shell(t, move.script, at, move.project)
		at = v.m.path("sessions", scope(move.project), movedName)
		v.isAt(scope(move.project), move.project)
		require.Empty(t, run(t, "cat", at+"/last-error"))
		history := shell(t, `jq -r '.previousSessionFiles[]' "$1/header.json" | wc -l`, at)
		require.Equal(t, fmt.Sprintln(i+1), history)
	}
	require.Empty(t, run(t, "find", v.dir, "(", "-type", "l", "-o", "-name", "*.tmp", "-o", "-name", "*.lock", ")"))
	ask(t, at+"/append", message("and on"))
	crumb := read(t, filepath.Join(v.dir, "terminal-sessions/pts-77"))
	require.Equal(t, v.project+"\n"+filepath.Join(v.dir, "sessions", scope(v.project), movedName)+".jsonl\n"+
		shell(t, `stat -c 'cwdstat %d %i' "$1"`, v.project), string(crumb))
}

// TestCWDOpenHandles: what is open when a session moves writes to no other file, and says so.
func TestCWDOpenHandles(t *testing.T) {
	v := newMovable(t)
	at := v.m.path("sessions/p", movedName)
	open := map[string]*os.File{}
	for _, name := range []string{"append", "cwd"} {
		f, err := os.OpenFile(filepath.Join(at, name), os.O_RDWR, 0)
		require.NoError(t, err)
		defer f.Close()
		open[name] = f
	}
	raw, err := os.Open(at + ".jsonl")
	require.NoError(t, err)
	defer raw.Close()
	require.NoError(t, put(at+"/cwd", v.project+"\n"))
	for name, line := range map[string]string{"append": message("x"), "cwd": "/tmp"} {
		_, err = open[name].WriteString(line + "\n")
		require.ErrorIs(t, err, syscall.ESTALE)
	}
	require.NoError(t, open["cwd"].Sync())
	// Another session in its place gets none of it either: the file that was open takes nothing but the line that was refused,
	// and the name stands for the new session, as after any replacement.
	v.write(movedName, header("other"))
	_, err = open["append"].WriteString(message("x") + "\n")
	want := 1
	if err == nil {
		want = 2
	}
	require.Equal(t, want, strings.Count(v.raw(movedName), "\n"))
	require.NoError(t, os.Remove(v.path(movedName+".jsonl")))
	v.isAt(scope(v.project), v.project)
}
