package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/fs/direct"
)

// The statuses of sessionfs check. Scripts test for them.
const (
	checkFine     = 0
	checkProblems = 1
	checkNot      = exitNotDone
)

// checkCommand is sessionfs check.
func checkCommand() *cobra.Command {
	cmd := onSource(&cobra.Command{
		Use:   "check [-s SOURCE] [PATH...]",
		Short: "Tell what is broken in the sessions, and what to do about it",
		Long: "Tell what is broken in the sessions, below PATH or all of them, and what to do about it. Nothing is changed.\n" +
			"Exit status: 0 nothing is broken, 1 something is, 2 something could not be looked at.",
		Example: "  sessionfs check || sessionfs check | mail -s sessions me",
	}, func(cmd *cobra.Command, src *source, args []string) error {
		if len(args) == 0 {
			args = []string{"sessions"}
		}
		c := &checker{out: bufio.NewWriter(cmd.OutOrStdout()), cmd: cmd}
		paths, err := src.expand(cmd.Context(), args)
		for _, path := range paths {
			if err == nil {
				err = c.start(cmd.Context(), src, path)
			}
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%d sessions, %d with problems\n", c.sessions, c.broken)
		if err := c.out.Flush(); err != nil {
			return err
		}
		if status := c.status(); status != checkFine {
			return &exitError{status}
		}
		return nil
	})
	endsWithTwo(cmd)
	return cmd
}

// checker looks at sessions one after the other.
type checker struct {
	cmd              *cobra.Command
	out              *bufio.Writer
	sessions, broken int
	unseen           bool // something could not be looked at
}

func (c *checker) status() int {
	switch {
	case c.unseen:
		return checkNot
	case c.broken > 0:
		return checkProblems
	}
	return checkFine
}

// start looks at what is below a path.
func (c *checker) start(ctx context.Context, src *source, name string) error {
	n, err := src.Find(ctx, name, true)
	if err != nil {
		return &iofs.PathError{Op: "check", Path: name, Err: err}
	}
	defer n.Forget()
	if !n.Info().IsDir() {
		return &iofs.PathError{Op: "check", Path: name, Err: errors.New("is not a directory; check takes that of a session, or one that holds sessions")}
	}
	if problems, err := n.Lookup(ctx, problemsFile); err == nil {
		problems.Forget()
		return c.session(ctx, n)
	}
	return c.dir(ctx, n)
}

const (
	problemsFile = "problems.jsonl"
	artifactsDir = "artifacts"
	// sessionSuffix ends the name of a session file; the directory of the session has the name without it.
	sessionSuffix = ".jsonl"
)

// dir looks at the sessions in a directory and below it. Its error is that of an interrupt.
func (c *checker) dir(ctx context.Context, dir *direct.Node) error {
	names, err := dir.List(ctx)
	if err != nil {
		return c.cannot(ctx, dir.Path(), err)
	}
	slices.SortFunc(names, func(a, b direct.Name) int { return strings.Compare(a.Name, b.Name) })
	kinds := make(map[string]iofs.FileMode, len(names))
	for _, item := range names {
		kinds[item.Name] = item.Type
	}
	for _, item := range names {
		_, isSession := kinds[item.Name+sessionSuffix]
		base, named := strings.CutSuffix(item.Name, sessionSuffix)
		switch {
		case item.Type.IsDir():
			err = c.below(ctx, dir, item.Name, isSession)
		case named && item.Type.IsRegular() && !kinds[base].IsDir():
			c.file(dir.Path() + "/" + item.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// below looks at a directory, which is that of a session or holds some.
func (c *checker) below(ctx context.Context, dir *direct.Node, name string, isSession bool) error {
	n, err := dir.Lookup(ctx, name)
	if isGone(err) {
		return nil
	} else if err != nil {
		return c.cannot(ctx, dir.Path()+"/"+name, err)
	}
	defer n.Forget()
	if isSession {
		return c.session(ctx, n)
	}
	return c.dir(ctx, n)
}

// file reports a file that is named like a session and is none.
func (c *checker) file(name string) {
	c.sessions++
	c.broken++
	fmt.Fprintf(c.out, "%s\n  not a session: it is empty, or does not begin with the header of one\n"+
		"    Clients do not show it either. Restore it from a backup, or move it away.\n", visible(name))
}

// session looks at a session and at those of its subagents.
func (c *checker) session(ctx context.Context, dir *direct.Node) error {
	c.sessions++
	kinds, err := readProblems(ctx, dir)
	if err != nil {
		if err := c.cannot(ctx, dir.Path(), err); err != nil {
			return err
		}
	}
	if len(kinds) > 0 {
		c.broken++
		fmt.Fprintln(c.out, visible(dir.Path()+sessionSuffix))
		for _, k := range kinds {
			k.print(c.out)
		}
	}
	artifacts, err := dir.Lookup(ctx, artifactsDir)
	if err != nil {
		return ctx.Err() // most have none
	}
	defer artifacts.Forget()
	return c.dir(ctx, artifacts)
}

// cannot reports what could not be looked at, and returns the error of an interrupt.
func (c *checker) cannot(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	sayError(c.cmd, &iofs.PathError{Op: "check", Path: name, Err: err})
	c.unseen = true
	return nil
}

// problems are those of one kind in a session.
type problems struct {
	kind, why string // why is that of the first one
	line      int64  // of the first one; 0 if it has none
	count     int
}

// remedies say what to do about a kind of problem.
var remedies = map[string]string{
	"skipped":    "No program reads this text: a write that was cut off, or another file's. Nothing else is lost, and rewrites keep it.",
	"no-object":  "No program reads this line. Nothing else is lost.",
	"header":     "Two sessions were put into one file. The second header is ignored; its entries are shown with the first.",
	"no-id":      "The entry has no id, so that nothing can follow it. It is shown as entries/~LINE.json.",
	"repeated":   "Clients show the last entry of that id; the earlier ones are entries/ID~LINE.json. The file was perhaps put together from two.",
	"orphan":     "What was before it is missing: look for a backup of the file that has it. The entry and what follows it are a branch of their own.",
	"own-parent": "The entry names itself as its parent. It is shown as the beginning of a branch.",
	"cycle":      "Entries name each other as their parents. They are shown from the first one on.",
	"blob":       "Restore the file in blobs/ from a backup; until then the image is missing in what the model is sent.",
}

// print prints a kind of problem, where the first one is, and what to do.
func (p *problems) print(out io.Writer) {
	where, times := "", ""
	if p.line > 0 {
		where = fmt.Sprintf("line %d: ", p.line)
	}
	if p.count > 1 {
		times = fmt.Sprintf(" (and %d more of this kind)", p.count-1)
	}
	fmt.Fprintf(out, "  %s%s: %s%s\n", where, visible(p.kind), visible(p.why), times)
	if remedy := remedies[p.kind]; remedy != "" {
		fmt.Fprintf(out, "    %s\n", remedy)
	}
}

// maxProblemLine bounds a line of problems.jsonl, in bytes. What it quotes is shorter.
const maxProblemLine = 64 << 10

// readProblems reads problems.jsonl of a session, by kind, in the order of the first of each.
func readProblems(ctx context.Context, dir *direct.Node) ([]*problems, error) {
	n, err := dir.Lookup(ctx, problemsFile)
	if err != nil {
		return nil, err
	}
	defer n.Forget()
	f, err := n.Open(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var kinds []*problems
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 4096), maxProblemLine)
	for lines.Scan() {
		var p struct {
			Line         int64
			Problem, Why string
		}
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return kinds, err
		}
		i := slices.IndexFunc(kinds, func(k *problems) bool { return k.kind == p.Problem })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, &problems{kind: p.Problem, why: p.Why, line: p.Line})
		}
		kinds[i].count++
	}
	return kinds, lines.Err()
}
