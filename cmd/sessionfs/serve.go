//go:build linux

package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"sessionfs/fs"
	"sessionfs/mountopts"
)

// serve checks the arguments, mounts, and serves the mount until it is unmounted or a signal ends it. In the
// background, ready is the pipe to the waiting process; until it is ready, stderr is the user's, for warnings.
func serve(c mountopts.Command, ready *os.File, stderr io.Writer) error {
	placeSource(&c, os.Getenv)
	o := c.Options
	log := newLogger(o, ready != nil)
	slog.SetDefault(log) // go-fuse logs through package log
	stop := notifySignals(ready != nil)
	boss := takeManager(ready == nil, log)

	if o.Demo {
		dir, err := unpackDemo()
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.Source = dir
		if o.FSName == "" {
			o.FSName = "demo"
		}
	}
	source, warning, err := checkSource(o.Source, c.DefaultSource)
	if err != nil {
		return err
	}
	o.SourceAs, _ = filepath.Abs(o.Source) // checkSource has refused what has no absolute path
	o.Source = source
	if o.Mountpoint, err = checkMountpoint(o); err != nil {
		return err
	}
	if warning != "" {
		fmt.Fprintln(stderr, "sessionfs: warning:", warning)
	}
	if c.Fake {
		return nil
	}
	if ready != nil {
		// Do not keep the file system of the working directory busy.
		if err := os.Chdir("/"); err != nil {
			return fmt.Errorf("chdir: %w", err)
		}
	}
	server, err := fs.Mount(o, log)
	if err != nil {
		return diagnose(err, o)
	}
	log.Info("mounted", "source", o.Source, "mountpoint", o.Mountpoint, "version", version(unknownBuild))
	if ready != nil {
		select {
		case s := <-stop:
			err = fmt.Errorf("%s before the mount was ready", s)
		default:
			err = sayReady(ready)
		}
		if err != nil {
			_ = server.Unmount()
			return err
		}
	}
	boss.say(stateReady, "mounted at "+o.Mountpoint)
	return waitOrStop(server, stop, o.Mountpoint, boss, log)
}
