package main

import (
	"archive/tar"
	"cmp"
	"fmt"
	"io"
	iofs "io/fs"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// lsFlags are those of ls(1) that are used with sessions.
type lsFlags struct {
	long, all, dir, byTime, reverse bool
}

// lsCommand is sessionfs ls.
func lsCommand() *cobra.Command {
	var f lsFlags
	cmd := onSource(&cobra.Command{
		Use:     "ls [-ladtr1] [-s SOURCE] [PATH...]",
		Short:   "List directories of what a mount would show",
		Example: "  sessionfs ls -l recent",
	}, func(cmd *cobra.Command, src *source, args []string) error { return f.run(cmd, src, args) })
	flags := cmd.Flags()
	flags.BoolVarP(&f.long, "long", "l", false, "mode, owner, size, time, and where a link leads")
	flags.BoolVarP(&f.all, "all", "a", false, "names that begin with a dot too")
	flags.BoolVarP(&f.dir, "directory", "d", false, "directories themselves, not what is in them")
	flags.BoolVarP(&f.byTime, "time", "t", false, "newest first")
	flags.BoolVarP(&f.reverse, "reverse", "r", false, "in reverse order")
	flags.BoolP("one", "1", false, "a name a line, as in any case")
	return cmd
}

// listed is a name to be shown.
type listed struct {
	name, path string
	info       iofs.FileInfo // nil if it is not needed
}

// run lists what is no directory first, then each directory, with its name if there are several. A link to a directory is
// the directory.
func (f *lsFlags) run(cmd *cobra.Command, src *source, args []string) error {
	var single, dirs []listed
	given := 0
	err := src.eachPath(cmd, args, func(name string) error {
		given++
		info, err := src.Lstat(name)
		if err != nil {
			return err
		}
		it := listed{name, name, info}
		if to, err := src.Stat(name); err == nil && to.IsDir() && !f.dir {
			dirs = append(dirs, it)
		} else {
			single = append(single, it)
		}
		return nil
	})
	if failed := f.print(cmd.OutOrStdout(), src, single); failed != nil {
		return failed
	}
	shown := len(single)
	failed := each(cmd, dirs, func(dir listed) error {
		items, err := f.list(src, dir.path)
		if err != nil {
			return err
		}
		if given > 1 {
			between := "\n"
			if shown++; shown == 1 {
				between = ""
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s%s:\n", between, dir.path)
		}
		return f.print(cmd.OutOrStdout(), src, items)
	})
	return cmp.Or(failed, err)
}

// list returns what is in a directory. Names are looked up only where that is needed: a listing costs nothing else.
func (f *lsFlags) list(src *source, dir string) (items []listed, err error) {
	names, err := src.ReadDir(dir)
	for _, n := range names {
		if n.Name()[0] == '.' && !f.all {
			continue
		}
		it := listed{name: n.Name(), path: path.Join(dir, n.Name())}
		if f.long || f.byTime {
			info, err := n.Info()
			if isGone(err) { // between the listing and the look
				continue
			} else if err != nil {
				return nil, err
			}
			it.info = info
		}
		items = append(items, it)
	}
	return items, err
}

// print prints names sorted, a name a line, or as ls -l.
func (f *lsFlags) print(w io.Writer, src *source, items []listed) error {
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
	if !f.long {
		var text strings.Builder
		for _, it := range items {
			name := it.name
			if isTerminal(w) {
				name = visible(name)
			}
			text.WriteString(name + "\n")
		}
		_, err := io.WriteString(w, text.String())
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	for _, it := range items {
		h, err := tar.FileInfoHeader(it.info, "") // which looks up the names of the owner
		if err != nil {
			return err
		}
		name := visible(it.name)
		if it.info.Mode()&iofs.ModeSymlink != 0 {
			target, err := src.ReadLink(it.path)
			if err != nil && !isGone(err) {
				return err
			}
			name += " -> " + visible(target)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", strings.Replace(it.info.Mode().String(), "L", "l", 1),
			cmp.Or(h.Uname, fmt.Sprint(h.Uid)), cmp.Or(h.Gname, fmt.Sprint(h.Gid)), it.info.Size(), it.info.ModTime().Local().Format("2006-01-02 15:04"), name)
	}
	return table.Flush()
}

// visible replaces what could change the state of a terminal.
func visible(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, name)
}
