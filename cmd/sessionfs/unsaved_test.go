//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// What happens at the end where SOURCE cannot be written: sessionfs -u refuses and nothing is lost; the other ways
// save what was typed elsewhere and say so.

// unwritable is a way in which SOURCE becomes unwritable: spoil, after what was typed, and mend.
type unwritable struct {
	name        string
	why         unix.Errno
	spoil, mend func(s *store)
}

func (s *store) sh(script string, args ...string) {
	s.t.Helper()
	cmd := command(s.t, user{"self", os.Geteuid()}, "sh", append([]string{"-c", script, "sh"}, args...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, string(out))
}

var unwritables = []unwritable{
	{"full", unix.ENOSPC,
		func(s *store) {
			s.sh(`cat /dev/zero > "$1/filler" 2>/dev/null; test -s "$1/filler"; echo >> "$1/filler2" || :`, s.source)
		},
		func(s *store) { s.sh(`rm -f "$1"/filler*`, s.source) }},
	{"read-only", unix.EROFS,
		func(s *store) { s.sh(`mount -o remount,ro "$1"`, s.source) },
		func(s *store) { s.sh(`mount -o remount,rw "$1"`, s.source) }},
}

// onTmpfs puts SOURCE on a small file system of its own.
func (s *store) onTmpfs() {
	s.t.Helper()
	require.NoError(s.t, os.RemoveAll(filepath.Join(s.source, "sessions")))
	require.NoError(s.t, unix.Mount("tmpfs", s.source, "tmpfs", 0, fmt.Sprintf("size=1m,mode=0700,uid=%d,gid=%d", s.user.uid, s.user.uid)))
	s.t.Cleanup(func() { _ = unix.Unmount(s.source, unix.MNT_DETACH) })
	session := filepath.Join(s.source, sessionPath)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(session), 0o700))
	require.NoError(s.t, os.WriteFile(session, []byte(sessionText), 0o600))
	s.chown()
}

// unsaved reads what was saved of a session, whose directory has that path in the mount, in the user's directory for
// state.
func (s *store) unsaved(session string) string {
	s.t.Helper()
	rel, err := filepath.Rel("sessions", session)
	require.NoError(s.t, err)
	file := filepath.Join(s.dir, ".local/state/sessionfs/unsaved", rel+".jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		require.ErrorIs(s.t, err, os.ErrNotExist)
		return ""
	}
	var st unix.Stat_t
	require.NoError(s.t, unix.Stat(file, &st))
	require.Equal(s.t, fmt.Sprintf("%o %d", 0o600, s.user.uid), fmt.Sprintf("%o %d", st.Mode&0o777, st.Uid))
	return string(text)
}

func forEachUnwritable(t *testing.T, test func(t *testing.T, s *store, u unwritable)) {
	if os.Geteuid() != 0 || os.Getenv(namespaceEnv) == "" {
		t.Skip("mounts a file system, so root in a mount namespace")
	}
	for _, u := range unwritables {
		t.Run(u.name, func(t *testing.T) {
			forEachUser(t, func(t *testing.T, s *store) {
				s.onTmpfs()
				test(t, s, u)
			})
		})
	}
}

// TestUnmountUnsaved: -u leaves the mount as it is, by whomever it is called, until it can be written or -z insists.
func TestUnmountUnsaved(t *testing.T) {
	forEachUnwritable(t, func(t *testing.T, s *store, u unwritable) {
		s.mount()
		session := s.typed("/home/dev/new", "typed")
		before := s.exec("cat", s.in(session+".jsonl")).stdout
		u.spoil(s)
		root := *s
		root.user.uid = 0
		for _, who := range []*store{s, &root} {
			requireStatus(t, exitUnmount, who.run("-u", s.mountpoint), u.why.Error(), s.source, "still mounted", "-z")
			require.Equal(t, before, s.exec("cat", s.in(session+".jsonl")).stdout)
		}
		require.Empty(t, s.unsaved(session))
		u.mend(s)
		s.ask(session+"/append", typedLine("more"))
		require.Zero(t, root.run("-u", s.mountpoint).code, "mended")
		require.Contains(t, s.onDisk(session), "more")
		s.requireOwned(session)
		s.mount()
		session = s.typed("/home/dev/newer", "more")
		u.spoil(s)
		requireStatus(t, exitUnmount, s.run("-u", "-z", s.mountpoint), u.why.Error(), "was unmounted")
		s.requireUnmounted()
		require.Contains(t, s.unsaved(session), "more")
		u.mend(s)
		require.Empty(t, s.onDisk(session))
	})
}

// TestForegroundUnsaved: who cannot refuse to end says in the log where the text is, and with the status that it is
// not where it should be.
func TestForegroundUnsaved(t *testing.T) {
	forEachUnwritable(t, func(t *testing.T, s *store, u unwritable) {
		cmd := s.command(program, "-f", s.source, s.mountpoint)
		ended := make(chan result, 1)
		go func() { ended <- s.finish(cmd) }()
		require.True(t, eventually(func() bool { return len(s.exec("ls", s.in("sessions")).stdout) > 0 }))
		session, other := s.typed("/home/dev/new", "typed"), s.typed("/work", "also typed")
		u.spoil(s)
		require.NoError(t, unix.Kill(s.pid(), unix.SIGTERM))
		r := <-ended
		require.Equal(t, exitFailure, r.code, r)
		for _, part := range []string{"could not be written to SOURCE: 2 (", u.why.Error(), filepath.Join(s.source, session+".jsonl"), ".local/state/sessionfs/unsaved"} {
			require.Contains(t, r.stderr, part)
		}
		require.Contains(t, s.unsaved(session), "typed")
		require.Contains(t, s.unsaved(other), "also typed")
		s.requireUnmounted()
		u.mend(s)

		// As the log says, they can be copied to their place.
		r = s.exec("cp", "-r", filepath.Join(s.dir, ".local/state/sessionfs/unsaved")+"/.", filepath.Join(s.source, "sessions"))
		require.Zero(t, r.code, r)
		s.mount()
		require.Contains(t, s.exec("cat", s.in(session+"/transcript.md")).stdout, "typed")
		require.Zero(t, s.run("-u", s.mountpoint).code)
		s.requireUnmounted()
	})
}
