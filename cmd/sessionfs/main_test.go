//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
)

// The tests here run this test program as the program under test, under its name, in child processes. As root they do so in a
// mount namespace of their own: whatever goes wrong, no mount is left on the machine, and /dev/fuse can be given its usual
// mode, 0666, where a container leaves it to root alone.

const (
	// namespaceEnv marks the copy of the tests that runs in the namespace.
	namespaceEnv = "SESSIONFS_TEST_NAMESPACE"
	// requireEnv makes a test fail that would be skipped for want of FUSE.
	requireEnv = "SESSIONFS_REQUIRE_FUSE"
	// typedEnv names the program that pages type in place of the one under test. scripts/test gives them one without the
	// race detector: a command that ends takes two to three times as long with it. The daemons of their mounts keep it.
	typedEnv = "SESSIONFS_TEST_TYPED"
)

var (
	// program is the path of the program under test.
	program string
	// typedProgram is the path of the program that a page types.
	typedProgram string
	// testRoot is the directory of both, and of all that the tests write.
	testRoot string
)

// TestMain is the program under test if it is called by a name of that, else it runs the tests, as root in a mount
// namespace.
func TestMain(m *testing.M) {
	if mountopts.IsHelper(os.Args[0]) || filepath.Base(os.Args[0]) == "sessionfs" {
		main()
	}
	if os.Geteuid() == 0 && os.Getenv(namespaceEnv) == "" {
		fmt.Fprintln(os.Stderr, "no mount namespace for the tests, so they run without:", enterNamespace())
	}
	os.Setenv("TZ", "UTC") // of the programs that tests start
	time.Local = time.UTC
	os.Exit(runTests(m))
}

// enterNamespace goes on as this test program in a new mount namespace. It returns only if there can be none.
func enterNamespace() error {
	unshare, err := exec.LookPath("unshare")
	if err == nil {
		err = exec.Command(unshare, "--mount", "true").Run()
	}
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := append([]string{unshare, "--mount", "--propagation", "private", self}, os.Args[1:]...)
	return syscall.Exec(unshare, args, append(os.Environ(), namespaceEnv+"=1"))
}

// runTests prepares all that tests share, runs them, and returns the exit status: 1 also if they leave something
// behind.
func runTests(m *testing.M) int {
	if os.Getenv(namespaceEnv) != "" {
		if err := prepareNamespace(); err != nil {
			fmt.Fprintln(os.Stderr, "preparing the mount namespace:", err)
			return 1
		}
	}
	dir, err := os.MkdirTemp("", "sessionfs-test-")
	if err == nil {
		defer os.RemoveAll(dir)
		testRoot, err = filepath.EvalSymlinks(dir) // as the mount table and /proc show it
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Ordinary users start the program too, and the race detector of theirs writes here.
	if err := os.Chmod(testRoot, 0o777|os.ModeSticky); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Setenv("TMPDIR", testRoot) // t.TempDir and the sample store: all in one place
	os.Setenv("GORACE", "atexit_sleep_ms=0 log_path="+filepath.Join(testRoot, "race"))
	err = preparePrograms()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Under nohup this process ignores SIGHUP, in the background of a script SIGINT, and what it starts would, too; caught,
	// they are as usual again for those.
	for _, ignored := range []os.Signal{unix.SIGHUP, unix.SIGINT} {
		if signal.Ignored(ignored) {
			signal.Notify(make(chan os.Signal, 1), ignored)
		}
	}
	code := m.Run()
	for _, problem := range leftovers() {
		fmt.Fprintln(os.Stderr, "left behind:", problem)
		code = 1
	}
	return code
}

// preparePrograms copies the program under test, and the one that pages type, below testRoot.
func preparePrograms() error {
	program = filepath.Join(testRoot, "sessionfs")
	typedProgram = program
	err := copyProgram(program, "/proc/self/exe")
	other := os.Getenv(typedEnv)
	if err != nil || other == "" {
		return err
	}
	typedProgram = filepath.Join(testRoot, "typed", "sessionfs")
	err = os.Mkdir(filepath.Dir(typedProgram), 0o755)
	if err != nil {
		return err
	}
	return copyProgram(typedProgram, other)
}

// copyProgram copies a program to a new file. Whatever the umask, ordinary users run it as well.
func copyProgram(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	err = os.WriteFile(to, text, 0o755)
	if err != nil {
		return err
	}
	return os.Chmod(to, 0o755)
}

// prepareNamespace leaves out the mounts of programs beside the tests, and puts a device for everyone over /dev/fuse. That
// /dev/fuse cannot be made here is no error: the tests that need it say so.
func prepareNamespace() error {
	for _, e := range fs.AllMounts() {
		if e.IsSessionfs() { // a copy of a mount keeps its daemon, and is in the table that status shows
			_ = detach(e.Mountpoint)
		}
	}
	// Where it cannot be mounted, or is already, the tests that need it say so or find it.
	_ = unix.Mount("fusectl", connections, "fusectl", 0, "")
	var st unix.Stat_t
	if unix.Stat(fuseDevice, &st) != nil || st.Mode&0o666 == 0o666 {
		return nil
	}
	dir, err := os.MkdirTemp("", "sessionfs-test-dev-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	// On a file system of its own: /tmp may be mounted nodev.
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"); err != nil {
		return err
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	node := filepath.Join(dir, "fuse")
	if unix.Mknod(node, unix.S_IFCHR|0o666, int(st.Rdev)) != nil {
		return nil
	}
	if err := os.Chmod(node, 0o666); err != nil { // the umask
		return err
	}
	return unix.Mount(node, fuseDevice, "", unix.MS_BIND, "")
}

// leftovers lists what the tests should have removed: mounts, processes, reports of data races.
func leftovers() []string {
	var found []string
	for _, e := range fs.AllMounts() {
		if strings.HasPrefix(e.Mountpoint, testRoot+"/") {
			found = append(found, "the mount "+e.Mountpoint)
			_ = detach(e.Mountpoint)
		}
	}
	for _, pid := range daemons("") {
		found = append(found, fmt.Sprintf("process %d", pid))
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	reports, _ := filepath.Glob(filepath.Join(testRoot, "race.*"))
	for _, name := range reports {
		text, _ := os.ReadFile(name)
		found = append(found, "a data race: "+string(text))
	}
	return found
}
