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

// Start starts a daemon and waits until its mount answers at a mount point. A daemon that does not get there within a time
// is killed. If the daemon ends before, there is an error beside the FS, which has its ProcessState.
func Start(cmd *exec.Cmd, at string, within time.Duration) (*FS, error) {
	f := &FS{Cmd: cmd, At: at, ended: make(chan struct{})}
	start := time.Now()
	err := cmd.Start()
	if err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(f.ended)
	}()
	alarm := time.AfterFunc(within, func() { _ = cmd.Process.Kill() })
	defer alarm.Stop()
	for !isFUSE(at) {
		if f.Ends(readyPoll) {
			return f, fmt.Errorf("%s ended before its mount was ready: %v", filepath.Base(cmd.Path), cmd.ProcessState)
		}
	}
	f.Ready = time.Since(start)
	return f, nil
}

// isFUSE reports whether a path is in a FUSE mount, and its daemon has answered.
func isFUSE(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Type == unix.FUSE_SUPER_MAGIC
}

// Path returns the path of a name in the file system.
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

// Memory returns how many bytes of memory the daemon has, for VmRSS, or has had at most, for VmHWM; 0 if it has ended.
func (f *FS) Memory(field string) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.Process.Pid))
	_, rest, _ := strings.Cut(string(status), field+":")
	var kibibytes float64
	_, _ = fmt.Sscan(rest, &kibibytes) // nothing changes it if there is no such field
	return kibibytes * 1024
}
