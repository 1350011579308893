package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/fs/direct"
)

// defaultTreeNames is how many names sessionfs tree prints: a store can have millions.
const defaultTreeNames = 2000

// treeCommand is sessionfs tree.
func treeCommand() *cobra.Command {
	var t treePrinter
	cmd := onSource(&cobra.Command{
		Use:     "tree [-a] [-L DEPTH] [-n NAMES] [-s SOURCE] [PATH...]",
		Short:   "Show directories of what a mount would show, with all that is in them",
		Example: "  sessionfs tree -L 2 by-id/019d3d",
	}, func(cmd *cobra.Command, src *source, args []string) error {
		if t.depth < 0 || t.left < 1 {
			return refuse(exitUsage, "tree: -L takes a number from 0 on, -n one from 1 on")
		}
		paths, err := src.expand(cmd.Context(), args)
		if err != nil {
			return err
		}
		t.out = bufio.NewWriter(cmd.OutOrStdout())
		limit := t.left
		err = eachPath(cmd, paths, func(path string) error { return t.start(cmd.Context(), src, path) })
		if t.cut {
			fmt.Fprintf(cmd.ErrOrStderr(), "sessionfs: tree: only the first %d names are shown; -n shows more, -L fewer levels\n", limit)
		}
		if flushed := t.out.Flush(); err == nil {
			err = flushed
		}
		return err
	})
	flags := cmd.Flags()
	flags.BoolVarP(&t.all, "all", "a", false, "names that begin with a dot too")
	flags.IntVarP(&t.depth, "level", "L", 0, "how many levels are shown; 0 means all")
	flags.IntVarP(&t.left, "names", "n", defaultTreeNames, "how many names are shown at most")
	return cmd
}

// treePrinter prints trees.
type treePrinter struct {
	out         *bufio.Writer
	all         bool
	depth, left int
	cut         bool // there are more names
}

// start prints what a path stands for and, if it is a directory, what is below it.
func (t *treePrinter) start(ctx context.Context, src *source, path string) error {
	n, err := src.Find(ctx, path, true)
	if err != nil {
		return &iofs.PathError{Op: "tree", Path: path, Err: err}
	}
	defer n.Forget()
	t.out.WriteString(visible(path) + "\n")
	if !n.Info().IsDir() {
		return nil
	}
	if err := t.below(ctx, n, "", 1); err != nil {
		return err
	}
	return t.out.Flush()
}

// below prints what is in a directory, behind the lines that lead to it.
func (t *treePrinter) below(ctx context.Context, dir *direct.Node, lines string, level int) error {
	names, err := dir.List(ctx)
	if err != nil {
		return &iofs.PathError{Op: "tree", Path: dir.Path(), Err: err}
	}
	if !t.all {
		names = slices.DeleteFunc(names, func(n direct.Name) bool { return n.Name[0] == '.' })
	}
	slices.SortFunc(names, func(a, b direct.Name) int { return strings.Compare(a.Name, b.Name) })
	for i, item := range names {
		if t.left == 0 {
			t.cut = true
			return nil
		}
		t.left--
		branch, further := "├── ", "│   "
		if i == len(names)-1 {
			branch, further = "└── ", "    "
		}
		t.out.WriteString(lines + branch + visible(item.Name))
		if err := t.item(ctx, dir, item, lines+further, level); err != nil && !isGone(err) {
			return err
		}
	}
	return nil
}

// item ends the line of a name, with the target of a link, and prints what is below it. Nothing else is looked up.
func (t *treePrinter) item(ctx context.Context, dir *direct.Node, item direct.Name, lines string, level int) error {
	deeper := item.Type.IsDir() && (t.depth == 0 || level < t.depth)
	if !deeper && item.Type != iofs.ModeSymlink {
		t.out.WriteString("\n")
		return nil
	}
	n, err := dir.Lookup(ctx, item.Name)
	if err != nil {
		t.out.WriteString("\n")
		return err
	}
	defer n.Forget()
	if deeper {
		t.out.WriteString("\n")
		return t.below(ctx, n, lines, level+1)
	}
	target, err := n.Readlink(ctx)
	if err == nil {
		target = " -> " + visible(target)
	}
	t.out.WriteString(target + "\n")
	if errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
