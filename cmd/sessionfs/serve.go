//go:build linux

package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"sessionfs/fs"
	"sessionfs/mountopts"
)

// serve checks the arguments, mounts, and serves the mount until it is unmounted or a signal ends it. In the
// background, ready is the pipe to the waiting process; until it is ready, stderr is the user's, for warnings.
func serve(c mountopts.Command, ready *os.File, stderr io.Writer) error {
	a := &attendant{signals: notifySignals(ready != nil, c.Options.LogFile != ""), idle: c.Options.Idle, level: c.Options.Level()}
	o := c.Options
	remove, err := resolveSource(&o, stderr)
	defer remove()
	if err != nil {
		return err
	}
	if o.Mountpoint, err = checkMountpoint(o); err != nil {
		return err
	}
	if err := a.openLog(o, ready != nil); err != nil {
		return err
	}
	if c.Fake {
		return nil
	}
	a.mountpoint = o.Mountpoint
	a.manager = takeManager(ready == nil)
	if ready != nil {
		// Do not keep the file system of the working directory busy.
		if err := os.Chdir("/"); err != nil {
			return fmt.Errorf("chdir: %w", err)
		}
	}
	if a.server, err = fs.Mount(o, a.log); err != nil {
		return diagnose(err, o)
	}
	if e, ok := mountAt(o.Mountpoint); ok { // else it is unmounted already
		a.minor = e.minor
		defer a.serveStatus()()
	}
	a.log.Info("mounted", "source", o.Source, "mountpoint", o.Mountpoint, "version", version())
	if ready != nil {
		select {
		case s := <-a.signals.stop:
			err = fmt.Errorf("%s before the mount was ready", s)
		default:
			err = sayReady(ready)
		}
		if err != nil {
			_ = a.server.Unmount()
			return err
		}
	}
	a.manager.say("READY=1", "mounted at "+o.Mountpoint)
	return a.waitOrStop()
}

// openLog opens the log.
func (a *attendant) openLog(o mountopts.Options, background bool) error {
	var out io.Writer
	if o.LogFile != "" {
		file, err := openLog(o.LogFile, o)
		if err != nil {
			return err
		}
		a.file, out = file, file
	}
	a.log = newLogger(o, background, out)
	slog.SetDefault(a.log) // go-fuse logs through package log
	return nil
}
