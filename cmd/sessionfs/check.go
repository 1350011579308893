package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sessionfs/sessioncore/names"
)

// checkCommand is sessionfs check.
func checkCommand() *cobra.Command {
	var asJSON bool
	cmd := onSource(treePaths, &cobra.Command{
		Use:   "check [--json] [-s SOURCE] [PATH...]",
		Short: "Tell what is broken in the sessions, and what to do about it",
		Long: "Tell what is broken in the sessions, below PATH or all of them, and what to do about it. Nothing is " +
			"changed. Exit status: 0 nothing is broken, 1 something is, 2 something could not be looked at.",
		Example: "  sessionfs check || sessionfs check | mail -s sessions me",
	}, func(cmd *cobra.Command, src *source, args []string) error {
		if len(args) == 0 {
			args = []string{"sessions"}
		}
		c := &checker{out: bufio.NewWriter(cmd.OutOrStdout()), cmd: cmd, src: src, json: asJSON}
		paths, err := src.expand(args...)
		if err != nil {
			return err
		}
		for _, name := range paths {
			dir, err := src.Resolve(name)
			if err != nil {
				return err
			}
			if info, err := src.Stat(dir); err == nil && !info.IsDir() {
				return &iofs.PathError{Op: "check", Path: name, Err: errors.New("is not a directory; " +
					"check takes that of a session, or one that holds sessions")}
			}
			if err := c.below(dir); err != nil {
				return err
			}
		}
		if asJSON {
			_ = writeJSON(c.out, map[string]int{"sessions": c.sessions, "broken": c.broken})
		} else {
			fmt.Fprintf(c.out, "%d sessions, %d with problems\n", c.sessions, c.broken)
		}
		if err := c.out.Flush(); err != nil {
			return err
		}
		switch {
		case c.unseen:
			return ended(exitNotDone)
		case c.broken > 0:
			return ended(exitNothing)
		}
		return nil
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "a line of JSON for each session")
	endsWithTwo(cmd)
	return cmd
}

// checker looks at sessions one after the other.
type checker struct {
	cmd              *cobra.Command
	src              *source
	out              *bufio.Writer
	json             bool
	sessions, broken int
	unseen           bool // something could not be looked at
}

const (
	problemsFile = "problems.jsonl"
	artifactsDir = "artifacts"
	// sessionSuffix ends the name of a session file; the directory of the session has the name
	// without it.
	sessionSuffix = ".jsonl"
)

// below looks at the sessions in a directory, which may be that of one, and below it. Its error is
// that of an interrupt.
func (c *checker) below(dir string) error {
	return iofs.WalkDir(c.src, dir, func(name string, it iofs.DirEntry, err error) error {
		base, named := strings.CutSuffix(name, sessionSuffix)
		switch {
		case err != nil:
			return c.cannot(name, err)
		case it.IsDir() && c.has(name+sessionSuffix) && c.isSession(name):
			if err := c.session(name); err != nil {
				return err
			}
			if err := c.below(path.Join(name, artifactsDir)); err != nil { // most have none
				return err
			}
			return iofs.SkipDir
		case named && it.Type().IsRegular() && !c.isSession(base):
			return c.file(name)
		}
		return nil
	})
}

func (c *checker) has(name string) bool {
	_, err := c.src.Lstat(name)
	return err == nil
}

// isSession reports whether a directory is that of a session: beside a file that is none, the
// directory of its artifacts has the same name.
func (c *checker) isSession(dir string) bool { return c.has(path.Join(dir, leafLink)) }

// file reports a file that is named like a session and is none, unless it holds something else. Its
// error is that of an interrupt.
func (c *checker) file(name string) error {
	switch other, err := c.isOther(name); {
	case err != nil:
		return c.cannot(name, err)
	case other:
		return nil
	}
	c.sessions++
	c.broken++
	c.report(name, []*problems{{Kind: noSession, Why: "it is empty, or does not begin with the header of one",
		Count: 1}})
	return nil
}

// maxOther is how much is read of a file that is no session.
const maxOther = 64 << 10

// isOther reports whether a file without a header begins with whole objects, none of which is an
// entry of a session: tools write such files among artifacts, and Claude Code beside its sessions.
// Nothing of them is missing.
func (c *checker) isOther(name string) (bool, error) {
	f, err := c.src.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxOther))
	if err != nil {
		return false, err
	}
	for line := range bytes.Lines(text) {
		var object struct {
			ParentID json.RawMessage `json:"parentId"`
			Operator json.RawMessage `json:"parent_id"`
		}
		switch err := json.Unmarshal(line, &object); {
		case len(text) == maxOther && line[len(line)-1] != '\n':
			return line[0] == '{', nil
		case err != nil, object.ParentID != nil, object.Operator != nil:
			return false, nil
		}
	}
	return len(text) > 0, nil
}

// session looks at a session.
func (c *checker) session(dir string) error {
	kinds, err := readProblems(c.src, dir)
	if isGone(err) {
		return nil
	}
	c.sessions++
	if err != nil {
		if err := c.cannot(dir, err); err != nil {
			return err
		}
	}
	if len(kinds) > 0 {
		c.broken++
	} else if leaf, err := c.src.ReadLink(path.Join(dir, leafLink)); err == nil && leaf == "tree" && c.isEmpty(dir) {
		kinds = []*problems{{Kind: noEntries, Why: "it has a header alone", Count: 1}}
	}
	c.report(dir+sessionSuffix, kinds)
	return nil
}

// report prints the problems of a file. As JSON a file without any is printed too.
func (c *checker) report(name string, kinds []*problems) {
	for _, k := range kinds {
		k.Remedy = remedies[k.Kind]
	}
	if c.json {
		_ = writeJSON(c.out, struct {
			Path     string      `json:"path"`
			Problems []*problems `json:"problems"`
		}{name, append([]*problems{}, kinds...)})
		return
	}
	if len(kinds) > 0 {
		fmt.Fprintln(c.out, names.Visible(name))
	}
	for _, k := range kinds {
		k.print(c.out)
	}
}

// isEmpty reports whether a session has no entries.
func (c *checker) isEmpty(dir string) bool {
	entries, err := c.src.ReadDir(path.Join(dir, "entries"))
	return err == nil && len(entries) == 0
}

// cannot reports a path that could not be read, unless it is gone, and returns the error of an
// interrupt.
func (c *checker) cannot(_ string, err error) error {
	if c.cmd.Context().Err() != nil {
		return err
	}
	if !isGone(err) {
		sayError(c.cmd, err)
		c.unseen = true
	}
	return nil
}

// problems are those of one kind in a session.
type problems struct {
	Kind   string `json:"problem"`
	Why    string `json:"why"`            // of the first one
	Line   int64  `json:"line,omitempty"` // of the first one; 0 if it has none
	Count  int    `json:"count"`
	Remedy string `json:"remedy,omitempty"`
}

// The kinds of problems that problems.jsonl does not have.
const (
	noSession = "not a session"
	noEntries = "empty"
)

// remedies are the advice for each kind of problem.
var remedies = map[string]string{
	noSession: "Clients do not show it either. Restore it from a backup, or move it away.",
	noEntries: "Nothing is broken. If nobody goes on with it, remove the file.",
	"skipped": "No program reads this text: a write that was cut off, or another file's. Nothing else is lost, " +
		"and rewrites keep it.",
	"no-object": "No program reads this line. Nothing else is lost.",
	"header": "Two sessions were put into one file. The second header is ignored; " +
		"its entries are shown with the first.",
	"no-id": "The entry has no id, so that nothing can follow it. It is shown as entries/~LINE.json.",
	"repeated": "Clients show the last entry of that id; the earlier ones are entries/ID~LINE.json. " +
		"The file was perhaps put together from two.",
	"orphan": "What was before it is missing: look for a backup of the file that has it. " +
		"The entry and what follows it are a branch of their own.",
	"unwritten": "The agent did not write what was before it, or has it in another session. " +
		"The entry and what follows it are a branch of their own.",
	"own-parent": "The entry names itself as its parent. It is shown as the beginning of a branch.",
	"cycle":      "Entries name each other as their parents. They are shown from the first one on.",
	"orphan-call": "Some agents cannot go on with it. Go back to the entry before it (replace the link leaf), or " +
		"fork there; of a session that cannot be written, sessionfs import PATH#ID takes what is before it.",
	"orphan-result": "Some agents cannot go on with it: as with orphan-call, go back to the entry before it, " +
		"or fork there.",
	"blob": "Restore the file in blobs/ from a backup; until then the image is missing in what the model is " +
		"sent.",
}

// print prints a kind of problem, the place of the first one, and the remedy.
func (p *problems) print(out io.Writer) {
	where, times := "", ""
	if p.Line > 0 {
		where = fmt.Sprintf("line %d: ", p.Line)
	}
	if p.Count > 1 {
		times = fmt.Sprintf(" (and %d more of this kind)", p.Count-1)
	}
	fmt.Fprintf(out, "  %s%s: %s%s\n", where, names.Visible(p.Kind), names.Visible(p.Why), times)
	if p.Remedy != "" {
		fmt.Fprintf(out, "    %s\n", p.Remedy)
	}
}

// readProblems reads problems.jsonl of a session, by kind, in the order of the first of each.
func readProblems(src *source, dir string) ([]*problems, error) {
	f, err := src.Open(path.Join(dir, problemsFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var kinds []*problems
	for lines := json.NewDecoder(f); ; {
		var p struct {
			Line         int64
			Problem, Why string
		}
		if err := lines.Decode(&p); err == io.EOF {
			return kinds, nil
		} else if err != nil {
			return kinds, err
		}
		i := slices.IndexFunc(kinds, func(k *problems) bool { return k.Kind == p.Problem })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, &problems{Kind: p.Problem, Why: p.Why, Line: p.Line})
		}
		kinds[i].Count++
	}
}
