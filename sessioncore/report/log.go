package report

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// LogLine is a line of the log of a session: an entry, or where a branch joins another one.
type LogLine struct {
	Graph string            // the drawing before the entry
	Entry sessioncore.Entry // NoEntry for a line that is only drawn
	Above sessioncore.Entry // the next one above the entry that the log shows; NoEntry for a root
	ID    string            // the name of the entry's file, or as much of it as no other one begins with
	Marks []string          // leaf, lost or archived, as in branches.tsv, and the label
	What  string            // its path label (docs/design.md, branches/)
	Said  string            // the first paragraphs of its text, whole, else a call, as one line
	Call  bool              // Said is of a call
}

// maxColumns is how many branches are drawn beside each other with the newest first. Beyond that,
// the largest comes first: a tree of a million entries then needs no more than twenty others.
const maxColumns = 20

// Log calls f for each line of the tree of a session, as git log --graph shows it: the newest
// branch first, each entry before its parent. Without all it shows only messages of the user and
// the model, summaries, labelled entries, the leaf and the ends of branches. It ends with the first
// error of f, and when ctx is done.
func Log(ctx context.Context, s *sessioncore.Snapshot, all bool, f func(*LogLine) error) error {
	where, err := standingIn(ctx, s)
	if err != nil {
		return err
	}
	l := logTree{standing: where, reader: sessioncore.NewEntryReader(s)}
	l.join(all)
	short := shortName(s)
	show := func(line *LogLine) error {
		if line.Entry == sessioncore.NoEntry {
			return f(line)
		}
		line.ID = s.Name(line.Entry)
		if !strings.Contains(line.ID, "~") { // which is made of a line's number, and unique as a whole
			line.ID = line.ID[:min(len(line.ID), short)]
		}
		line.What = s.PathLabel(line.Entry)
		line.Marks = l.marks(line.Entry)
		var err error
		line.Said, line.Call, err = l.said(ctx, line.Entry)
		if err != nil {
			return err
		}
		return f(line)
	}
	for _, root := range l.kids[0] {
		err := l.draw(root, sessioncore.NoEntry, 0, show)
		if err != nil {
			return err
		}
	}
	return nil
}

// leastName is how much is shown of a name at least.
const leastName = 8

// shortName returns how many bytes of a name tell all entries apart. Names with a tilde are not
// shortened.
func shortName(s *sessioncore.Snapshot) int {
	var all []string
	for e := range sessioncore.Entry(s.Len()) {
		name := s.Name(e)
		if !strings.Contains(name, "~") {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	short := leastName
	for i := 1; i < len(all); i++ {
		before := all[i-1]
		name := all[i]
		for n := short; n <= min(len(before), len(name)) && before[:n] == name[:n]; n++ {
			short = n + 1
		}
	}
	return short
}

// logTree is the tree of the entries that are shown.
type logTree struct {
	*standing
	reader sessioncore.EntryReader
	kids   [][]sessioncore.Entry // of entry e at e + 1, in the order of drawing; the roots at 0
}

// isShown reports whether an entry is one of those that a person looks for.
func (l *logTree) isShown(e sessioncore.Entry) bool {
	switch l.s.Kind(e) {
	case sessioncore.TypeMessage:
		if l.s.Role(e) != sessioncore.RoleToolResult {
			return true
		}
	case sessioncore.TypeCompaction, sessioncore.TypeBranchSummary, sessioncore.TypeCustomMessage:
		return true
	}
	id, _ := l.s.ID(e)
	hasLabel := l.s.LabelOf(id) != ""
	return hasLabel || e == l.leaf || l.s.Tree().IsTip(e)
}

// logNode is an entry, and the nearest one above it that is shown.
type logNode struct{ entry, above sessioncore.Entry }

// join sets kids, in the order of drawing: the children of an entry are the nearest entries below it that are
// shown. With all, every entry is shown.
func (l *logTree) join(all bool) {
	tree := l.s.Tree()
	l.kids = make([][]sessioncore.Entry, l.s.Len()+1)
	top := logNode{sessioncore.NoEntry, sessioncore.NoEntry}
	order := []logNode{top} // each after those above it
	var walk []logNode      // to be visited; a stack, as a recursion would be as deep as the tree
	for _, root := range tree.Roots() {
		walk = append(walk, logNode{root, sessioncore.NoEntry})
	}
	for len(walk) > 0 {
		last := len(walk) - 1
		n := walk[last]
		walk = walk[:last]
		above := n.above
		if all || l.isShown(n.entry) {
			l.kids[above+1] = append(l.kids[above+1], n.entry)
			order = append(order, n)
			above = n.entry
		}
		for _, kid := range tree.Children(n.entry) {
			walk = append(walk, logNode{kid, above})
		}
	}
	l.sort(order)
}

// logSubtree has facts of the entries that are drawn at and below an entry.
type logSubtree struct {
	newest  sessioncore.Entry
	size    int
	columns int // how many columns the drawing needs to the right of the entry's own
}

// sort puts the children of each entry into the order of drawing: the newest first, or the largest
// first where that needs more than maxColumns. order has each entry after those above it.
func (l *logTree) sort(order []logNode) {
	below := make([]logSubtree, len(l.kids))   // of entry e at e + 1
	for _, n := range slices.Backward(order) { // each before those above it
		kids := l.kids[n.entry+1]
		own := logSubtree{newest: n.entry, size: 1}
		for _, kid := range kids {
			own.newest = max(own.newest, below[kid+1].newest)
			own.size += below[kid+1].size
		}
		slices.SortFunc(kids, func(a, b sessioncore.Entry) int {
			return cmp.Compare(below[b+1].newest, below[a+1].newest)
		})
		isEntry := n.entry != sessioncore.NoEntry
		if isEntry && columnsOf(kids, below) > maxColumns {
			slices.SortStableFunc(kids, func(a, b sessioncore.Entry) int {
				return cmp.Compare(below[b+1].size, below[a+1].size)
			})
		}
		own.columns = columnsOf(kids, below)
		below[n.entry+1] = own
	}
}

// columnsOf returns how many columns children need. The first one is drawn in its parent's column, the others to the
// right of it.
func columnsOf(kids []sessioncore.Entry, below []logSubtree) int {
	columns := 0
	for i, kid := range kids {
		own := below[kid+1].columns
		if i > 0 {
			own++
		}
		columns = max(columns, own)
	}
	return columns
}

// draw calls f for each line of the part of the tree from an entry e on, until f returns an error. above is the
// entry above e that is shown, or NoEntry. The first child of an entry stands before it, each other one
// in the next column, which then ends. Only other children are drawn by a recursion, which sort keeps
// shallow.
func (l *logTree) draw(e, above sessioncore.Entry, column int, f func(*LogLine) error) error {
	chain := []sessioncore.Entry{above, e}
	for kids := l.kids[e+1]; len(kids) > 0; kids = l.kids[kids[0]+1] {
		chain = append(chain, kids[0])
	}
	bars := strings.Repeat("| ", column)
	for n := len(chain) - 1; n > 0; n-- {
		e := chain[n]
		for i, kid := range l.kids[e+1] {
			if i == 0 {
				continue
			}
			err := l.draw(kid, e, column+1, f)
			if err != nil {
				return err
			}
			err = f(&LogLine{Graph: bars + "|/", Entry: sessioncore.NoEntry})
			if err != nil {
				return err
			}
		}
		err := f(&LogLine{Graph: bars + "*", Entry: e, Above: chain[n-1]})
		if err != nil {
			return err
		}
	}
	return nil
}

// marks returns LogLine.Marks of an entry, nil for none.
func (l *logTree) marks(e sessioncore.Entry) (marks []string) {
	is := l.of(e)
	switch {
	case is == branchCurrent:
		marks = append(marks, "leaf")
	case l.s.Tree().IsTip(e) && is != branchElsewhere:
		marks = append(marks, is)
	}
	id, _ := l.s.ID(e)
	label := l.s.LabelOf(id)
	if label != "" {
		marks = append(marks, "label: "+paragraphs(label))
	}
	return marks
}

// said returns an excerpt of the first text of an entry, else of its first call of a tool.
func (l *logTree) said(ctx context.Context, e sessioncore.Entry) (said string, isCall bool, err error) {
	return Said(ctx, l.s, l.reader.Read, e)
}

// Said returns the first paragraphs of the first text of an entry, whole, else its first call of a tool, as
// one line; "" if it has neither, or is larger than maxSaidEntry. read returns the text of an entry.
func Said(
	ctx context.Context, s *sessioncore.Snapshot, read func(sessioncore.Entry) (rawjson.Value, error), e sessioncore.Entry,
) (said string, isCall bool, err error) {
	text, err := shortText(ctx, s, read, e)
	if err != nil || text == nil {
		return "", false, err
	}
	words, _ := firstSaid(s.Request(e, text), paragraphs)
	if words != "" {
		return words, false, nil
	}
	m := message.Read(text) // a summary's members are the entry's
	inner := s.Message(e, text)
	if len(inner) > 0 {
		m = message.Read(inner)
	}
	for _, key := range []message.Key{message.Content, message.Summary, message.Command, message.Code} {
		said, isCall = firstSaid(m[key], paragraphs)
		if said != "" {
			return said, isCall, nil
		}
	}
	for _, key := range []string{"label", "title", "name", "model", "thinkingLevel", "customType"} {
		said, _ := text.Member(key).Text()
		if said != "" {
			return paragraphs(said), false, nil
		}
	}
	return "", false, nil
}
