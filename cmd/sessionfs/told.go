//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"sessionfs/mountopts"
)

// toldMounts returns the places that this user's mounts show, as far as their daemons tell that in time.
func toldMounts() (places []place) {
	mounts := slices.DeleteFunc(ourMounts(), func(e mountEntry) bool { return !e.ours() })
	all := make([]told, len(mounts))
	var wg sync.WaitGroup
	for i, e := range mounts {
		wg.Go(func() { _, all[i], _ = askDaemon(e, liveLimit, liveLimit) })
	}
	wg.Wait()
	for i, said := range all {
		if said.Options.Source != "" {
			places = append(places, place{said.Options, mounts[i].mountpoint, func() {}})
		}
	}
	return places
}

// shownAt returns what is shown at a path of the machine, absolute and without links: the options of the mount in which it lies,
// and where that is; mountpoint is "" where it lies in none.
func shownAt(path string) (o mountopts.Options, mountpoint string, err error) {
	e, ok := mountOver(path)
	if !ok {
		return o, "", nil
	}
	_, said, err := askDaemon(e, socketLimit, socketLimit)
	if err == nil && said.Options.Source == "" {
		err = fmt.Errorf("it is of version %s", said.Version)
	}
	if err != nil && statusOf(e).State == stateDead {
		return o, e.mountpoint, refuse(exitSource, "the mount at %s is dead: 'sessionfs -u %s' removes it", e.mountpoint, e.mountpoint)
	}
	if err != nil {
		err = refuse(exitSource, "the mount at %s does not tell what it shows (%s): mount it again, or name SOURCE with -s", e.mountpoint, err)
	}
	return said.Options, e.mountpoint, err
}

// mountOver returns the mount in which a path lies, which must be absolute and without links, if it is one of this program.
func mountOver(path string) (found mountEntry, ok bool) {
	for _, e := range allMounts() {
		inside := path == e.mountpoint || strings.HasPrefix(path, strings.TrimSuffix(e.mountpoint, "/")+"/")
		if inside && len(e.mountpoint) >= len(found.mountpoint) {
			found = e
		}
	}
	return found, found.isSessionfs()
}
