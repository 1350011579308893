package fs_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// say writes a line to a control file as a user and returns the error, that of close included.
func say(t *testing.T, uid int, file, line string) (err error) {
	t.Helper()
	as(t, uid, func() { err = put(file, line+"\n") })
	return err
}

// files lists the agent directory, with inodes and sizes.
func (s *sharedStore) files() string {
	return run(s.t, "find", s.dir, "-type", "f", "-printf", `%P %i %s\n`)
}

// TestOtherUsersWriteWhatTheyMayWrite: a session that everybody may write to lets others add lines to it, and neither make
// files beside it, nor replace it, nor store blobs.
func TestOtherUsersWriteWhatTheyMayWrite(t *testing.T) {
	const session = "sessions/p/s"
	image := strings.Replace(`{"type":"message","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"X"}]}}`, "X", strings.Repeat("QUJD", 1000), 1)
	link := func(t *testing.T, m *mount, uid int) (err error) {
		as(t, uid, func() {
			if err = os.Symlink("entries/e0.json", m.path(session, "tmp")); err == nil {
				err = os.Rename(m.path(session, "tmp"), m.path(session, "leaf"))
			}
		})
		return err
	}
	do := map[string]func(t *testing.T, m *mount, uid int) error{
		"append": func(t *testing.T, m *mount, uid int) error {
			return say(t, uid, m.path(session, "append"), message("x"))
		},
		"image":  func(t *testing.T, m *mount, uid int) error { return say(t, uid, m.path(session, "append"), image) },
		"labels": func(t *testing.T, m *mount, uid int) error { return say(t, uid, m.path(session, "labels"), "e1 x") },
		"title":  func(t *testing.T, m *mount, uid int) error { return say(t, uid, m.path(session, "title"), "x") },
		"fork":   func(t *testing.T, m *mount, uid int) error { return say(t, uid, m.path(session, "fork"), "e1") },
		"new":    func(t *testing.T, m *mount, uid int) error { return say(t, uid, m.path("new-session"), "/home/x") },
		"leaf":   link,
	}
	for _, c := range []struct {
		name string
		set  func(*sharedStore)
		may  string // what friend may do
	}{
		{"only the file", func(*sharedStore) {}, "append labels leaf"},
		{"not the file", func(s *sharedStore) { s.chmod(session+".jsonl", 0o644) }, ""},
		{"the file by its group", func(s *sharedStore) { s.share(session+".jsonl", 0o664) }, "append labels leaf"},
		{"the list shuts the user out", func(s *sharedStore) { s.acl(session+".jsonl", "u:2002:r--") }, ""},
		{"the list shuts the group out", func(s *sharedStore) {
			s.share(session+".jsonl", 0o664)
			s.acl(session+".jsonl", "g::r--,u:2003:rw-,m::rw-")
		}, ""},
		{"closed above SOURCE by a list", func(s *sharedStore) { s.acl("/home", "u:2002:---") }, ""},
		{"the directory too", func(s *sharedStore) { s.chmod("sessions/p", 0o777) }, "append labels leaf title fork"},
		{"blobs too", func(s *sharedStore) { s.chmod("blobs", 0o777) }, "append labels leaf image"},
		{"the list of blobs", func(s *sharedStore) { s.chmod("blobs", 0o777); s.acl("blobs", "u:2002:r-x") }, "append labels leaf"},
		{"sessions too", func(s *sharedStore) { s.chmod("sessions", 0o777) }, "append labels leaf new"},
		{"the list of sessions", func(s *sharedStore) { s.chmod("sessions", 0o777); s.acl("sessions", "u:2002:r-x") }, "append labels leaf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for what := range do {
				s := newSharedStore(t)
				s.chmod(session+".jsonl", 0o666)
				c.set(s)
				m := s.mount()
				before := s.files()
				t.Cleanup(func() { run(t, "cat", m.path(session, "header.json")) }) // a session that was replaced is read anew
				err := do[what](t, m, friend)
				if strings.Contains(" "+c.may+" ", " "+what+" ") {
					require.NoError(t, err, what)
					require.NotEqual(t, before, s.files(), "%s: it is on disk", what)
					continue
				}
				require.ErrorIs(t, err, syscall.EACCES, what)
				require.Equal(t, before, s.files(), what)
				require.NoError(t, do[what](t, m, owner), "%s: the owner may", what)
			}
		})
	}
}

// TestRefusalsSayWhy: the reason is in last-error, and names no path that the user may not see.
func TestRefusalsSayWhy(t *testing.T) {
	s := newSharedStore(t)
	s.chmod("sessions/p/s.jsonl", 0o666)
	m := s.mount()
	require.ErrorIs(t, say(t, friend, m.path("sessions/p/s/fork"), "e1"), syscall.EACCES)
	why := run(t, "cat", m.path("sessions/p/s/last-error"))
	require.Contains(t, why, `user 2002 may not write and search "p"`)
	require.NotContains(t, why, s.dir)
	require.Contains(t, m.logged(), "user 2002 may not write")
}

// TestOpenedByOne: lines count as those of the one who opened the file, as elsewhere; so no program can be made to write
// what its user may write by giving it an open file.
func TestOpenedByOne(t *testing.T) {
	s := newSharedStore(t)
	s.chmod("sessions/p/s.jsonl", 0o666)
	m := s.mount()
	var fork, adds *os.File
	as(t, friend, func() {
		fork, _ = os.OpenFile(m.path("sessions/p/s/fork"), os.O_WRONLY, 0)
		adds, _ = os.OpenFile(m.path("sessions/p/s/append"), os.O_WRONLY, 0)
	})
	require.NotNil(t, fork)
	require.NotNil(t, adds)
	before := s.files()
	_, err := fork.WriteString("e1\n") // by root
	require.ErrorIs(t, err, syscall.EACCES)
	s.chmod("sessions/p/s.jsonl", 0o644)
	_, err = adds.WriteString(message("x") + "\n")
	require.ErrorIs(t, err, syscall.EACCES, "it may no longer")
	require.Equal(t, before, s.files())
	require.NoError(t, fork.Close())
	require.NoError(t, adds.Close())
}

// TestWaitingSessionsOfTheOwner: sessions that wait in memory are their owner's; another user's do not wait, so that he
// cannot take the room.
func TestWaitingSessionsOfTheOwner(t *testing.T) {
	s := newSharedStore(t)
	s.chmod("sessions", 0o777)
	m := s.mount()
	before := s.files()
	require.NoError(t, say(t, owner, m.path("new-session"), "/home/waits"))
	require.Equal(t, before, s.files(), "it is not on disk")
	waits := names(t, m.path("sessions/--home-waits--"))[0]
	as(t, friend, func() {
		_, got := look(m.path("sessions/--home-waits--", waits, "header.json"))
		require.False(t, got)
		_, got = look(m.path("sessions/--home-waits--", waits+".jsonl"))
		require.False(t, got)
		fd, err := os.OpenFile(m.path("new-session"), os.O_RDWR, 0)
		require.NoError(t, err)
		require.NoError(t, fd.Sync())
		require.NoError(t, fd.Close())
	})
	require.Equal(t, before, s.files(), "nor does another user put it there")
	require.NoError(t, say(t, friend, m.path("new-session"), "/home/friend"))
	require.Len(t, names(t, s.path("sessions/--home-friend--")), 1)
	require.ErrorIs(t, say(t, friend, m.path("new-session"), "/home/friend"), syscall.EACCES, "the directory is its owner's")
	// Where the sessions of a working directory are is not told to him.
	require.NoError(t, say(t, friend, m.path("new-session"), "/home/dev/project"))
	require.Len(t, names(t, s.path("sessions/--home-dev-project--")), 1)
}

// TestOpenFilesStayWithTheirUser: who has a file open goes on in a session that is replaced only if he may read the new
// one.
func TestOpenFilesStayWithTheirUser(t *testing.T) {
	for name, mode := range map[string]os.FileMode{"open": 0o644, "private": 0o600} {
		t.Run(name, func(t *testing.T) {
			s := newSharedStore(t)
			m := s.mount()
			current, err := os.Readlink(m.path("sessions/q/other/branches/current"))
			require.NoError(t, err)
			open := map[string]*os.File{}
			for _, file := range []string{"transcript.md", "branches/" + current + "/transcript.md", "branches/" + current + "/entries.jsonl"} {
				as(t, stranger, func() { open[file], err = os.Open(m.path("sessions/q/other", file)) })
				require.NoError(t, err)
				_, err = io.ReadAll(open[file])
				require.NoError(t, err)
			}
			to := s.path("sessions/q/new")
			require.NoError(t, os.WriteFile(to, []byte(string(read(t, s.path("sessions/q/other.jsonl")))+entry(1, "o1", "o0", "more")), mode))
			require.NoError(t, os.Chown(to, owner, owner))
			require.NoError(t, os.Rename(to, s.path("sessions/q/other.jsonl")))
			for file, f := range open {
				as(t, owner, func() { _, _ = os.ReadFile(m.path("sessions/q/other", file)) })
				as(t, stranger, func() { _, err = f.Stat() })
				require.NoError(t, err)
				var more []byte
				as(t, stranger, func() { more, _ = io.ReadAll(f) })
				require.Equal(t, mode == 0o644, strings.Contains(string(more), "more"), file)
				require.NoError(t, f.Close())
			}
		})
	}
}

// TestRefusedUsersDisturbNobody: the kernel forgets a path whose look-up fails, with the working directories in it.
func TestRefusedUsersDisturbNobody(t *testing.T) {
	s := newSharedStore(t)
	s.acl("sessions/p/s.jsonl", "u:2003:---")
	m := s.mount()
	at := m.path("sessions/p/s/entries")
	cmd := exec.Command("bash", "-c", `cd "$1" && echo there && read -r && /bin/pwd -P`, "bash", at)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner, Gid: owner}}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	there := make([]byte, len("there\n"))
	_, err = io.ReadFull(out, there)
	require.NoError(t, err)
	for range 3 {
		as(t, stranger, func() {
			for _, name := range []string{"", "e0.json"} {
				seen, _ := look(filepath.Join(at, name))
				require.False(t, seen)
			}
		})
		time.Sleep(600 * time.Millisecond) // the kernel forgets what it was told for a second
	}
	_, err = in.Write([]byte("\n"))
	require.NoError(t, err)
	answer, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	require.Equal(t, at+"\n", string(answer))
}

// TestRedactedForOthers: the check goes on where secrets are masked.
func TestRedactedForOthers(t *testing.T) {
	s := newSharedStore(t)
	s.chmod("sessions/p/s.jsonl", 0o600)
	s.acl("sessions/q/other.jsonl", "u:2003:---")
	m := s.mount(func(c *mountConfig) { c.options.Redact = true })
	paths := strings.Fields(run(t, "find", m.path("sessions"), "-printf", `sessions/%P\n`))
	for uid := range userGroups {
		s.check(m, paths, uid, false)
	}
	as(t, stranger, func() {
		_, got := look(m.path("sessions/p/child/context.json"))
		require.True(t, got)
	})
}
