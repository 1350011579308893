//go:build linux

package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"sessionfs/fs"
	"sessionfs/sessioncore/storage"
)

// attendant looks after a mount until it is gone.
type attendant struct {
	server     *fs.Server
	mountpoint string
	idle       time.Duration // after which it is unmounted; 0 for never
	signals    signals
	manager    manager
	file       *logFile // nil if the log goes elsewhere
	log        *slog.Logger
	level      slog.Level // from which on is logged
	minor      uint32     // of the mount, in the mount table
}

// waitOrStop returns when the mount is gone. After a signal it unmounts; if the mount is in use, it detaches
// it, which frees the mount point, and returns: open files then get errors. The error says that new sessions could
// not be put on disk.
func (a *attendant) waitOrStop() error {
	a.untilGone()
	return a.server.End()
}

func (a *attendant) untilGone() {
	done := make(chan struct{})
	go storage.Guarded(func() {
		defer close(done)
		a.server.Wait()
	})()
	var idle <-chan time.Time
	if a.idle > 0 {
		idle = time.After(a.idle)
	}
	for {
		select {
		case <-done:
			a.manager.say("STOPPING=1", "unmounted")
			a.log.Info("unmounted", "mountpoint", a.mountpoint)
			return
		case s := <-a.signals.stop:
			a.stop(s, done)
			return
		case <-a.signals.reopen:
			if err := a.file.reopen(); err != nil {
				a.log.Error("the log file could not be opened anew", "err", err)
			} else {
				a.log.Info("the log file was opened anew", "mountpoint", a.mountpoint)
			}
		case <-a.signals.count:
			a.logCounters()
		case <-idle:
			idle = time.After(a.whenIdle())
		}
	}
}

// stop unmounts, or detaches what is in use.
func (a *attendant) stop(s os.Signal, done <-chan struct{}) {
	a.log.Info("signal, unmounting", "signal", s.String(), "mountpoint", a.mountpoint)
	a.manager.say("STOPPING=1", "unmounting")
	err := unmount(a.mountpoint, false)
	if err == nil {
		<-done
		a.log.Info("unmounted", "mountpoint", a.mountpoint)
		return
	}
	e, ok := mountAt(a.mountpoint)
	if !ok || !e.ours() {
		a.log.Info("already unmounted", "mountpoint", a.mountpoint) // Wait is about to return
		return
	}
	a.log.Warn("the mount is in use, detaching it", "mountpoint", a.mountpoint, "err", err)
	if err := detach(e, true); err != nil {
		a.log.Error("detaching failed", "mountpoint", a.mountpoint, "err", err)
	}
}

// whenIdle unmounts if the mount has been idle for long enough, and returns when to look again. The kernel refuses to
// unmount what is in use, as by a working directory, which asks for nothing.
func (a *attendant) whenIdle() time.Duration {
	since := a.server.Idle()
	if since < a.idle {
		return a.idle - since
	}
	// What is mounted on top of it, or elsewhere by now, is not ours to unmount.
	if e, ok := mountAt(a.mountpoint); !ok || e.minor != a.minor {
		return a.idle
	}
	ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
	defer cancel()
	if err := a.server.Save(ctx); err != nil {
		a.log.Warn("idle, but new sessions cannot be put on disk: still mounted", "mountpoint", a.mountpoint, "err", err)
		return a.idle
	}
	a.log.Info("idle, unmounting", "mountpoint", a.mountpoint, "for", since.Round(time.Second))
	if err := unmount(a.mountpoint, false); err != nil {
		a.log.Info("idle, but in use: still mounted", "mountpoint", a.mountpoint, "err", err)
	}
	return a.idle
}

// logCounters writes to the log what the mount holds, whatever is logged: who asks for it is to see it.
func (a *attendant) logCounters() {
	c := a.server.Counters()
	a.log.Log(context.Background(), max(slog.LevelInfo, a.level), "counters", "mountpoint", a.mountpoint, "up", time.Since(c.Since).Round(time.Second).String(),
		"open", c.Open, "sessions", c.Sessions, "new", c.New, "held", c.Held, "memory", c.Memory)
}
