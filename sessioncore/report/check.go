package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// SessionChecker looks at the sessions of a tree in the form of a mount, one after the other.
type SessionChecker struct {
	Tree  fs.ReadLinkFS
	Found func(*CheckedSession) // called with each session, and with each file that should be one
	Fail  func(error) error     // called with the error of a path; an error of its own ends Below

	// IsUnderstood reports whether some agent wrote the beginning of a file, or nobody did; nil if
	// that does not matter.
	IsUnderstood func(beginning []byte, whole bool) bool
	// Depth is the number of directories above a session that is not among artifacts.
	Depth int

	Sessions, Broken int // how many there were
	Strangers        int // files in the place of a session that no known agent wrote
}

// CheckedSession is a session file, and the kinds of problems in it. It encodes as a line of check --json.
type CheckedSession struct {
	Path     string    `json:"path"`
	Problems []*Defect `json:"problems"`
}

// Defect is one kind of problems in a session.
type Defect struct {
	Kind   string `json:"problem"`
	Why    string `json:"why"`            // of the first one
	Line   int64  `json:"line,omitempty"` // of the first one; 0 if it has none
	Count  int    `json:"count"`
	Remedy string `json:"remedy,omitempty"`
}

const (
	// leafName is the link that each session's directory has.
	leafName = "leaf"
	// sessionSuffix ends the name of a session file; the directory of the session has the name
	// without it.
	sessionSuffix = ".jsonl"
)

// Below reports the sessions in a directory, which may be a session's, and below it, and each file in the
// place of a session that is none. Of a directory that is gone it reports nothing. Its error is one of Fail.
func (c *SessionChecker) Below(dir string) error {
	return fs.WalkDir(c.Tree, dir, func(name string, it fs.DirEntry, err error) error {
		base, hasSuffix := strings.CutSuffix(name, sessionSuffix)
		switch {
		case err != nil:
			return c.failed(err)
		case it.IsDir() && c.has(name+sessionSuffix) && c.isSession(name):
			err := c.session(name)
			if err != nil {
				return err
			}
			err = c.Below(path.Join(name, "artifacts")) // which may be missing
			if err != nil {
				return err
			}
			return fs.SkipDir // all else in it is made of the session
		case hasSuffix && it.Type().IsRegular() && !c.isSession(base):
			return c.file(name)
		}
		return nil
	})
}

// has reports whether the tree has a name, which may be a link.
func (c *SessionChecker) has(name string) bool {
	_, err := c.Tree.Lstat(name)
	return err == nil
}

// isSession reports whether a directory is a session's: beside a file that is none, the
// directory of its artifacts has the same name.
func (c *SessionChecker) isSession(dir string) bool { return c.has(path.Join(dir, leafName)) }

// failed passes on the error of a path, unless that is gone.
func (c *SessionChecker) failed(err error) error {
	if err == nil || storage.IsGone(err) {
		return nil
	}
	return c.Fail(err)
}

// file reports a file that is named like a session and is none, unless it holds something else.
func (c *SessionChecker) file(name string) error {
	text, err := c.beginning(name)
	if err != nil {
		return c.failed(err)
	}
	isOther := isOther(text)
	isArtifact := strings.Count(name, "/") > c.Depth
	isStranger := false
	if isOther && !isArtifact && c.IsUnderstood != nil {
		isWhole := len(text) < maxOther
		isStranger = !c.IsUnderstood(text, isWhole)
	}
	switch {
	case isStranger:
		c.Strangers++
		c.Found(&CheckedSession{name, []*Defect{{
			Kind: notUnderstood, Why: "its records are of no agent that is known", Count: 1, Remedy: Remedies[notUnderstood],
		}}})
		return nil
	case isOther:
		return nil
	}
	c.report(name, []*Defect{{
		Kind: noSession, Why: "it is empty, or does not begin with the header of one", Count: 1,
	}})
	return nil
}

// maxOther is how much is read of a file that is no session.
const maxOther = 64 << 10

// beginning returns the first maxOther bytes of a file.
func (c *SessionChecker) beginning(name string) ([]byte, error) {
	f, err := c.Tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxOther))
}

// isOther reports whether the text of a file without a header, or its first maxOther bytes, has whole objects
// and no entry of a session: tools write such files among artifacts, and Claude Code beside its sessions.
// Nothing of them is missing. An empty file is none.
func isOther(text []byte) bool {
	for line := range bytes.Lines(text) {
		var object struct {
			ParentID json.RawMessage `json:"parentId"`
			Operator json.RawMessage `json:"parent_id"`
		}
		err := json.Unmarshal(line, &object)
		switch {
		case len(text) == maxOther && line[len(line)-1] != '\n': // the last line goes on behind text
			return line[0] == '{'
		case err != nil, object.ParentID != nil, object.Operator != nil:
			return false
		}
	}
	return len(text) > 0
}

// session reports a session with its problems. One that has none, and no entry either, is reported as empty.
// Nothing is reported of one that is gone.
func (c *SessionChecker) session(dir string) error {
	kinds, err := c.defects(dir)
	if storage.IsGone(err) {
		return nil
	}
	err = c.failed(err)
	if err != nil {
		return err
	}
	leaf, err := c.Tree.ReadLink(path.Join(dir, leafName)) // it is "tree" where it is before all entries
	if len(kinds) == 0 && err == nil && leaf == "tree" {
		entries, err := fs.ReadDir(c.Tree, path.Join(dir, "entries"))
		if err == nil && len(entries) == 0 {
			kinds = []*Defect{{Kind: noEntries, Why: "it has a header alone", Count: 1}}
		}
	}
	c.report(dir+sessionSuffix, kinds)
	return nil
}

// report counts a file and passes on a copy of its problems, with their remedies. A session that is only empty
// is not broken.
func (c *SessionChecker) report(name string, kinds []*Defect) {
	c.Sessions++
	for _, k := range kinds {
		k.Remedy = Remedies[k.Kind]
	}
	if len(kinds) > 0 && kinds[0].Kind != noEntries {
		c.Broken++
	}
	c.Found(&CheckedSession{name, append([]*Defect{}, kinds...)})
}

// defects reads problems.jsonl of a session, by kind, in the order of the first of each. After an error it
// returns those read so far.
func (c *SessionChecker) defects(dir string) (kinds []*Defect, err error) {
	f, err := c.Tree.Open(path.Join(dir, "problems.jsonl"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := json.NewDecoder(f)
	for {
		var p Defect
		err := lines.Decode(&p)
		if err == io.EOF {
			return kinds, nil
		} else if err != nil {
			return kinds, err
		}
		i := slices.IndexFunc(kinds, func(k *Defect) bool {
			return k.Kind == p.Kind
		})
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, &Defect{Kind: p.Kind, Why: p.Why, Line: p.Line})
		}
		kinds[i].Count++
	}
}

// WriteText writes the path and its problems for a person, nothing if there are none.
func (c *CheckedSession) WriteText(out io.Writer) {
	if len(c.Problems) > 0 {
		fmt.Fprintln(out, names.Visible(c.Path))
	}
	for _, d := range c.Problems {
		where := ""
		times := ""
		if d.Line > 0 {
			where = fmt.Sprintf("line %d: ", d.Line)
		}
		if d.Count > 1 {
			times = fmt.Sprintf(" (and %d more of this kind)", d.Count-1)
		}
		fmt.Fprintf(out, "  %s%s: %s%s\n", where, names.Visible(d.Kind), names.Visible(d.Why), times)
		if d.Remedy != "" {
			fmt.Fprintf(out, "    %s\n", d.Remedy)
		}
	}
}

// The kinds of problems that problems.jsonl does not have.
const (
	noSession     = "not a session"
	noEntries     = "empty"
	notUnderstood = "not understood"
)

// Remedies are the advice for each kind of problem, as sentences.
var Remedies = map[string]string{
	noSession: "Clients do not show it either. Restore it from a backup, or move it away.",
	notUnderstood: "It is not shown. If it is of an agent, name that agent's directory, or wait for a version of " +
		"sessionfs that reads it.",
	noEntries: "Nothing is broken. If nobody goes on with it, remove the file.",
	"skipped": "No program reads this text: a write that was cut off, or another file's. Nothing else is lost, " +
		"and rewrites keep it.",
	"no-object": "No program reads this line. Nothing else is lost.",
	"no-resume": "Nothing is lost. Another program wrote that record; an agent's own program may repair it, and " +
		"sessionfs import makes an omp session of all.",
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
