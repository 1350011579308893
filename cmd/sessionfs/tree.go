package main

import (
	"bufio"
	"fmt"
	iofs "io/fs"
	"path"
	"slices"

	"github.com/spf13/cobra"
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
		t.src, t.out = src, bufio.NewWriter(cmd.OutOrStdout())
		limit := t.left
		err := src.eachPath(cmd, args, func(name string) error {
			info, err := src.Stat(name)
			if err != nil {
				return err
			}
			t.out.WriteString(visible(name) + "\n")
			if info.IsDir() {
				err = t.below(name, "", 1)
			}
			if flushed := t.out.Flush(); err == nil {
				err = flushed
			}
			return err
		})
		if t.cut {
			fmt.Fprintf(cmd.ErrOrStderr(), "sessionfs: tree: only the first %d names are shown; -n shows more, -L fewer levels\n", limit)
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
	src         *source
	out         *bufio.Writer
	all         bool
	depth, left int
	cut         bool // there are more names
}

// below prints what is in a directory, behind the lines that lead to it. Nothing is looked up but links.
func (t *treePrinter) below(dir, lines string, level int) error {
	items, err := t.src.ReadDir(dir)
	if err != nil && !isGone(err) {
		return err
	}
	items = slices.DeleteFunc(items, func(d iofs.DirEntry) bool { return d.Name()[0] == '.' && !t.all })
	for i, it := range items {
		if t.left == 0 {
			t.cut = true
			return nil
		}
		t.left--
		branch, further := "├── ", "│   "
		if i == len(items)-1 {
			branch, further = "└── ", "    "
		}
		name, target := path.Join(dir, it.Name()), ""
		if it.Type() == iofs.ModeSymlink {
			if to, err := t.src.ReadLink(name); err == nil {
				target = " -> " + visible(to)
			}
		}
		if _, err := t.out.WriteString(lines + branch + visible(it.Name()) + target + "\n"); err != nil {
			return err
		}
		if it.IsDir() && (t.depth == 0 || level < t.depth) {
			if err := t.below(name, lines+further, level+1); err != nil {
				return err
			}
		}
	}
	return nil
}
