package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/names"
	reports "sessionfs/sessioncore/report"
	"sessionfs/source"
)

// checkOptions are the options of check.
type checkOptions struct {
	paths  []string // none for all sessions
	asJSON bool
}

// checkCommand is sessionfs check.
func checkCommand() *cobra.Command {
	var o checkOptions
	cmd := onSource(source.Paths, &cobra.Command{
		Use:   "check [--json] [-s SOURCE] [PATH...]",
		Short: "Tell what is broken in the sessions, and what to do about it",
		Long: "Tell what is broken in the sessions, below PATH or all of them, and what to do about it. Nothing is " +
			"changed. Exit status: 0 nothing is broken, 1 something is, 2 something could not be looked at.",
		Example: "  sessionfs check || sessionfs check | mail -s sessions me",
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		o.paths = args
		return runCheck(cmd.Context(), o, src, consoleOf(cmd))
	})
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "a line of JSON for each session")
	endsWithTwo(cmd)
	return cmd
}

// runCheck checks the sessions below paths of the tree, prints each of them, and sets the exit status.
func runCheck(ctx context.Context, o checkOptions, src *sourceTree, c *console) error {
	paths := o.paths
	unseen := false
	if len(paths) == 0 {
		paths = []string{layout.Sessions}
		unseen = src.hasLeftOut() // a warning named them
	}
	out := bufio.NewWriter(c.out)
	checker := &reports.SessionChecker{
		Tree:         src,
		IsUnderstood: agents.IsUnderstood,
		Depth:        src.sessionDepth(),
		Found: func(found *reports.CheckedSession) {
			if o.asJSON {
				_ = names.WriteJSON(out, found)
			} else {
				found.WriteText(out)
			}
		},
		Fail: func(err error) error {
			if ctx.Err() != nil {
				return err
			}
			c.sayError(err)
			unseen = true
			return nil
		},
	}
	err := checkBelow(checker, src, paths)
	if err != nil {
		return err
	}
	sayChecked(out, checker, o.asJSON)
	err = out.Flush()
	if err != nil {
		return err
	}
	switch {
	case unseen:
		return ended(exitNotDone)
	case checker.Broken > 0, checker.Strangers > 0:
		return ended(exitNothing)
	}
	return nil
}

// hasLeftOut reports whether SOURCE has sessions, or directories of agents, that are not shown.
func (src *sourceTree) hasLeftOut() bool {
	leftOut := len(src.Refused())
	if src.Mountpoint == "" { // otherwise last-error of the mount names more of them
		leftOut += len(src.Options.LeftOut)
	}
	return leftOut > 0
}

// sessionDepth returns how many directories are above a session, other than one of a subagent.
func (src *sourceTree) sessionDepth() int {
	if len(src.Agents) > 0 {
		return 3 // sessions/AGENT/PROJECT/
	}
	return 2 // sessions/PROJECT/
}

// checkBelow has the sessions below paths of the tree checked. A path may be a pattern, or lead through links.
func checkBelow(c *reports.SessionChecker, src *sourceTree, patterns []string) error {
	paths, err := src.Expand(patterns...)
	if err != nil {
		return err
	}
	for _, name := range paths {
		dir, err := src.Resolve(name)
		if err != nil {
			return err
		}
		dir = src.checked(dir)
		info, err := src.Stat(dir)
		if err == nil && !info.IsDir() {
			return &iofs.PathError{Op: "check", Path: name, Err: errors.New("is not a directory; " +
				"check takes that of a session, or one that holds sessions")}
		}
		err = c.Below(dir)
		if err != nil {
			return err
		}
	}
	return nil
}

// checked returns the directory to check for a path of the tree: a session's for its file, and the directory of
// all sessions for SOURCE.
func (src *sourceTree) checked(dir string) string {
	if dir == "." {
		return layout.Sessions
	}
	session := strings.TrimSuffix(dir, layout.SessionSuffix)
	info, err := src.Stat(session)
	if session != dir && err == nil && info.IsDir() {
		return session
	}
	return dir
}

// sayChecked prints how many sessions there were.
func sayChecked(out io.Writer, c *reports.SessionChecker, asJSON bool) {
	if asJSON {
		sums := map[string]int{"sessions": c.Sessions, "broken": c.Broken}
		if c.Strangers > 0 {
			sums["strangers"] = c.Strangers
		}
		_ = names.WriteJSON(out, sums)
		return
	}
	fmt.Fprintf(out, "%d sessions, %d with problems", c.Sessions, c.Broken)
	if c.Strangers > 0 {
		fmt.Fprintf(out, ", not understood: %d", c.Strangers)
	}
	fmt.Fprintln(out)
}
