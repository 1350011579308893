package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// daemon serves one of the mounts, killed and started again and again.
type daemon struct {
	*options
	name   string // of the mount
	mode   string // mount options
	log    string // file
	cmd    *exec.Cmd
	ended  chan struct{}
	kills  int
	memory int   // of the mount option, in MiB
	rss    int64 // since it was started last, in MiB
	peak   int64

	mu   sync.Mutex // guards those below
	down bool
	back time.Time // when it was there again
}

// start mounts, also where a dead mount is. Where the mount of a daemon that was just killed does not answer yet, as
// happens when this machine has too much to do, it tries again, as the message says.
func (d *daemon) start() error {
	for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if status, err := d.startOnce(); status != noMountpoint || time.Since(start) > callLimit {
			return err
		}
	}
}

// noMountpoint is the exit status of a daemon whose mount point cannot be used (docs/design.md, The command).
const noMountpoint = 3

func (d *daemon) startOnce() (status int, err error) {
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	at := filepath.Join(d.dir, d.name)
	cmd := exec.Command(d.binary, "-f", "-o", fmt.Sprintf("memory=%dm%s", d.memory, d.mode), d.source(), at)
	cmd.Stderr, cmd.Dir = log, "/"
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(d.dir, "state"))
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	d.cmd, d.ended, d.rss, d.peak = cmd, ended, 0, 0
	for start := time.Now(); time.Since(start) < callLimit; time.Sleep(5 * time.Millisecond) {
		if d.serves(at) {
			return 0, nil
		}
		if d.ends(time.Millisecond) {
			status = cmd.ProcessState.ExitCode()
			return status, fmt.Errorf("the daemon of %s ended while it mounted, with status %d", d.name, status)
		}
	}
	return 0, fmt.Errorf("the daemon of %s did not mount within %v", d.name, callLimit)
}

// serves reports whether the mount answers, in a process of its own, since the call may hang.
func (d *daemon) serves(at string) bool {
	_, err := runScript(`[ -d "$1/sessions" ] && [ "$(stat -f -c %t "$1")" = 65735546 ]`, at, callLimit)
	return err == nil
}

// killAndStart kills the daemon without warning and starts it again after a pause.
func (d *daemon) killAndStart(pause time.Duration) error {
	d.setDown(true)
	defer d.setDown(false)
	if !d.signal(syscall.SIGKILL) {
		return fmt.Errorf("the daemon of %s had ended by itself: %v", d.name, d.cmd.ProcessState)
	}
	if !d.ends(callLimit) {
		return fmt.Errorf("the daemon of %s cannot be killed: a thread of it waits in the kernel", d.name)
	}
	d.kills++
	time.Sleep(pause)
	return d.start()
}

func (d *daemon) setDown(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down, d.back = down, time.Now()
}

// wasDownSince reports whether the daemon was not there at some moment since then. Calls notice it a little later.
func (d *daemon) wasDownSince(then time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.down || then.Before(d.back.Add(2*time.Second))
}

// signal reports whether the daemon still ran.
func (d *daemon) signal(s syscall.Signal) bool {
	return !d.ends(time.Millisecond) && d.cmd.Process.Signal(s) == nil
}

// ends reports whether the daemon ends within a time.
func (d *daemon) ends(within time.Duration) bool {
	select {
	case <-d.ended:
		return true
	case <-time.After(within):
		return false
	}
}

// sample notes how much memory the daemon has.
func (d *daemon) sample() {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kib int64
	if n, _ := fmt.Sscan(rest, &kib); n == 1 {
		d.rss = kib >> 10
		d.peak = max(d.peak, d.rss)
	}
}

// dump ends the daemon with a list of its goroutines in its log, and returns it.
func (d *daemon) dump() string {
	before, _ := os.Stat(d.log)
	d.signal(syscall.SIGCONT)
	d.signal(syscall.SIGQUIT)
	if !d.ends(10 * time.Second) {
		_ = d.cmd.Process.Kill()
	}
	text, _ := os.ReadFile(d.log)
	if before != nil && int64(len(text)) > before.Size() {
		text = text[before.Size():]
	}
	return string(text)
}

// unmount is sessionfs -u.
func (d *daemon) unmount() error {
	if out, err := exec.Command(d.binary, "-u", filepath.Join(d.dir, d.name)).CombinedOutput(); err != nil {
		return fmt.Errorf("sessionfs -u %s: %w: %s", d.name, err, out)
	}
	if !d.ends(callLimit) {
		return fmt.Errorf("the daemon of %s is still there after -u", d.name)
	}
	return nil
}
