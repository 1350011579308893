package fs_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
)

// A mounted file system is served by a child process, and looked at from this one and from tools: a
// process that looks at its own mount can wait for itself.

// daemonEnv holds the options, as JSON, that make the test binary a daemon.
const daemonEnv = "SESSIONFS_TEST_DAEMON"

// requireEnv makes a skip a failure.
const requireEnv = "SESSIONFS_REQUIRE_FUSE"

// patience bounds how long a test waits for what comes soon or never.
const patience = 20 * time.Second

// TestMain serves a mount or a loopback file system if the environment asks for one, else it runs the tests.
func TestMain(m *testing.M) {
	if options := os.Getenv(daemonEnv); options != "" {
		os.Exit(runDaemon(options))
	}
	if config := os.Getenv(loopbackEnv); config != "" {
		os.Exit(runLoopback(config))
	}
	time.Local = time.UTC // as in daemons
	syscall.Umask(0o022)
	code := m.Run()
	_ = os.RemoveAll(bigStore)
	os.Exit(code)
}

// daemonOptions are what a daemon is told.
type daemonOptions struct {
	mountopts.Options
	// Panics mounts a storage that panics (panic_test.go).
	Panics bool
	// MaxNodes, where not 0, is how many nodes the mount keeps (prune_test.go).
	MaxNodes int
	// NodesRest, where not 0, is after how long without a new one nodes are given back.
	NodesRest time.Duration
}

// runDaemon serves one mount until it is unmounted, or until the test that started it is gone.
func runDaemon(options string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var o daemonOptions
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		log.Error("options", "err", err)
		return 2
	}
	mountIt := fs.Mount
	if o.Panics {
		mountIt = mountPanicking
	}
	if o.MaxNodes > 0 || o.NodesRest > 0 {
		mountIt = fs.MountFew(o.MaxNodes, cmp.Or(o.NodesRest, time.Hour))
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	s, err := mountIt(o.Options, log)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the test does
		_ = detach(o.Mountpoint)
	}()
	go func() {
		for range stop {
			err := s.Unmount()
			if err != nil {
				log.Error("unmount", "err", err)
			}
		}
	}()
	fmt.Println("ready")
	s.Wait()
	return 0
}

// missing skips a test that something is missing for, or fails it where nothing may be missing.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(requireEnv) == "1" {
		t.Fatalf(format+" ("+requireEnv+" is set)", args...)
	}
	t.Skipf(format, args...)
}

// mount is a mounted agent directory, and its daemon.
type mount struct {
	*companion
	source string
	dir    string // the mount point
	log    string // file
	panics bool   // is meant to
}

// mountOption changes a mount for a test.
type mountOption func(*daemonOptions)

// mountForTest mounts source and unmounts it in Cleanup, where it also looks for what the daemon left
// open and whether it panicked.
func mountForTest(t testing.TB, source string, opts ...mountOption) *mount {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		missing(t, "FUSE is not usable: %v", err)
	}
	if _, err := exec.LookPath("fusermount3"); err != nil && os.Geteuid() != 0 {
		missing(t, "FUSE is not usable without root: %v (package fuse3)", err)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	o := daemonOptions{Options: mountopts.Options{Source: source, Mountpoint: t.TempDir()}}
	for _, set := range opts {
		set(&o)
	}
	m := &mount{
		source: source,
		dir:    o.Mountpoint,
		log:    filepath.Join(t.TempDir(), "log"),
		panics: o.Panics,
	}
	options, err := json.Marshal(o)
	require.NoError(t, err)
	logFile, err := os.Create(m.log)
	require.NoError(t, err)
	defer logFile.Close()
	cmd := exec.Command(self)
	// The race detector lets a process wait a second before it ends.
	cmd.Env = append(os.Environ(), daemonEnv+"="+string(options), "TZ=UTC", "GORACE=atexit_sleep_ms=0")
	cmd.Dir = "/"
	cmd.Stderr = logFile
	companion, said := begin(t, cmd)
	m.companion = companion
	if said != "ready\n" {
		if strings.Contains(said, "operation not permitted") || strings.Contains(said, "fusermount") {
			missing(t, "FUSE is not usable: %s", said)
		}
		t.Fatalf("the mount failed: %s\n%s", said, m.logged())
	}
	t.Cleanup(m.stop)
	return m
}

// stop unmounts and checks what the daemon leaves.
func (m *mount) stop() {
	if !m.panics {
		m.checkDescriptors()
	}
	if !m.ends(patience) {
		if _, mounted := fs.MountAt(m.dir); mounted {
			users, _ := exec.Command("bash", "-c", `ls -l /proc/[0-9]*/{cwd,root,exe,fd/*} 2>/dev/null | grep -F "$1"`, "bash", m.dir).Output()
			m.t.Errorf("the mount could not be unmounted: it is in use, or the daemon hangs\n%s\n%s", users, m.logged())
			_ = m.cmd.Process.Signal(syscall.SIGQUIT)
			m.ends(time.Second)
		} else {
			m.t.Log("unmounted here, but another mount namespace has a copy of the mount: the daemon is killed")
		}
		_ = m.stdin.Close() // detaches
		_ = m.cmd.Process.Kill()
		<-m.ended
	}
	_ = unix.Unmount(m.dir, unix.MNT_DETACH) // nothing there: EINVAL
	if log := m.logged(); !m.panics && strings.Contains(log, "panic") {
		m.t.Errorf("the daemon panicked:\n%s", log)
	} else if strings.Contains(log, "DATA RACE") {
		m.t.Errorf("a race in the daemon:\n%s", log)
	} else if m.t.Failed() {
		m.t.Logf("the daemon ended with %s, and logged:\n%s", m.cmd.ProcessState, log)
	}
}

// ends tells the daemon to unmount and waits for its end; it gives up early where the mount is gone already. It tells it
// more than once: whoever looks through all files of the machine may just be in the mount.
func (m *mount) ends(patience time.Duration) bool {
	const each = 2 * time.Second
	for waited := time.Duration(0); waited < patience; waited += each {
		_ = m.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-m.ended:
			return true
		case <-time.After(each):
			_, isMounted := fs.MountAt(m.dir)
			if !isMounted {
				return false
			}
		}
	}
	return false
}

// logged returns the log of the daemon.
func (m *mount) logged() string {
	b, err := os.ReadFile(m.log)
	require.NoError(m.t, err)
	return string(b)
}

// maxKept is how many sessions keep their file open (sessioncore, store.go).
const maxKept = 128

// checkDescriptors: with all files of the mount closed, the daemon holds one descriptor for each session
// that it keeps, and none for anything else but directories.
func (m *mount) checkDescriptors() {
	source, err := filepath.EvalSymlinks(m.source)
	if err != nil {
		return // of a database, or gone
	}
	var problems []string
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		problems = m.descriptorProblems(source)
		if problems == nil {
			return
		}
		time.Sleep(2 * time.Millisecond) // a RELEASE may come after close
	}
	m.t.Errorf("the daemon leaks descriptors: %q", problems)
}

// descriptorProblems returns the descriptors below source, a path without links, that the daemon should not have now.
func (m *mount) descriptorProblems(source string) (problems []string) {
	open := map[string]int{}                                                   // descriptors by their files
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", m.cmd.Process.Pid)) // none where it is not ours to look at, or gone
	for _, fd := range links {
		target, err := os.Readlink(fd)
		if err == nil && strings.HasPrefix(target, source+"/") {
			open[target]++
		}
	}
	sessions := 0
	for target, count := range open {
		name := strings.TrimSuffix(target, " (deleted)")
		isSession := strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".jsonl.gz")
		if isSession {
			sessions++
			if count > 1 {
				problems = append(problems, fmt.Sprintf("%d on %s", count, name))
			}
			continue
		}
		info, err := os.Stat(name)
		if err != nil || !info.IsDir() {
			problems = append(problems, "for nothing: "+target)
		}
	}
	if sessions > maxKept {
		problems = append(problems, fmt.Sprintf("%d sessions", sessions))
	}
	return problems
}

// path is a path in the mount.
func (m *mount) path(parts ...string) string {
	return filepath.Join(append([]string{m.dir}, parts...)...)
}

// session is a path in the directory of a session that lies in sessions/p/.
func (m *mount) session(name string, parts ...string) string {
	return m.path(append([]string{"sessions", "p", name}, parts...)...)
}

// toolTimeout ends a tool that hangs: generous, for slow machines.
const toolTimeout = 5 * time.Minute

// tool runs a program and returns what it prints and its error. The test is skipped where there is no
// such program.
func tool(t testing.TB, name string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		missing(t, "%s is not installed", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), toolTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.Dir = "/"
	var out, problems bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &problems
	err = cmd.Run()
	return out.String(), problems.String(), err
}

// run is tool for programs that must succeed and complain about nothing.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, problems, err := tool(t, name, args...)
	if err != nil || problems != "" {
		t.Fatalf("%s %.300q: %v\n%.2000s", name, args, err, problems)
	}
	return out
}

// shell runs a script with arguments $1, $2, …
func shell(t testing.TB, script string, args ...string) string {
	t.Helper()
	return run(t, "bash", append([]string{"-c", script, "bash"}, args...)...)
}

// program returns the text of a program in testdata: in Python, or in bash.
func program(t testing.TB, name string) string {
	return string(read(t, filepath.Join("testdata", name)))
}

// python runs a program with arguments.
func python(t testing.TB, program string, args ...string) string {
	t.Helper()
	return run(t, "python3", append([]string{"-c", program}, args...)...)
}
