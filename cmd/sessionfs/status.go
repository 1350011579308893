//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"

	"sessionfs/fs"
	"sessionfs/sessioncore/names"
)

// statusOptions are the options of status.
type statusOptions struct {
	mountpoints []string // one, or none for all mounts
	asJSON      bool
}

// statusCommand is sessionfs status.
func statusCommand() *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status [--json] [MOUNTPOINT]",
		Short: "List this user's mounts, and what they have done",
		Long: "List the mounts of this user, or of all users for root, or the one at MOUNTPOINT: state, pid, time " +
			"since the mount, open files and directories, sessions whose index is kept, memory, files that the " +
			"process has open, temporary files. A mount that refuses what needs more memory is full; one that does " +
			"not answer within five seconds hangs. Agents of this user that are not read are named, and sessions that their agent deletes within a week.\n\n" +
			"Exit status: 0 all are ok, 1 one is not, or nothing is mounted at MOUNTPOINT.",
		Example:           "  sessionfs status --json | jq -r '.[].mountpoint'",
		Args:              atMostOneArg,
		ValidArgsFunction: completeMountpoints,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.mountpoints = args
			return runStatus(o, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "as a JSON array, with times and bytes as they are")
	return cmd
}

// runStatus prints the states of mounts.
func runStatus(o statusOptions, out io.Writer) error {
	mounts, err := chosenMounts(o.mountpoints)
	if err != nil {
		return err
	}
	all := fs.StatusOf(mounts, fs.AnswerLimit)
	if o.asJSON {
		err = names.WriteJSON(out, all)
	} else {
		err = o.print(out, all)
	}
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.State != fs.StateOK {
			return ended(exitFailure)
		}
	}
	return nil
}

// print prints the states of mounts for people, and the agents of this user where no mount is named.
func (o statusOptions) print(out io.Writer, all []fs.Status) error {
	width := max(0, terminalWidth(out))
	err := printStatus(out, all, time.Now(), width)
	if err != nil || len(o.mountpoints) > 0 {
		return err
	}
	return writeAgents(out)
}

// ourMounts returns the mounts of this user, for root the mounts of all users.
func ourMounts() []fs.MountEntry {
	return slices.DeleteFunc(fs.AllMounts(), func(e fs.MountEntry) bool {
		return !e.IsSessionfs() || !e.MayAsk()
	})
}

// ourMountpoints returns the paths of the mounts of ourMounts.
func ourMountpoints() (paths []string) {
	for _, e := range ourMounts() {
		paths = append(paths, e.Mountpoint)
	}
	return paths
}

// chosenMounts returns the mount at the one path, or all mounts of this user without a path. It is an error if
// nothing is mounted there, or if another user has mounted it.
func chosenMounts(mountpoints []string) ([]fs.MountEntry, error) {
	if len(mountpoints) == 0 {
		return ourMounts(), nil
	}
	path, err := fs.ResolveMountpoint(mountpoints[0])
	if err != nil {
		return nil, fmt.Errorf("%s cannot be resolved: %w", mountpoints[0], err)
	}
	e, ok := fs.MountAt(path)
	if !ok || !e.IsSessionfs() {
		return nil, fmt.Errorf("no sessionfs is mounted at %s", path)
	}
	if !e.MayAsk() {
		return nil, fmt.Errorf("%s was mounted by user %d; only that user and root are told", path, e.User)
	}
	return []fs.MountEntry{e}, nil
}

// umountOptions are the options of umount.
type umountOptions struct {
	mountpoint string
	lazy       bool
}

// umountCommand is -u by the name that people know.
func umountCommand() *cobra.Command {
	var o umountOptions
	cmd := &cobra.Command{
		Use:               "umount [-z] MOUNTPOINT",
		Aliases:           []string{"unmount"},
		Short:             "Unmount, as sessionfs -u",
		Example:           "  sessionfs umount ~/agent-sessions",
		Hidden:            true, // there is -u
		Args:              oneArg,
		ValidArgsFunction: completeMountpoints,
		RunE: func(_ *cobra.Command, args []string) error {
			o.mountpoint = args[0]
			return runUmount(o)
		},
	}
	cmd.Flags().BoolVarP(&o.lazy, "lazy", "z", false, "also while it is in use")
	return cmd
}

// runUmount unmounts.
func runUmount(o umountOptions) error { return fs.Unmount(o.mountpoint, o.lazy) }

func completeMountpoints(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return ourMountpoints(), cobra.ShellCompDirectiveNoFileComp
}

// statusColumns are the columns of the table of mounts.
var statusColumns = []string{"MOUNTPOINT", "SOURCE", "STATE", "PID", "UP", "OPEN", "SESSIONS", "MEMORY", "FILES", "TEMP"}

// printStatus prints a table, or nothing if there are no mounts. Where a terminal of so many columns
// is too narrow for it, the columns of a mount stand below its path; 0 is no limit.
func printStatus(out io.Writer, all []fs.Status, now time.Time, width int) error {
	if len(all) == 0 {
		return nil
	}
	var rows [][]string
	for _, s := range all {
		rows = append(rows, statusRow(s, now))
	}
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(statusColumns, "\t"))
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	_ = table.Flush() // a buffer has no error
	isTooWide := width > 0 && widestLine(text.String()) > width
	if isTooWide {
		text.Reset()
		stackStatus(&text, rows, width)
	}
	for _, s := range all {
		if s.State == fs.StateFull {
			fmt.Fprintf(&text, "%s: %s; close some\n", names.Visible(s.Mountpoint), s.Full)
		}
	}
	_, err := out.Write(text.Bytes())
	return err
}

// widestLine returns the width of the widest line of a text, in columns.
func widestLine(text string) int {
	widest := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		widest = max(widest, uniseg.StringWidth(line))
	}
	return widest
}

// statusRow returns the columns of a mount, in the order of statusColumns.
func statusRow(s fs.Status, now time.Time) []string {
	pid := "-"
	if s.PID != 0 {
		pid = fmt.Sprint(s.PID)
	}
	row := []string{names.Visible(s.Mountpoint), names.Visible(s.Source), s.State, pid}
	c := s.Counters
	if c == nil {
		return append(row, "-", "-", "-", "-", "-", "-")
	}
	uptime := now.Sub(c.Since).Round(time.Second)
	return append(row,
		uptime.String(),
		fmt.Sprint(c.Open),
		fmt.Sprint(c.Sessions),
		fmt.Sprintf("%dM", c.Memory>>20),
		fmt.Sprint(c.Files),
		fmt.Sprintf("%dM", c.Temporary>>20))
}

// stackStatus prints each mount as its path, and its other columns below that with their names, as many on a line as
// width has room for.
func stackStatus(out io.Writer, rows [][]string, width int) {
	const indent = 1 // of a line of fields, each of which has a blank before it
	const own = 2    // the first columns have lines of their own
	for _, row := range rows {
		fmt.Fprintf(out, "%s\n  %s\n ", row[0], row[1])
		used := indent
		for i := own; i < len(statusColumns); i++ {
			field := " " + strings.ToLower(statusColumns[i]) + " " + row[i]
			isLast := i == len(statusColumns)-1
			hasRoom := used+len(field)+1 <= width // 1 for the comma
			if !hasRoom && used > indent {
				fmt.Fprint(out, "\n ")
				used = indent
			}
			if !isLast {
				field += ","
			}
			fmt.Fprint(out, field)
			used += len(field)
		}
		fmt.Fprintln(out)
	}
}
