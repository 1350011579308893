package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"sessionfs/scripts/served"
)

// daemon serves one of the mounts, killed and started again and again.
type daemon struct {
	*options
	*served.FS
	name   string // of the mount
	mode   string // mount options
	log    string // file
	kills  int
	memory int     // of the mount option, in MiB
	rss    float64 // since it was started last, in MiB
	peak   float64

	mu   sync.Mutex // guards those below
	down bool
	back time.Time // when it was there again
}

// noMountpoint is the exit status of a daemon whose mount point cannot be used (docs/design.md, The command).
const noMountpoint = 3

// start mounts, also where a dead mount is. Where the mount of a daemon that was just killed does not answer yet, as
// happens when this machine has too much to do, it tries again, as the message says.
func (d *daemon) start() error {
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		at := d.mounted(d.name)
		cmd := exec.Command(d.binary, "-f", "-o", fmt.Sprintf("memory=%dm%s", d.memory, d.mode), d.source(), at)
		cmd.Stderr, cmd.Dir = log, "/"
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(d.dir, "state"))
		d.rss, d.peak = 0, 0
		if d.FS, err = served.Start(cmd, at, callLimit); err == nil || d.FS == nil {
			return err
		}
		if d.ProcessState.ExitCode() != noMountpoint || time.Since(start) > callLimit {
			return fmt.Errorf("the daemon of %s: %w", d.name, err)
		}
	}
}

// killAndStart kills the daemon without warning and starts it again after a pause.
func (d *daemon) killAndStart(pause time.Duration) error {
	d.setDown(true)
	defer d.setDown(false)
	if !d.signal(syscall.SIGKILL) {
		return fmt.Errorf("the daemon of %s had ended by itself: %v", d.name, d.ProcessState)
	}
	if !d.Ends(callLimit) {
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
	return !d.Ends(time.Millisecond) && d.Process.Signal(s) == nil
}

// sample notes how much memory the daemon has.
func (d *daemon) sample() {
	if rss := d.Memory("VmRSS") / (1 << 20); rss > 0 {
		d.rss = rss
		d.peak = max(d.peak, rss)
	}
}

// dump ends the daemon with a list of its goroutines in its log, and returns it.
func (d *daemon) dump() string {
	before, _ := os.Stat(d.log)
	d.signal(syscall.SIGCONT)
	d.signal(syscall.SIGQUIT)
	if !d.Ends(10 * time.Second) {
		_ = d.Process.Kill()
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
	if !d.Ends(callLimit) {
		return fmt.Errorf("the daemon of %s is still there after -u", d.name)
	}
	return nil
}
