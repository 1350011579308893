package served

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// FS is a file system that a daemon serves.
type FS struct {
	*exec.Cmd
	At    string        // its mount point
	Ready time.Duration // from the start of the daemon until the first answer
	ended chan struct{}
}

// readyPoll is how often a starting mount is looked at: the error of its time.
const readyPoll = 50 * time.Microsecond

// Start starts a daemon and waits until its mount answers. A daemon that does not get there within a time is killed.
func Start(cmd *exec.Cmd, at string, within time.Duration) (*FS, error) {
	f := &FS{Cmd: cmd, At: at, ended: make(chan struct{})}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(f.ended)
	}()
	defer time.AfterFunc(within, func() { _ = cmd.Process.Kill() }).Stop()
	for !isFUSE(at) {
		if f.Ends(readyPoll) {
			return f, fmt.Errorf("%s ended before its mount was ready: %v", filepath.Base(cmd.Path), cmd.ProcessState)
		}
	}
	f.Ready = time.Since(start)
	return f, nil
}

// isFUSE asks the file system at a path for its kind: where it is the mount, the daemon has answered.
func isFUSE(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Type == unix.FUSE_SUPER_MAGIC
}

// Path is a path in the file system.
func (f *FS) Path(elem ...string) string { return filepath.Join(append([]string{f.At}, elem...)...) }

// Ends reports whether the daemon ends within a time.
func (f *FS) Ends(within time.Duration) bool {
	select {
	case <-f.ended:
		return true
	case <-time.After(within):
		return false
	}
}

// Memory is what the daemon takes, in bytes: its VmRSS, or its peak, VmHWM. 0 where it has ended.
func (f *FS) Memory(what string) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.Process.Pid))
	_, rest, _ := strings.Cut(string(status), what+":")
	var kib float64
	_, _ = fmt.Sscan(rest, &kib)
	return kib * 1024
}
