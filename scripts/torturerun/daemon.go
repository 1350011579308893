package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
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
	memory int          // of the mount option, in MiB
	back   atomic.Int64 // until when its death is noticed, in nanoseconds since 1970
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
		cmd.Stderr = log
		cmd.Dir = "/"
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(d.dir, "state"))
		d.FS, err = served.Start(cmd, at, callLimit)
		if err == nil || d.FS == nil {
			return err
		}
		if d.ProcessState.ExitCode() != noMountpoint || time.Since(start) > callLimit {
			return fmt.Errorf("the daemon of %s: %w", d.name, err)
		}
	}
}

// killAndStart kills the daemon without warning and starts it again after a pause. Meanwhile, and shortly after, calls on
// its mount may fail. The error is of a daemon that had ended, cannot be killed, or does not start.
func (d *daemon) killAndStart(pause time.Duration) error {
	d.back.Store(math.MaxInt64)
	defer func() { d.back.Store(time.Now().Add(noticed).UnixNano()) }()
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

// noticed is how long after a daemon is there again calls may still notice its death.
const noticed = 2 * time.Second

// wasDownSince reports whether the daemon was not there at some moment since then.
func (d *daemon) wasDownSince(then time.Time) bool { return then.UnixNano() < d.back.Load() }

// signal sends a signal to the daemon, and reports whether it still ran.
func (d *daemon) signal(s syscall.Signal) bool {
	return !d.Ends(time.Millisecond) && d.Process.Signal(s) == nil
}

// mebibytes is how much memory the daemon has, VmRSS, or has had since it was started last, VmHWM.
func (d *daemon) mebibytes(what string) float64 { return d.Memory(what) / (1 << 20) }

// dump ends the daemon with a list of its goroutines in its log, and returns it.
func (d *daemon) dump() string {
	before := len(readText(d.log))
	d.signal(syscall.SIGCONT)
	d.signal(syscall.SIGQUIT)
	if !d.Ends(10 * time.Second) {
		_ = d.Process.Kill()
	}
	return readText(d.log)[before:]
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
