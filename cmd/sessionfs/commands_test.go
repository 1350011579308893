//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	reports "sessionfs/sessioncore/report"
	"sessionfs/source"
	"sessionfs/testdata"
)

// The name of a command is one as the first argument only, so that no directory of that name is out of reach.
func TestNamesOfCommands(t *testing.T) {
	for _, m := range commands {
		c := m.make()
		require.True(t, c.Name() == m.name || c.HasAlias(m.name), m.name)
	}
	for line, want := range map[string]bool{
		"sessionfs": false, "sessionfs ls": true, "sessionfs ls mnt": true, "sessionfs cat x": true, "sessionfs help ls": true, "sessionfs help": true,
		"sessionfs completion bash": true, "sessionfs __complete ls": true,
		"sessionfs ./ls mnt": false, "sessionfs ls/ mnt": false, "sessionfs src ls": false, "sessionfs -- ls mnt": false, "sessionfs -f ls mnt": false,
		"sessionfs -u ls": false, "sessionfs --demo ls": false, "sessionfs -- help mnt": false,
		"sessionfs version": true, "mount.sessionfs ls /mnt": false, "/sbin/mount.fuse.sessionfs cat /mnt": false,
	} {
		require.Equal(t, want, isCommand(strings.Fields(line)), line)
	}
}

// commandStore is the sample store for commands that need no mount.
func commandStore(t *testing.T) *store {
	t.Helper()
	s := newStore(t, user{"self", os.Geteuid()})
	require.NoError(t, os.RemoveAll(s.source))
	require.NoError(t, os.Mkdir(s.source, 0o700))
	require.NoError(t, source.Unpack(testdata.Demo(), s.source))
	return s
}

// here runs a command in this process, which is quicker.
func (s *store) here(command string, args ...string) result {
	s.t.Helper()
	return s.fed("", command, args...)
}

// fed is here with what is typed into it.
func (s *store) fed(input, command string, args ...string) result {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{"sessionfs", command, "-s", s.source}, args...)
	code := run(args, streams{strings.NewReader(input), &stdout, &stderr})
	return result{code, stdout.String(), stderr.String()}
}

func TestListAndPrint(t *testing.T) {
	s := commandStore(t)
	r := s.here("ls").ok(t)
	require.Contains(t, r.stdout, "\nnew-session\nrecent\nsearch\nsessions\n")
	r = s.here("ls", "-l", "by-id/019d3d9/")
	require.Regexp(t, `(?m)^lrwxrwxrwx .* leaf -> entries/3a17833e.json$`, r.stdout)
	require.Regexp(t, `(?m)^-rw------- .* 30 .* title$`, r.stdout)
	require.Equal(t, "by-id/019d3d9\n", s.here("ls", "-d", "by-id/019d3d9").stdout)
	require.Equal(t, "recent/03-Tide sheets as a calendar (fork of 04)/header.json\n", s.here("ls", "recent/03*/header.json").stdout)
	require.Equal(t, "index.jsonl\n\nhistory:\nprompts.jsonl\nsearch\n", s.here("ls", "history", "index.jsonl").stdout)
	r = s.here("ls", "nothing", "history")
	requireStatus(t, exitFailure, r, "nothing: no such file")
	require.Equal(t, "history:\nprompts.jsonl\nsearch\n", r.stdout)
	oldest := strings.Fields(s.here("ls", "-tr", "by-id/019d3d9/entries").stdout)
	require.Equal(t, "3a17833e.json", oldest[len(oldest)-1])

	require.Equal(t, result{0, "An hour late, a hand too high\n", ""}, s.here("cat", "by-id/019d3d9/title"))
	require.Equal(t, s.here("cat", "by-id/019d3d9/entries/3a17833e.json"), s.here("cat", "by-id/019d3d9/leaf"))
	raw := glob(t, filepath.Join(s.source, "sessions/*/*_019d3d9*.jsonl"))
	text := readFile(t, raw[0])
	require.Equal(t, string(text), s.here("cat", "sessions/*/*_019d3d9*.jsonl").stdout)

	for args, want := range map[string]string{
		"cat nothing": "cat: nothing: no such file or directory", "cat by-id": "cat: by-id: is a directory",
		"cat nothing*": "nothing*: no such file or directory", "ls ../..": "leads out", "ls by-id/none": "by-id/none: no such file",
	} {
		words := strings.Fields(args)
		r := s.here(words[0], words[1:]...)
		requireStatus(t, exitFailure, r, want)
	}
	// What can be done is done all the same.
	r = s.here("cat", "nothing", "by-id/019d3d9/title")
	requireStatus(t, exitFailure, r, "nothing")
	require.Equal(t, "An hour late, a hand too high\n", r.stdout)
}

func TestCommandLines(t *testing.T) {
	s := commandStore(t)
	for args, code := range map[string]int{
		"cat": exitUsage, "cat --bogus x": exitUsage, "ls -o bogus": exitUsage, "ls --demo": exitUsage, // with -s
	} {
		words := strings.Fields(args)
		requireStatus(t, code, s.here(words[0], words[1:]...))
	}
	s.source = "/nowhere"
	requireStatus(t, exitSource, s.here("ls"), "/nowhere does not exist")
	var out bytes.Buffer
	require.Zero(t, run([]string{"sessionfs", "help", "ls"}, streams{nil, &out, &out}))
	require.Contains(t, out.String(), "sessionfs ls [-ladtrR1]")
}

// The commands need neither /dev/fuse nor a right to mount, and the sample store goes away with them.
func TestWithoutFuse(t *testing.T) {
	s := commandStore(t)
	if os.Geteuid() == 0 {
		s.user = user{"user", nobody}
		s.chown()
	}
	r := s.withoutFuse("cat", "--demo", "by-id/019d3d9/title")
	require.Equal(t, result{0, "An hour late, a hand too high\n", ""}, r)
	left := glob(t, filepath.Join(testRoot, "sessionfs-demo-*"))
	require.Empty(t, left)
}

// When the reader of the output ends, the command ends quietly.
func TestBrokenPipe(t *testing.T) {
	s := commandStore(t)
	r := s.exec("bash", "-c", `"$0" cat -s "$1" 'sessions/*/*/entries/*' | head -c 10 >/dev/null; echo ${PIPESTATUS[0]}`, program, s.source)
	require.Equal(t, "", r.stderr)
	require.Contains(t, []string{"141\n", "0\n"}, r.stdout)
}

func TestCheck(t *testing.T) {
	s := commandStore(t)
	require.Equal(t, result{exitFound, "6 sessions, 0 with problems\n", ""}, s.here("check"))

	found := glob(t, filepath.Join(s.source, "sessions/*/*_019d3d9*.jsonl"))
	f, err := os.OpenFile(found[0], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("torn {\n" + `{"type":"custom","customType":"x","id":"dddddddd","parentId":"gone"}` + "\nmore\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	empty := filepath.Join(filepath.Dir(found[0]), "empty.jsonl")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))

	r := s.here("check")
	require.Equal(t, exitNothing, r.code)
	require.Empty(t, r.stderr)
	name, err := filepath.Rel(s.source, found[0])
	require.NoError(t, err)
	require.Contains(t, r.stdout, name+"\n  line 70: skipped: not JSON (and 1 more of this kind)\n    "+reports.Remedies["skipped"]+
		"\n  line 71: orphan: its parent is not in the file: it counts as a root\n    "+reports.Remedies["orphan"]+"\n")
	require.Contains(t, r.stdout, "/empty.jsonl\n  not a session: ")
	require.Contains(t, r.stdout, "7 sessions, 2 with problems\n")
	require.Contains(t, s.here("check", "by-id/019d3d9").stdout, "2 sessions, 1 with problems\n", "with its subagent's")
	require.Contains(t, s.here("check", "by-id/019d42a").stdout, "1 sessions, 0 with problems\n")

	// A file that is no session, beside the directory of its artifacts.
	require.NoError(t, os.WriteFile(found[0], nil, 0o600))
	r = s.here("check")
	require.Contains(t, r.stdout, name+"\n  not a session: ")
	require.Contains(t, r.stdout, "7 sessions, 2 with problems\n", "with its subagent's")

	// A missing blob, in whichever session that is.
	require.NoError(t, os.RemoveAll(filepath.Join(s.source, "blobs")))
	require.Contains(t, s.here("check").stdout, "    "+reports.Remedies["blob"])

	for _, args := range [][]string{{"none"}, {"index.jsonl"}, {"-o", "bogus"}} {
		requireStatus(t, exitNotDone, s.here("check", args...))
	}
	s.source = "/nowhere"
	requireStatus(t, exitNotDone, s.here("check"), "/nowhere does not exist")
}

// What cannot be read is said, and the status tells that not all was looked at.
func TestCheckUnreadable(t *testing.T) {
	s := commandStore(t)
	if os.Geteuid() == 0 {
		s.user = user{"user", nobody}
	}
	s.chown()
	closed := filepath.Join(s.source, "sessions/--home-dev-tidetable--")
	require.NoError(t, os.Chmod(closed, 0))
	r := s.run("check", "-s", s.source)
	requireStatus(t, exitNotDone, r, "check: sessions/--home-dev-tidetable--: permission denied")
	require.NoError(t, os.Chmod(closed, 0o700))

	file := glob(t, filepath.Join(closed, "*_019d3d9*.jsonl"))[0]
	require.NoError(t, os.Chmod(file, 0))
	r = s.run("check", "-s", s.source)
	requireStatus(t, exitNotDone, r, "check: sessions/--home-dev-tidetable--/"+filepath.Base(file)+": permission denied")
	require.NotContains(t, r.stdout, "not a session")
}

// TestMessagesControlNoTerminal gives each command arguments with control characters: no message
// has them.
func TestMessagesControlNoTerminal(t *testing.T) {
	s := commandStore(t)
	dir := filepath.Join(s.source, "sessions", "odd\x1b[2J")
	require.NoError(t, os.Mkdir(dir, 0o700))
	text := `{"type":"session","version":3,"id":"i\u001b[2Jd","timestamp":"2026-01-05T23:25:51.290Z",` +
		`"cwd":"/w\u001b[2J","title":"t\u001b[2J"}` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f\x1b[2J.jsonl"), []byte(text), 0o600))
	const odd = "x\x1b[2J\u009b2J\u202e"
	args := [][]string{
		{odd}, {"sessions/" + odd}, {"by-id/" + odd, odd}, {"a*" + odd}, {odd + "#" + odd}, {"019d3d9#" + odd}, {"i"},
		{"sessions/odd\x1b[2J", "recent"}, {"sessions/odd\x1b[2J/f\x1b[2J"}, {filepath.Join(dir, "f\x1b[2J.jsonl")},
		{"-o", odd}, {"-o", "prices=" + odd}, {"--" + odd}, {"-" + odd},
	}
	for _, c := range newRoot(streams{}, "").Commands() {
		for _, args := range args {
			r := s.here(c.Name(), args...)
			require.NotRegexp(t, "[\x1b\u009b\u202e]", r.stderr, "%s %q", c.Name(), args)
			if !slices.Contains([]string{"ls", "cat", "tar", "bundle"}, c.Name()) { // they print stored bytes as they are
				require.NotRegexp(t, "[\x1b\u009b\u202e]", r.stdout, "%s %q", c.Name(), args)
			}
		}
	}
	for _, args := range [][]string{{odd}, {odd, odd}, {"-s", odd}, {"-o", odd, odd, odd}, {"-u", odd}, {"--all", odd}, {odd, t.TempDir()}} {
		for _, command := range []string{"", "ls", "check", "import", "pick", "status"} {
			var stdout, stderr bytes.Buffer
			args := append([]string{"sessionfs", command}, args...)
			if command == "" {
				args = append(args[:1], args[2:]...)
			}
			if command == "" && len(args) > 2 && args[1] != "-u" {
				args = append(args, "--unknown"+odd) // nothing is mounted
			}
			run(args, streams{strings.NewReader(""), &stdout, &stderr})
			require.NotRegexp(t, "[\x1b\u009b\u202e]", stdout.String()+stderr.String(), "%q", args)
		}
	}
}
