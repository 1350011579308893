package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// daemon serves one of the mounts, killed and started again and again.
type daemon struct {
	o     *options
	name  string // of the mount
	log   string // file
	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
	downs []interval // while it was not there
	kills int
	rss   []int64 // samples since it was started last, in bytes
}

// interval is a time in milliseconds since the epoch.
type interval struct{ from, to int64 }

func newDaemon(o *options, name string) *daemon {
	return &daemon{o: o, name: name, log: filepath.Join(o.dir, "log-"+name)}
}

// start mounts, also where a dead mount is. Where the mount of a daemon that was just killed does not answer yet, as
// happens when this machine has too much to do, it tries again, as the message says.
func (d *daemon) start() error {
	for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := d.startOnce()
		var ended *endedError
		if !errors.As(err, &ended) || ended.status != noMountpoint || time.Since(start) > d.o.limit {
			return err
		}
	}
}

// noMountpoint is the exit status of a daemon whose mount point cannot be used (docs/design.md, The command).
const noMountpoint = 3

// endedError says that a daemon ended while it mounted.
type endedError struct {
	mount  string
	status int
}

func (e *endedError) Error() string {
	return fmt.Sprintf("the daemon of %s ended while it mounted, with status %d", e.mount, e.status)
}

func (d *daemon) startOnce() error {
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	at := filepath.Join(d.o.dir, d.name)
	cmd := exec.Command(d.o.daemon, "-f", d.o.source(), at)
	cmd.Stderr, cmd.Dir = log, "/"
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(d.o.dir, "state"))
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	d.mu.Lock()
	d.cmd, d.ended, d.rss = cmd, ended, nil
	d.mu.Unlock()
	for start := time.Now(); time.Since(start) < d.o.limit; time.Sleep(5 * time.Millisecond) {
		if d.serves(at) {
			return nil
		}
		select {
		case <-ended:
			return &endedError{d.name, cmd.ProcessState.ExitCode()}
		default:
		}
	}
	return fmt.Errorf("the daemon of %s did not mount within %v", d.name, d.o.limit)
}

// serves reports whether the mount answers. The call is made in a goroutine, since it may hang.
func (d *daemon) serves(at string) bool {
	answer := make(chan bool, 1)
	go func() {
		var st unix.Statfs_t
		_, err := os.Lstat(filepath.Join(at, "sessions"))
		answer <- err == nil && unix.Statfs(at, &st) == nil && st.Type == unix.FUSE_SUPER_MAGIC
	}()
	select {
	case ok := <-answer:
		return ok
	case <-time.After(d.o.limit):
		return false
	}
}

// killAndStart kills the daemon without warning and starts it again after a pause.
func (d *daemon) killAndStart(pause time.Duration) error {
	down := interval{from: time.Now().UnixMilli()}
	if !d.signal(syscall.SIGKILL) {
		return fmt.Errorf("the daemon of %s had ended by itself: %v", d.name, d.cmd.ProcessState)
	}
	select {
	case <-d.ended:
	case <-time.After(d.o.limit):
		return fmt.Errorf("the daemon of %s cannot be killed: a thread of it waits in the kernel", d.name)
	}
	d.kills++
	time.Sleep(pause)
	err := d.start()
	down.to = time.Now().UnixMilli()
	d.downs = append(d.downs, down)
	return err
}

// suspend stops the daemon for a while.
func (d *daemon) suspend(pause time.Duration) {
	if d.signal(syscall.SIGSTOP) {
		time.Sleep(pause)
		d.signal(syscall.SIGCONT)
	}
}

// signal reports whether the daemon still ran.
func (d *daemon) signal(s syscall.Signal) bool {
	select {
	case <-d.ended:
		return false
	default:
		return d.cmd.Process.Signal(s) == nil
	}
}

// wasDown reports whether the daemon was not there at some moment of a time. Calls notice it a little later.
func (d *daemon) wasDown(from, to int64) bool {
	const later = 2000
	for _, i := range d.downs {
		if from <= i.to+later && to >= i.from {
			return true
		}
	}
	return false
}

// sample notes how much memory the daemon has.
func (d *daemon) sample() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if rss, err := residentMemory(d.cmd.Process.Pid); err == nil {
		d.rss = append(d.rss, rss)
	}
}

func residentMemory(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("no VmRSS")
}

// dump ends the daemon with a list of its goroutines in its log, and returns it.
func (d *daemon) dump() string {
	before, _ := os.Stat(d.log)
	d.signal(syscall.SIGCONT)
	d.signal(syscall.SIGQUIT)
	select {
	case <-d.ended:
	case <-time.After(10 * time.Second):
		_ = d.cmd.Process.Kill()
	}
	text, _ := os.ReadFile(d.log)
	if before != nil && int64(len(text)) > before.Size() {
		text = text[before.Size():]
	}
	return string(text)
}

// goroutines counts those of a dump.
func goroutines(dump string) int { return strings.Count("\n"+dump, "\ngoroutine ") }

// unmount is sessionfs -u.
func (d *daemon) unmount() error {
	cmd := exec.Command(d.o.daemon, "-u", filepath.Join(d.o.dir, d.name))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return err
	}
	timer := time.AfterFunc(d.o.limit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("sessionfs -u %s: %w: %s", d.name, err, bytes.TrimSpace(out.Bytes()))
	}
	select {
	case <-d.ended:
		return nil
	case <-time.After(d.o.limit):
		return fmt.Errorf("the daemon of %s is still there after -u", d.name)
	}
}
