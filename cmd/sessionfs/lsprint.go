package main

import (
	"bufio"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	osuser "os/user"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sessionfs/fs/direct"
)

// terminalWidth returns the columns of the terminal that out is, or 0 if it is none.
func terminalWidth(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return max(int(size.Col), 1)
}

// print prints names: a name a line, in columns if width is that of a terminal, or as ls -l.
func (f *lsFlags) print(out *bufio.Writer, items []listed, width int) {
	switch {
	case f.long:
		printLong(out, items)
	case width > 0:
		names := make([]string, len(items))
		for i, it := range items {
			names[i] = visible(it.name)
		}
		printColumns(out, names, width)
	default:
		for _, it := range items {
			out.WriteString(it.name + "\n")
		}
	}
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

// columnGap is how many blanks are between columns.
const columnGap = 2

// printColumns prints names in as many columns as fit, filled from top to bottom.
func printColumns(out *bufio.Writer, names []string, width int) {
	if len(names) == 0 {
		return
	}
	rows := 1
	for ; rows < len(names); rows++ {
		total := -columnGap
		for _, w := range columnWidths(names, rows) {
			total += w + columnGap
		}
		if total <= width {
			break
		}
	}
	widths := columnWidths(names, rows)
	for row := range rows {
		for at, column := row, 0; at < len(names); at, column = at+rows, column+1 {
			out.WriteString(names[at])
			if at+rows < len(names) {
				out.WriteString(strings.Repeat(" ", widths[column]+columnGap-utf8.RuneCountInString(names[at])))
			}
		}
		out.WriteString("\n")
	}
}

// columnWidths returns the widths of the columns that names make in so many rows.
func columnWidths(names []string, rows int) []int {
	widths := make([]int, (len(names)+rows-1)/rows)
	for i, name := range names {
		widths[i/rows] = max(widths[i/rows], utf8.RuneCountInString(name))
	}
	return widths
}

// recent is how long ls -l shows the time of day rather than the year.
const recent = 182 * 24 * time.Hour

// printLong prints a line a name, as ls -l does.
func printLong(out *bufio.Writer, items []listed) {
	now := time.Now()
	owners, sizes := ownerNames{}, 0
	for _, it := range items {
		sizes = max(sizes, len(strconv.FormatInt(it.info.Size(), 10)))
	}
	for _, it := range items {
		owner := ""
		if info, ok := it.info.(direct.Info); ok {
			uid, gid := info.Owner()
			owner = owners.user(uid) + " " + owners.group(gid)
		}
		when := it.info.ModTime().Local()
		form := "Jan _2 15:04"
		if age := now.Sub(when); age > recent || age < 0 {
			form = "Jan _2  2006"
		}
		fmt.Fprintf(out, "%s %s %*d %s %s", modeText(it.info.Mode()), owner, sizes, it.info.Size(), when.Format(form), visible(it.name))
		if it.target != "" {
			out.WriteString(" -> " + visible(it.target))
		}
		out.WriteString("\n")
	}
}

// modeText returns type and permissions as ls does.
func modeText(mode iofs.FileMode) string {
	kind := "-"
	switch {
	case mode.IsDir():
		kind = "d"
	case mode&iofs.ModeSymlink != 0:
		kind = "l"
	}
	return kind + iofs.FileMode(mode.Perm()).String()[1:]
}

// ownerNames remembers the names of users and groups.
type ownerNames map[string]string

func (o ownerNames) user(uid uint32) string {
	return o.name("u", uid, func(id string) (string, error) {
		u, err := osuser.LookupId(id)
		if err != nil {
			return "", err
		}
		return u.Username, nil
	})
}

func (o ownerNames) group(gid uint32) string {
	return o.name("g", gid, func(id string) (string, error) {
		g, err := osuser.LookupGroupId(id)
		if err != nil {
			return "", err
		}
		return g.Name, nil
	})
}

// name returns the name of a number, or the number if it has none.
func (o ownerNames) name(kind string, number uint32, find func(id string) (string, error)) string {
	id := strconv.FormatUint(uint64(number), 10)
	name, known := o[kind+id]
	if !known {
		var err error
		if name, err = find(id); err != nil {
			name = id
		}
		o[kind+id] = name
	}
	return name
}
