//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/names"
)

// status is a mount as sessionfs status shows it.
type status struct {
	Mountpoint string `json:"mountpoint"`
	Source     string `json:"source"`
	State      string `json:"state"`
	User       int    `json:"uid"`
	PID        int    `json:"pid,omitempty"`
	Version    string `json:"version,omitempty"`
	*fs.Counters
	options mountopts.Options // without a Source if the daemon did not tell them
}

// The states of a mount.
const (
	stateOK = "ok"
	// stateSilent is a mount that does not tell its state: that of another user, or in another
	// network namespace.
	stateSilent = "silent"
	stateHangs  = "hangs"
	stateDead   = "dead" // the daemon is gone
	stateFull   = "full" // it refuses requests that need more memory
)

// statusCommand is sessionfs status.
func statusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [--json] [MOUNTPOINT]",
		Short: "List this user's mounts, and what they have done",
		Long: "List the mounts of this user, or of all users for root, or the one at MOUNTPOINT: state, pid, time " +
			"since the mount, open files and directories, sessions whose index is kept, memory, files that the " +
			"process has open, temporary files. A mount that refuses what needs more memory is full; one that does " +
			"not answer within five seconds hangs.\n\n" +
			"Exit status: 0 all are ok, 1 one is not, or nothing is mounted at MOUNTPOINT.",
		Example:           "  sessionfs status --json | jq -r '.[].mountpoint'",
		SuggestFor:        []string{"list", "mounts", "ps"},
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeMountpoints,
		RunE: func(cmd *cobra.Command, args []string) error {
			mounts, err := chosenMounts(args)
			if err != nil {
				return err
			}
			all := statusOfAll(mounts, socketLimit)
			if asJSON {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(all)
			} else {
				err = printStatus(cmd.OutOrStdout(), all, time.Now())
			}
			for _, s := range all {
				if s.State != stateOK && err == nil {
					return ended(exitFailure)
				}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as a JSON array, with times and bytes as they are")
	return cmd
}

// systemCommands are the commands that are about mounts.
var systemCommands = []commandMaker{{"status", statusCommand}, {"umount", umountCommand}, {"unmount", umountCommand}}

// ourMounts returns the mounts of this user, for root those of all users.
func ourMounts() []mountEntry {
	return slices.DeleteFunc(allMounts(), func(e mountEntry) bool { return !e.isSessionfs() || !e.mayAsk() })
}

// ourMountpoints returns where they are.
func ourMountpoints() (paths []string) {
	for _, e := range ourMounts() {
		paths = append(paths, e.mountpoint)
	}
	return paths
}

// chosenMounts returns the mounts that are asked for.
func chosenMounts(args []string) ([]mountEntry, error) {
	if len(args) == 0 {
		return ourMounts(), nil
	}
	path, err := resolveMountpoint(args[0])
	if err != nil {
		return nil, fmt.Errorf("%s cannot be resolved: %w", args[0], err)
	}
	e, ok := mountAt(path)
	if !ok || !e.isSessionfs() {
		return nil, fmt.Errorf("no sessionfs is mounted at %s", path)
	}
	if !e.mayAsk() {
		return nil, fmt.Errorf("%s was mounted by user %d; only that user and root are told", path, e.uid)
	}
	return []mountEntry{e}, nil
}

// statusOfAll returns the status of mounts. It asks them at the same time: one that hangs takes its
// time.
func statusOfAll(mounts []mountEntry, limit time.Duration) []status {
	all := make([]status, len(mounts))
	var wg sync.WaitGroup
	for i, e := range mounts {
		wg.Go(func() { all[i] = statusOf(e, limit) })
	}
	wg.Wait()
	return all
}

// statusOf asks the daemon of a mount. Where nobody answers at its socket, it looks at the mount
// itself: one whose daemon is gone answers at once, with an error.
func statusOf(e mountEntry, limit time.Duration) status {
	s := status{Mountpoint: e.mountpoint, Source: e.source, User: e.uid, State: stateOK}
	pid, said, err := askDaemon(e, limit, limit)
	s.PID = pid
	switch {
	case err == nil:
		s.Version, s.Counters, s.options = said.Version, &said.Counters, said.Options
		if s.Full != "" {
			s.State = stateFull
		}
		return s
	case pid != 0 && !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET):
		s.State = stateHangs
		return s
	}
	looked := make(chan error, 1)
	go func() { looked <- unix.Access(filepath.Join(e.mountpoint, absentName), unix.F_OK) }()
	select {
	case err = <-looked:
	case <-time.After(limit):
		s.State = stateHangs
		return s
	}
	s.State = stateSilent
	if errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.ECONNREFUSED) {
		s.State, s.PID = stateDead, 0
	}
	return s
}

// absentName is a name that no mount has, so that the kernel has to ask the server, and the server
// need not ask SOURCE for it.
const absentName = ".sessionfs-absent"

// toldMounts returns the places that this user's mounts show, as far as their daemons tell that in
// time.
func toldMounts() (places []place) {
	mounts := slices.DeleteFunc(allMounts(), func(e mountEntry) bool { return !e.ours() })
	for _, s := range statusOfAll(mounts, liveLimit) {
		if s.options.Source != "" {
			places = append(places, place{Options: s.options, mountpoint: s.Mountpoint})
		}
	}
	return places
}

// mountedAt returns the place that a mount shows, for a path of the machine that lies in it,
// absolute and without links. It is the zero value where the path lies in none.
func mountedAt(path string) (p place, err error) {
	e := mountOver(path)
	if !e.isSessionfs() {
		return p, nil
	}
	s := statusOf(e, socketLimit)
	p = place{Options: s.options, mountpoint: e.mountpoint}
	why := "its state is " + s.State
	switch {
	case p.Source != "":
		return p, nil
	case s.State == stateDead:
		return p, refuse(exitSource, "the mount at %s is dead: 'sessionfs -u %s' removes it",
			e.mountpoint, e.mountpoint)
	case s.Version != "":
		why = "it is of version " + s.Version
	}
	return p, refuse(exitSource, "the mount at %s does not tell what it shows (%s): mount it again, "+
		"or name SOURCE with -s", e.mountpoint, why)
}

// printStatus prints a table, or nothing if there are no mounts.
func printStatus(out io.Writer, all []status, now time.Time) error {
	if len(all) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MOUNTPOINT\tSOURCE\tSTATE\tPID\tUP\tOPEN\tSESSIONS\tMEMORY\tFILES\tTEMP")
	for _, s := range all {
		row := []string{names.Visible(s.Mountpoint), names.Visible(s.Source), s.State, "-", "-", "-", "-", "-", "-", "-"}
		if s.PID != 0 {
			row[3] = fmt.Sprint(s.PID)
		}
		if c := s.Counters; c != nil {
			row = append(row[:4], now.Sub(c.Since).Round(time.Second).String(), fmt.Sprint(c.Open),
				fmt.Sprint(c.Sessions), fmt.Sprintf("%dM", c.Memory>>20), fmt.Sprint(c.Files),
				fmt.Sprintf("%dM", c.Temporary>>20))
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	err := table.Flush()
	for _, s := range all {
		if s.State == stateFull {
			fmt.Fprintf(out, "%s: %s; close some\n", names.Visible(s.Mountpoint), s.Full)
		}
	}
	return err
}

// A daemon reports its counters through a socket, so that clients never touch the mount, which may
// hang. The socket has an abstract name, made of the user, the number of the connection, and the
// moment: there is no file that a kill could leave behind, and none that needs a directory. As
// anybody may take and connect to such names, nobody can predict the daemon's name, a client tries
// each name that exists, and both ends ask the kernel for the user of the other end.

// socketName is how the names of sockets begin of the mount that a user made with a device number.
func socketName(uid int, minor uint32) string { return fmt.Sprintf("@sessionfs/%d/%d", uid, minor) }

// listening is the flag in the kernel's table of a socket that can be connected to
// (__SO_ACCEPTCON).
const listening = "00010000"

// socketsOf returns the names of all sockets, of whatever users, that may be that of a mount, the
// newest first. Earlier versions have a name without the moment.
func socketsOf(uid int, minor uint32) (names []string, err error) {
	table, err := os.ReadFile("/proc/self/net/unix")
	for line := range strings.Lines(string(table)) {
		// Num RefCount Protocol Flags Type St Inode Path
		if f := strings.Fields(line); len(f) == 8 && f[3] == listening && strings.HasPrefix(f[7]+"/", socketName(uid, minor)+"/") {
			names = append(names, f[7])
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, err
}

// told is the answer of a daemon, as one JSON object.
type told struct {
	Version string `json:"version"`
	// Options are those of the mount: a command shows the same as it (docs/design.md section 8,
	// Commands without a mount).
	Options mountopts.Options `json:"options"`
	fs.Counters
	// Unsaved is the number of new sessions that a daemon of an earlier version has in memory
	// alone; nil of later ones.
	Unsaved *int `json:"new,omitempty"`
}

// socketLimit is how long either end waits.
const socketLimit = 5 * time.Second

// errNotTheirs means that there is no socket of the mount's user.
var errNotTheirs = errors.New("no socket of its user's")

// askDaemon requests the version, options and counters of a mount's daemon. It waits for a first
// sign of life, and then for the answer. The pid is known also if the daemon does not answer.
func askDaemon(e mountEntry, first, limit time.Duration) (pid int, said told, err error) {
	conn, pid, err := dialDaemon(e)
	if err != nil {
		return 0, said, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(first))
	_, _ = io.WriteString(conn, "\n") // one of an earlier version waits for it, or answers unasked
	in := bufio.NewReader(conn)
	if _, err = in.Peek(1); err == nil {
		_ = conn.SetDeadline(time.Now().Add(limit))
		err = json.NewDecoder(in).Decode(&said)
	}
	return pid, said, err
}

// dialDaemon connects to the daemon of a mount, past the sockets of others with such a name.
func dialDaemon(e mountEntry) (conn *net.UnixConn, pid int, err error) {
	names, err := socketsOf(e.uid, e.minor)
	for _, name := range names {
		conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
		if err != nil {
			continue
		}
		peer, err := peerOf(conn)
		if err == nil && int(peer.Uid) == e.uid {
			return conn, int(peer.Pid), nil
		}
		conn.Close()
	}
	return nil, 0, errors.Join(errNotTheirs, err)
}

// peerOf returns the process at the other end of a connection.
func peerOf(conn *net.UnixConn) (peer *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlErr := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return peer, errors.Join(controlErr, err)
}
