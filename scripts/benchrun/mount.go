package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// mount is a file system that one of our daemons serves.
type mount struct {
	dir    string
	cmd    *exec.Cmd
	exited chan error
	stderr bytes.Buffer
	ready  time.Duration // from the start of the daemon until the first answer
	b      *bench
}

const (
	readyWithin = 20 * time.Second
	goneWithin  = 3 * time.Second
	// readyPoll is how often a starting mount is looked at: the error of its time.
	readyPoll = 50 * time.Microsecond
)

// mountOurs serves an agent directory with the daemon of this repository.
func (b *bench) mountOurs(ctx context.Context, source string) (*mount, error) {
	return b.mount(ctx, func(at string) []string { return append(append([]string{}, b.daemon...), source, at) })
}

// mountLoopback serves a directory with go-fuse's loopback example, with its default options.
func (b *bench) mountLoopback(ctx context.Context, source string) (*mount, error) {
	return b.mount(ctx, func(at string) []string { return []string{b.loopback, "-q", at, source} })
}

func (b *bench) mount(ctx context.Context, args func(at string) []string) (*mount, error) {
	at, err := os.MkdirTemp(b.dir, "mnt-")
	if err != nil {
		return nil, err
	}
	m := &mount{dir: at, exited: make(chan error, 1), b: b}
	argv := args(at)
	m.cmd = exec.Command(argv[0], argv[1:]...)
	m.cmd.Stderr = &m.stderr
	// Both run as a user would run them, but for the output.
	start := time.Now()
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { m.exited <- m.cmd.Wait() }()
	for !isFUSE(at) {
		select {
		case err := <-m.exited:
			return nil, fmt.Errorf("%s ended before its mount was ready: %v: %s", filepath.Base(argv[0]), err, m.stderr.String())
		case <-ctx.Done():
			_ = m.close()
			return nil, ctx.Err()
		case <-time.After(readyPoll):
		}
		if time.Since(start) > readyWithin {
			_ = m.close()
			return nil, fmt.Errorf("%s: no mount after %v", filepath.Base(argv[0]), readyWithin)
		}
	}
	m.ready = time.Since(start)
	return m, nil
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
	err := m.unmount()
	select {
	case <-m.exited:
		return errors.Join(err, os.Remove(m.dir))
	case <-time.After(goneWithin):
	}
	_ = m.cmd.Process.Kill()
	<-m.exited
	return err
}

func (m *mount) unmount() (err error) {
	for range 50 { // a process that just ended may still hold something open
		if os.Geteuid() == 0 {
			err = unix.Unmount(m.dir, 0)
		} else {
			var out []byte
			if out, err = exec.Command("fusermount3", "-u", m.dir).CombinedOutput(); err != nil {
				err = fmt.Errorf("fusermount3: %w: %s", err, bytes.TrimSpace(out))
			}
		}
		if err == nil || !isFUSE(m.dir) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// memory is what a process takes, in bytes.
type memory struct{ resident, peak int64 }

// memory reads the daemon's VmRSS and VmHWM.
func (m *mount) memory() (memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	if err != nil {
		return memory{}, err
	}
	var mem memory
	for line := range strings.Lines(string(status)) {
		key, rest, _ := strings.Cut(line, ":")
		if key != "VmRSS" && key != "VmHWM" {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return memory{}, fmt.Errorf("/proc/PID/status: %q: %w", line, err)
		}
		if key == "VmRSS" {
			mem.resident = kib << 10
		} else {
			mem.peak = kib << 10
		}
	}
	return mem, nil
}
