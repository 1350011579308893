package main

import (
	"bufio"
	"context"
	iofs "io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/fs/direct"
)

// lsFlags are those of ls(1) that are used with sessions.
type lsFlags struct {
	long, all, dir, byTime, reverse, single bool
}

// lsCommand is sessionfs ls.
func lsCommand() *cobra.Command {
	var f lsFlags
	cmd := onSource(&cobra.Command{
		Use:     "ls [-ladtr1] [-s SOURCE] [PATH...]",
		Short:   "List directories of what a mount would show",
		Example: "  sessionfs ls -l recent",
	}, func(cmd *cobra.Command, src *source, args []string) error {
		paths, err := src.expand(cmd.Context(), args)
		if err != nil {
			return err
		}
		return f.run(cmd, src, paths)
	})
	flags := cmd.Flags()
	flags.BoolVarP(&f.long, "long", "l", false, "mode, owner, size, time, and where a link leads")
	flags.BoolVarP(&f.all, "all", "a", false, "names that begin with a dot too")
	flags.BoolVarP(&f.dir, "directory", "d", false, "directories themselves, not what is in them")
	flags.BoolVarP(&f.byTime, "time", "t", false, "newest first")
	flags.BoolVarP(&f.reverse, "reverse", "r", false, "in reverse order")
	flags.BoolVarP(&f.single, "one", "1", false, "a name a line, as when the output is no terminal")
	return cmd
}

// listed is a name to be shown.
type listed struct {
	name   string // as it is shown
	info   iofs.FileInfo
	target string // of a link, with -l
}

// run lists what is no directory first, then each directory, with its name if there are several.
func (f *lsFlags) run(cmd *cobra.Command, src *source, paths []string) error {
	out := bufio.NewWriter(cmd.OutOrStdout())
	ctx := cmd.Context()
	width := 0
	if !f.single && !f.long {
		width = terminalWidth(cmd.OutOrStdout())
	}
	var single []listed
	var dirs []string
	failed := eachPath(cmd, paths, func(path string) error {
		it, err := f.look(ctx, src, path, path, !f.long)
		switch {
		case err != nil:
			return err
		case it.info.IsDir() && !f.dir:
			dirs = append(dirs, path)
		default:
			single = append(single, it)
		}
		return nil
	})
	f.sort(single)
	f.print(out, single, width)
	err := eachPath(cmd, dirs, func(path string) error {
		items, err := f.list(ctx, src, path)
		if err != nil {
			return err
		}
		if len(paths) > 1 {
			if len(single) > 0 || path != dirs[0] {
				out.WriteString("\n")
			}
			out.WriteString(path + ":\n")
		}
		f.print(out, items, width)
		return out.Flush()
	})
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	if err == nil {
		err = failed
	}
	return err
}

// look returns what a path stands for; follow says that of a link it is where that leads, if it leads anywhere, or with
// a slash at its end in any case.
func (f *lsFlags) look(ctx context.Context, src *source, path, name string, follow bool) (it listed, err error) {
	it.name = name
	if follow && !f.dir {
		if it.info, err = src.Stat(ctx, path); err == nil {
			return it, nil
		}
	}
	if it.info, err = src.Lstat(ctx, path); err != nil {
		return it, err
	}
	if f.long && it.info.Mode()&iofs.ModeSymlink != 0 {
		it.target, err = src.Readlink(ctx, path)
	}
	return it, err
}

// list returns what is in a directory. Names are looked up only where that is needed: a listing costs nothing else.
func (f *lsFlags) list(ctx context.Context, src *source, path string) ([]listed, error) {
	dir, err := src.Find(ctx, path, true)
	if err != nil {
		return nil, &iofs.PathError{Op: "ls", Path: path, Err: err}
	}
	defer dir.Forget()
	names, err := dir.List(ctx)
	if err != nil {
		return nil, &iofs.PathError{Op: "ls", Path: path, Err: err}
	}
	items := make([]listed, 0, len(names))
	for _, n := range names {
		if n.Name[0] == '.' && !f.all {
			continue
		}
		it := listed{name: n.Name}
		if f.long || f.byTime {
			if it, err = f.lookIn(ctx, dir, n.Name); err != nil {
				if isGone(err) {
					continue // between the listing and the look
				}
				return nil, &iofs.PathError{Op: "ls", Path: path + "/" + n.Name, Err: err}
			}
		}
		items = append(items, it)
	}
	f.sort(items)
	return items, nil
}

func (f *lsFlags) lookIn(ctx context.Context, dir *direct.Node, name string) (it listed, err error) {
	n, err := dir.Lookup(ctx, name)
	if err != nil {
		return it, err
	}
	defer n.Forget()
	it = listed{name: name, info: n.Info()}
	if f.long && it.info.Mode()&iofs.ModeSymlink != 0 {
		it.target, err = n.Readlink(ctx)
	}
	return it, err
}

// sort sorts by name, or with -t by time.
func (f *lsFlags) sort(items []listed) {
	slices.SortStableFunc(items, func(a, b listed) int {
		if f.byTime {
			if order := b.info.ModTime().Compare(a.info.ModTime()); order != 0 {
				return order
			}
		}
		return strings.Compare(a.name, b.name)
	})
	if f.reverse {
		slices.Reverse(items)
	}
}
