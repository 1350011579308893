//go:build linux

package main

import (
	"log/slog"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// notifySignals subscribes to the signals that end the mount. In the foreground these include SIGHUP: else a
// closed terminal would leave a dead mount behind.
func notifySignals(background bool) <-chan os.Signal {
	// The mount must survive when the reader of its log exits.
	signal.Ignore(unix.SIGPIPE)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, unix.SIGTERM)
	switch {
	case background:
		signal.Ignore(unix.SIGHUP)
	case !signal.Ignored(unix.SIGHUP): // ignored under nohup
		signal.Notify(stop, unix.SIGHUP)
	}
	return stop
}

// mounted is the part of fs.Server that waitOrStop needs.
type mounted interface {
	Wait()
	Unmount() error
	End() error
}

// waitOrStop returns when the mount is gone. After a signal it unmounts; if the mount is in use, it detaches
// it, which frees the mount point, and returns: open files then get errors. The error says that new sessions could
// not be put on disk.
func waitOrStop(server mounted, stop <-chan os.Signal, mountpoint string, boss *manager, log *slog.Logger) error {
	untilGone(server, stop, mountpoint, boss, log)
	return server.End()
}

func untilGone(server mounted, stop <-chan os.Signal, mountpoint string, boss *manager, log *slog.Logger) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Wait()
	}()
	select {
	case <-done:
		boss.say(stateStopping, "unmounted")
		log.Info("unmounted", "mountpoint", mountpoint)
		return
	case s := <-stop:
		log.Info("signal, unmounting", "signal", s.String(), "mountpoint", mountpoint)
	}
	boss.say(stateStopping, "unmounting")
	err := server.Unmount()
	if err == nil {
		<-done
		log.Info("unmounted", "mountpoint", mountpoint)
		return
	}
	if e, ok := mountAt(mountpoint); !ok || !e.ours() {
		log.Info("already unmounted", "mountpoint", mountpoint) // Wait is about to return
		return
	}
	log.Warn("the mount is in use, detaching it", "mountpoint", mountpoint, "err", err)
	if err := unmount(mountpoint, true); err != nil {
		log.Error("detaching failed", "mountpoint", mountpoint, "err", err)
	}
}
