package main

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
	"sessionfs/source"
)

// lsOptions are the options of ls: the options of ls(1) that are used with sessions.
type lsOptions struct {
	paths     []string
	long      bool
	all       bool
	dir       bool
	byTime    bool
	reverse   bool
	recursive bool
}

// lsCommand is sessionfs ls.
func lsCommand() *cobra.Command {
	var o lsOptions
	cmd := onSource(source.Paths, &cobra.Command{
		Use:     "ls [-ladtrR1] [-s SOURCE] [PATH...]",
		Short:   "List directories of what a mount would show",
		Example: "  sessionfs ls -l recent",
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		o.paths = args
		return runLs(cmd.Context(), o, src, consoleOf(cmd))
	})
	flags := cmd.Flags()
	flags.BoolVarP(&o.long, "long", "l", false, "mode, owner, size, time, and where a link leads")
	flags.BoolVarP(&o.all, "all", "a", false, "names that begin with a dot too")
	flags.BoolVarP(&o.dir, "directory", "d", false, "directories themselves, not what is in them")
	flags.BoolVarP(&o.byTime, "time", "t", false, "newest first")
	flags.BoolVarP(&o.reverse, "reverse", "r", false, "in reverse order")
	flags.BoolVarP(&o.recursive, "recursive", "R", false, "directories with all that is below them; "+
		"links are not followed there")
	flags.BoolP("one", "1", false, "a name a line, as in any case")
	return cmd
}

// listed is a name to be shown, of the file or directory at path in the tree.
type listed struct {
	name, path string
	isDir      bool
	info       iofs.FileInfo // nil if it is not needed
}

// runLs lists files first, then each directory, with its name if there are several. A link to a
// directory counts as the directory. A path with an error is reported; the command then fails after the others.
func runLs(ctx context.Context, o lsOptions, src *sourceTree, c *console) error {
	defer src.sayLeftOut(c)
	l := &lister{lsOptions: o, src: src, console: c}
	var files, dirs []listed
	pathErr := src.eachPath(ctx, c, o.paths, func(name string) error {
		l.named++
		it, isDir, err := l.lookUp(name)
		switch {
		case err != nil:
			return err
		case isDir:
			dirs = append(dirs, it)
		default:
			files = append(files, it)
		}
		return nil
	})
	err := l.print(files)
	if err != nil {
		return err
	}
	l.shown = len(files)
	err = l.printDirs(ctx, dirs)
	if err != nil {
		return err
	}
	return pathErr
}

// lister prints names and directories as ls does.
type lister struct {
	lsOptions
	src     *sourceTree
	console *console
	named   int // the paths that the arguments stand for
	shown   int // the names and directories that are printed
}

// lookUp returns a path that an argument stands for, and whether the names in it are to be listed.
func (l *lister) lookUp(name string) (it listed, isDir bool, err error) {
	info, err := l.src.Lstat(name)
	if err != nil {
		return it, false, err
	}
	it = listed{
		name:  name,
		path:  name,
		isDir: info.IsDir(),
		info:  info,
	}
	to, err := l.src.Stat(name)
	isDir = err == nil && to.IsDir() && !l.dir
	return it, isDir, nil
}

// printDirs prints directories.
func (l *lister) printDirs(ctx context.Context, dirs []listed) error {
	return each(ctx, l.console, dirs, func(dir listed) error {
		return l.printDir(ctx, dir.path)
	})
}

// printDir prints a directory, and with -R those in it.
func (l *lister) printDir(ctx context.Context, dir string) error {
	items, err := l.list(dir)
	if err != nil {
		return err
	}
	if l.named > 1 || l.recursive {
		between := "\n"
		l.shown++
		if l.shown == 1 {
			between = ""
		}
		fmt.Fprintf(l.console.out, "%s%s:\n", between, names.Visible(dir))
	}
	err = l.print(items)
	if err != nil || !l.recursive {
		return err
	}
	isFile := func(it listed) bool { return !it.isDir }
	return l.printDirs(ctx, slices.DeleteFunc(items, isFile))
}

// list returns the items of a directory. It looks names up only where that is needed: else a
// listing is enough.
func (l *lister) list(dir string) (items []listed, err error) {
	names, err := l.src.ReadDir(dir)
	for _, n := range names {
		if n.Name()[0] == '.' && !l.all {
			continue
		}
		it := listed{
			name:  n.Name(),
			path:  path.Join(dir, n.Name()),
			isDir: n.IsDir(),
		}
		if l.long || l.byTime {
			info, err := n.Info()
			if storage.IsGone(err) { // between the listing and the look
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

// print prints names, which it sorts, a name a line, or as ls -l.
func (l *lister) print(items []listed) error {
	slices.SortStableFunc(items, l.compare)
	if l.reverse {
		slices.Reverse(items)
	}
	if l.long {
		return l.printLong(items)
	}
	var text strings.Builder
	for _, it := range items {
		name := it.name
		if isTerminal(l.console.out) {
			name = names.Visible(name)
		}
		text.WriteString(name + "\n")
	}
	_, err := io.WriteString(l.console.out, text.String())
	return err
}

// compare orders names: with -t by time, the newest first, else and at the same time by name.
func (l *lister) compare(a, b listed) int {
	if l.byTime {
		order := b.info.ModTime().Compare(a.info.ModTime())
		if order != 0 {
			return order
		}
	}
	return strings.Compare(a.name, b.name)
}

// printLong prints names as ls -l does.
func (l *lister) printLong(items []listed) error {
	table := tabwriter.NewWriter(l.console.out, 0, 0, 1, ' ', 0)
	for _, it := range items {
		row, err := l.longRow(it)
		if err != nil {
			return err
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

// longRow returns the columns of a name: mode, owner, group, size, time, name and the target of a link.
func (l *lister) longRow(it listed) ([]string, error) {
	header, err := tar.FileInfoHeader(it.info, "") // which looks up the names of the owner
	if err != nil {
		return nil, err
	}
	owner := header.Uname
	if owner == "" {
		owner = strconv.Itoa(header.Uid)
	}
	group := header.Gname
	if group == "" {
		group = strconv.Itoa(header.Gid)
	}
	mode := it.info.Mode().String()
	name := names.Visible(it.name)
	if it.info.Mode()&iofs.ModeSymlink != 0 {
		mode = strings.Replace(mode, "L", "l", 1) // as ls has it
		target, err := l.src.ReadLink(it.path)
		if err != nil && !storage.IsGone(err) {
			return nil, err
		}
		name += " -> " + names.Visible(target)
	}
	size := strconv.FormatInt(it.info.Size(), 10)
	modified := it.info.ModTime().Local().Format("2006-01-02 15:04")
	return []string{mode, owner, group, size, modified, name}, nil
}

// catOptions are the options of cat.
type catOptions struct {
	paths []string
}

// catCommand is sessionfs cat.
func catCommand() *cobra.Command {
	return onSource(source.Paths, &cobra.Command{
		Use:     "cat [-s SOURCE] PATH...",
		Short:   "Print files of what a mount would show",
		Example: "  sessionfs cat 'recent/01-*/transcript.md'",
		Args:    someArgs,
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		return runCat(cmd.Context(), catOptions{paths: args}, src, consoleOf(cmd))
	})
}

// runCat prints files of the tree, through links, as cat does in a mount.
func runCat(ctx context.Context, o catOptions, src *sourceTree, c *console) error {
	return src.eachPath(ctx, c, o.paths, func(path string) error {
		f, err := src.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		plainOut := struct{ io.Writer }{c.out} // without ReadFrom, which would copy less at a time
		_, err = io.CopyBuffer(plainOut, f, make([]byte, copySize))
		return err
	})
}

// copySize is the number of bytes that are copied at a time: the size of one answer of the file
// system.
const copySize = 128 << 10

// treeCommand refuses a command of earlier versions.
func treeCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "tree",
		Hidden:             true,
		DisableFlagParsing: true,
		ValidArgsFunction:  cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			return refuse(exitUsage, "tree: this version does not have the command any more; use 'sessionfs ls -R PATH'")
		},
	}
}

// tarOptions are the options of tar.
type tarOptions struct {
	paths []string
}

// tarCommand is sessionfs tar.
func tarCommand() *cobra.Command {
	return onSource(source.Paths, &cobra.Command{
		Use:   "tar [-s SOURCE] [PATH...]",
		Short: "Write a tar archive of what a mount would show to the standard output",
		Long: "Write a tar archive of what a mount would show to the standard output, sorted by name. " +
			"A PATH that is a link to a directory stands for the directory; links in it stay links.",
		Example: "  sessionfs tar by-id/019d3d | ssh host tar x",
	}, func(cmd *cobra.Command, src *sourceTree, args []string) error {
		return runTar(cmd.Context(), tarOptions{paths: args}, src, consoleOf(cmd))
	})
}

// runTar writes the archive that tar would make of a mount.
func runTar(ctx context.Context, o tarOptions, src *sourceTree, c *console) error {
	if isTerminal(c.out) {
		return refuse(exitUsage, "tar: the archive would go to the terminal; redirect it: sessionfs tar PATH > FILE")
	}
	buffered := bufio.NewWriterSize(c.out, copySize)
	a := &archiver{
		src:     src,
		console: c,
		out:     tar.NewWriter(buffered),
	}
	err := src.eachPath(ctx, c, o.paths, func(top string) error {
		return a.add(ctx, top)
	})
	closed := a.out.Close()
	flushed := buffered.Flush()
	if err == nil {
		err = closed
	}
	if err == nil {
		err = flushed
	}
	if err == nil && a.failed {
		err = ended(exitFailure)
	}
	return err
}

// archiver archives what a mount would show. tar.Writer.AddFS gives up at an unreadable file. Here it is
// reported, and the archive goes on, as with tar.
type archiver struct {
	src     *sourceTree
	console *console
	out     *tar.Writer
	failed  bool // a file could not be read
}

// add adds a path of the tree, with all that is below it.
func (a *archiver) add(ctx context.Context, top string) error {
	return iofs.WalkDir(a.src, top, func(name string, it iofs.DirEntry, err error) error {
		if it == nil { // there is no top
			return err
		}
		if err == nil {
			err = a.addNode(top, name, it)
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, errArchive) {
			return err
		}
		if !storage.IsGone(err) {
			a.console.sayError(err)
			a.failed = true
		}
		return nil
	})
}

// errArchive is a failure to write the archive, which ends it.
var errArchive = errors.New("the archive is of no use")

// addNode adds a node below top. An error other than errArchive is about the node, and nothing of it is written then.
func (a *archiver) addNode(top, name string, it iofs.DirEntry) error {
	h, content, err := a.src.archived(name, it)
	if err != nil {
		return err
	}
	if content != nil {
		defer content.Close()
	}
	if top == "." && name != top {
		h.Name = "./" + h.Name // as tar names what is below .
	}
	err = a.out.WriteHeader(h)
	if err == nil && content != nil {
		_, err = io.CopyN(a.out, content, h.Size)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; %w", name, err, errArchive)
	}
	return nil
}

// archived describes a node as tar describes it in a mount, and opens it if it is a file, which callers must
// close; content is nil for other nodes.
func (src *sourceTree) archived(name string, it iofs.DirEntry) (h *tar.Header, content iofs.File, err error) {
	info, err := it.Info()
	if err != nil {
		return nil, nil, err
	}
	target := ""
	switch {
	case info.Mode()&iofs.ModeSymlink != 0:
		target, err = src.ReadLink(name)
	case !info.IsDir():
		content, err = src.Open(name)
		if err == nil {
			info, err = content.Stat() // of the version that is open
		}
	}
	if err == nil {
		h, err = tar.FileInfoHeader(info, target)
	}
	if err != nil {
		if content != nil {
			_ = content.Close()
		}
		return nil, nil, err
	}
	h.Name = name
	h.Format = tar.FormatPAX
	h.AccessTime = time.Time{} // an archive of the same tree is the same each time
	h.ChangeTime = time.Time{}
	if info.IsDir() {
		h.Name += "/"
	}
	return h, content, nil
}
