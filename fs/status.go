//go:build linux

package fs

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
)

// Status is a mount as sessionfs status shows it.
type Status struct {
	Mountpoint string `json:"mountpoint"`
	Source     string `json:"source"`
	State      string `json:"state"`
	User       int    `json:"uid"`
	PID        int    `json:"pid,omitempty"`
	Version    string `json:"version,omitempty"`
	*Counters
	Options mountopts.Options `json:"-"` // without a Source if the daemon did not tell them
}

// The states of a mount.
const (
	StateOK = "ok"
	// StateSilent is a mount that does not tell its state: another user's, or one in another
	// network namespace.
	StateSilent = "silent"
	StateHangs  = "hangs"
	StateDead   = "dead" // the daemon is gone
	StateFull   = "full" // it refuses requests that need more memory
)

// StatusOf returns the status of mounts. It asks them at the same time: one that hangs takes its
// time.
func StatusOf(mounts []MountEntry, limit time.Duration) []Status {
	all := make([]Status, len(mounts))
	var wg sync.WaitGroup
	for i, e := range mounts {
		wg.Go(func() {
			all[i] = e.status(limit)
		})
	}
	wg.Wait()
	return all
}

// status asks the daemon of a mount, and waits for its answer as long as limit. Where nobody answers at its socket,
// it looks at the mount itself: one without a daemon answers at once, with an error. The status has Counters and Options
// only if the daemon tells them.
func (e MountEntry) status(limit time.Duration) Status {
	s := Status{
		Mountpoint: e.Mountpoint,
		Source:     e.Source,
		User:       e.User,
		State:      StateOK,
	}
	pid, reply, err := e.ask(limit, limit)
	s.PID = pid
	if err == nil {
		s.Version = reply.Version
		s.Counters = &reply.Counters
		s.Options = reply.Options
		if s.Full != "" {
			s.State = StateFull
		}
		return s
	}
	hasHungUp := errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET)
	if pid != 0 && !hasHungUp {
		s.State = StateHangs
		return s
	}
	s.State = e.probe(limit)
	if s.State == StateDead {
		s.PID = 0
	}
	return s
}

// probe returns the state of a mount by a look at it, which may take as long as limit: StateDead, StateHangs, or
// StateSilent for one that answers.
func (e MountEntry) probe(limit time.Duration) string {
	looked := make(chan error, 1) // room for a look that ends after limit
	go func() {
		looked <- unix.Access(filepath.Join(e.Mountpoint, absentName), unix.F_OK)
	}()
	select {
	case err := <-looked:
		switch err {
		case unix.ENOTCONN, unix.ECONNABORTED, unix.ECONNREFUSED:
			return StateDead
		}
		return StateSilent
	case <-time.After(limit):
		return StateHangs
	}
}

// absentName is a name that no mount has, so that the kernel has to ask the server, and the server
// need not ask SOURCE for it.
const absentName = ".sessionfs-absent"

// ShownMounts returns the options of this user's mounts, each with its Mountpoint, as far as their daemons tell them
// within liveLimit.
func ShownMounts() (all []mountopts.Options) {
	mounts := slices.DeleteFunc(AllMounts(), func(e MountEntry) bool {
		return !e.IsOurs()
	})
	for _, s := range StatusOf(mounts, liveLimit) {
		if s.Options.Source != "" {
			s.Options.Mountpoint = s.Mountpoint
			all = append(all, s.Options)
		}
	}
	return all
}

// ShownAt returns the options of the mount that has a path of the machine, absolute and without
// links. They have no Mountpoint if it lies in none. If the daemon does not tell its options, they have a Mountpoint
// alone, and the error says why.
func ShownAt(path string) (o mountopts.Options, err error) {
	e := MountOver(path)
	if !e.IsSessionfs() {
		return o, nil
	}
	s := e.status(AnswerLimit)
	o = s.Options
	o.Mountpoint = e.Mountpoint
	why := "its state is " + s.State
	switch {
	case o.Source != "":
		return o, nil
	case s.State == StateDead:
		return o, Refuse(ErrSource, "the mount at %s is dead: 'sessionfs -u %s' removes it",
			e.Mountpoint, e.Mountpoint)
	case s.Version != "":
		why = "it is of version " + s.Version
	}
	return o, Refuse(ErrSource, "the mount at %s does not tell what it shows (%s): mount it again, "+
		"or name SOURCE with -s", e.Mountpoint, why)
}
