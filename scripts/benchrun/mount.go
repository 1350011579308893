package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// mount is a file system that a daemon serves.
type mount struct {
	dir    string
	cmd    *exec.Cmd
	exited chan error
	stderr bytes.Buffer
	ready  float64 // seconds from the start of the daemon until the first answer
}

const (
	readyWithin = time.Minute
	goneWithin  = 3 * time.Second
	// readyPoll is how often a starting mount is looked at: the error of its time.
	readyPoll = 50 * time.Microsecond
)

// withOurs calls f with a fresh mount of an agent directory, and notes the daemon's peak memory after.
func (b *bench) withOurs(source string, res *result, f func(*mount)) {
	b.withMount(func(at string) []string { return append(append([]string{}, b.daemon...), source, at) }, func(mt *mount) {
		f(mt)
		res.peak = max(res.peak, b.memory(mt, "VmHWM"))
	})
}

// withLoopback calls f with a directory that go-fuse's loopback example serves, with its default options.
func (b *bench) withLoopback(source string, f func(at string)) {
	b.withMount(func(at string) []string { return []string{b.loopback, "-q", at, source} }, func(mt *mount) { f(mt.dir) })
}

// withMount calls f with a mount, and unmounts.
func (b *bench) withMount(args func(at string) []string, f func(*mount)) {
	m, failed := b.mount(args), true
	defer func() {
		if err := m.close(); !failed { // else what went wrong before is said
			b.must(err)
		}
	}()
	f(m)
	failed = false
}

// mount starts a daemon as a user would.
func (b *bench) mount(args func(at string) []string) *mount {
	at, err := os.MkdirTemp(b.dir, "mnt-")
	b.must(err)
	m := &mount{dir: at, exited: make(chan error, 1)}
	argv := args(at)
	m.cmd = exec.Command(argv[0], argv[1:]...)
	m.cmd.Stderr = &m.stderr
	start := time.Now()
	b.must(m.cmd.Start())
	go func() { m.exited <- m.cmd.Wait() }()
	defer func() {
		if m.ready == 0 {
			_ = m.close()
		}
	}()
	for !isFUSE(at) {
		select {
		case err := <-m.exited:
			m.exited <- err
			b.fail("%s ended before its mount was ready: %v: %s", filepath.Base(argv[0]), err, m.stderr.String())
		case <-time.After(readyPoll):
		}
		if b.must(nil); time.Since(start) > readyWithin {
			b.fail("%s: no mount after %v", filepath.Base(argv[0]), readyWithin)
		}
	}
	m.ready = time.Since(start).Seconds()
	return m
}

// isFUSE asks the file system at a path for its kind: where it is the mount, the daemon has answered.
func isFUSE(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Type == unix.FUSE_SUPER_MAGIC
}

func (m *mount) path(elem ...string) string {
	return filepath.Join(append([]string{m.dir}, elem...)...)
}

// close unmounts and waits for the daemon's end. Where another process has a copy of our mounts, in a
// mount namespace that it made meanwhile, the daemon never learns of the unmount: then it is ended.
func (m *mount) close() error {
	// Lazily: a process that just ended may still hold something open.
	err := exec.Command("fusermount3", "-u", "-z", m.dir).Run()
	select {
	case <-m.exited:
		return errors.Join(err, os.Remove(m.dir))
	case <-time.After(goneWithin):
	}
	_ = m.cmd.Process.Kill()
	<-m.exited
	return err
}

// memory is what a daemon takes, in bytes: its VmRSS, or its peak, VmHWM.
func (b *bench) memory(of *mount, what string) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", of.cmd.Process.Pid))
	b.must(err)
	_, rest, _ := strings.Cut(string(status), what+":")
	var kib float64
	_, err = fmt.Sscan(rest, &kib)
	b.must(err)
	return kib * 1024
}

func (b *bench) resident(of *mount) float64 { return b.memory(of, "VmRSS") }
