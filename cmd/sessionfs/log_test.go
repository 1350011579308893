//go:build linux

package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// awaitText waits until a file has a text, and returns its content.
func (s *store) awaitText(file, text string) string {
	s.t.Helper()
	var got []byte
	require.True(s.t, eventually(func() bool {
		got, _ = os.ReadFile(file)
		return strings.Contains(string(got), text)
	}), "%s has no %q:\n%s", file, text, got)
	return string(got)
}

// TestLogFile: the log goes to a file, which SIGHUP opens anew as logrotate wants it, also where the path leads into the mount by
// now. SIGUSR1 writes counters there.
func TestLogFile(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		log := filepath.Join(s.mkdir("logs"), "sessionfs.log")
		cmd := s.command(program, "--log-file", "logs/sessionfs.log", "agent", "mnt") // of the caller's directory
		require.Zero(t, s.finish(cmd).code)
		s.awaitText(log, "msg=mounted")
		info, err := os.Stat(log)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())

		require.NoError(t, os.Rename(log, log+".1"))
		require.NoError(t, unix.Kill(s.pid(), unix.SIGHUP))
		s.awaitText(log, "opened anew")
		require.NoError(t, os.Rename(filepath.Dir(log), filepath.Join(s.dir, "away")))
		require.NoError(t, os.Symlink("mnt", filepath.Dir(log)))
		require.NoError(t, os.Remove(filepath.Join(s.dir, "away/sessionfs.log")))
		require.NoError(t, unix.Kill(s.pid(), unix.SIGHUP))
		log = filepath.Join(s.dir, "away/sessionfs.log")
		s.awaitText(log, "opened anew")

		s.requireMounted()
		require.NotZero(t, s.exec("sh", "-c", "echo {} >"+s.mountpoint+"/new-session").code)
		release := s.hold()
		require.NoError(t, unix.Kill(s.pid(), unix.SIGUSR1))
		text := s.awaitText(log, "msg=counters")
		line := text[strings.Index(text, "msg=counters"):]
		require.Contains(t, line, "mountpoint="+s.mountpoint)
		require.Contains(t, line, " open=1 ")
		require.Regexp(t, " memory=[1-9]", line)
		release()
		s.unmount()
		s.awaitText(log, "msg=unmounted")
	})
}

// TestLogFileRefused: a log file is never one that is shown, nor a pipe that somebody would have to read.
func TestLogFileRefused(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		other := s.mkdir("elsewhere")
		require.NoError(t, os.Rename(filepath.Join(s.source, "sessions"), filepath.Join(other, "sessions")))
		require.NoError(t, os.Symlink(filepath.Join(other, "sessions"), filepath.Join(s.source, "sessions")))
		require.NoError(t, unix.Mkfifo(filepath.Join(s.dir, "fifo"), 0o600))
		require.NoError(t, os.Symlink(filepath.Join(s.source, sessionPath), filepath.Join(s.dir, "link")))
		s.chown()
		for file, say := range map[string]string{
			filepath.Join(s.source, "log"):               "lies in " + s.source,
			filepath.Join(other, sessionPath):            "lies in " + s.source + "/sessions",
			filepath.Join(s.mountpoint, "log"):           "lies in " + s.mountpoint,
			filepath.Join(s.dir, "link"):                 "symbolic links",
			filepath.Join(s.dir, "fifo"):                 "cannot be opened",
			filepath.Join(s.dir, "nothing", "here", "x"): "no such file",
			s.dir: "cannot be opened",
		} {
			r := s.run("--log-file", file, s.source, s.mountpoint)
			requireStatus(t, exitUsage, r, file, say)
			s.requireUnmounted()
		}
		text := readFile(t, filepath.Join(other, sessionPath))
		require.Equal(t, sessionText, string(text))
	})
}

// TestLogFileOfAnother: in a directory like /tmp a log is not written to a file that another user has put there.
func TestLogFileOfAnother(t *testing.T) {
	needsRoot(t, "has several users, so root")
	forEachUser(t, func(t *testing.T, s *store) {
		dir := s.mkdir("tmp")
		log := filepath.Join(dir, "log")
		require.NoError(t, os.WriteFile(log, nil, 0o666))
		require.NoError(t, os.Chmod(log, 0o666))
		require.NoError(t, os.Chown(log, nobody-1, nobody-1))
		for _, mode := range []os.FileMode{0o777 | os.ModeSticky, 0o755 | os.ModeSticky} { // the kernel may refuse the first
			require.NoError(t, os.Chmod(dir, mode))
			requireStatus(t, exitUsage, s.run("--log-file", log, s.source, s.mountpoint), "the log file "+log+" cannot be opened")
			s.requireUnmounted()
		}
	})
}

// fakeSyslog keeps what it is sent, with the severity in front.
type fakeSyslog struct{ lines []string }

func (f *fakeSyslog) add(severity, s string) error {
	f.lines = append(f.lines, severity+" "+s)
	return nil
}

func (f *fakeSyslog) Debug(s string) error   { return f.add("debug", s) }
func (f *fakeSyslog) Info(s string) error    { return f.add("info", s) }
func (f *fakeSyslog) Warning(s string) error { return f.add("warning", s) }
func (f *fakeSyslog) Err(s string) error     { return f.add("err", s) }

// TestSyslogHandler: syslog gets each line with the severity of its level, without the level and the time, and cut
// where it is too long.
func TestSyslogHandler(t *testing.T) {
	f := &fakeSyslog{}
	log := slog.New(newSyslogHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug}))
	log.Debug("a")
	log.Info("b c", "key", "v w")
	log.With("w", 1).WithGroup("g").Warn("d", "time", "kept", "x", 2)
	log.Error("e", "err", errors.New("line\nbreak"))
	require.Equal(t, []string{
		"debug msg=a",
		`info msg="b c" key="v w"`,
		"warning msg=d w=1 g.time=kept g.x=2",
		`err msg=e err="line\nbreak"`,
	}, f.lines)

	f.lines = nil
	slog.New(newSyslogHandler(f, &slog.HandlerOptions{Level: slog.LevelInfo})).Debug("not shown")
	require.Empty(t, f.lines)

	log.Info(strings.Repeat("x", 2*maxSyslogMessage))
	require.Len(t, f.lines[0], len("info ")+maxSyslogMessage)
}
