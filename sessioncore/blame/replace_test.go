package blame

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/view"
)

// replaceEach replaces Old at one place after the other, as replace did: it compares the lines of each
// place, and copies the text and its marks for each.
func replaceEach(p *fragment, c Change, edit int) {
	from := 0
	for {
		at := indexOf(p.text[from:], c)
		if at < 0 {
			return
		}
		at += from
		replaceOne(p, c, edit, at)
		from = at + len(c.New)
	}
}

// replaceOne replaces Old at an offset of the text.
func replaceOne(p *fragment, c Change, edit, at int) {
	end := at + len(c.Old)
	lineStart := strings.LastIndexByte(p.text[:at], '\n') + 1
	lineEnd := end + strings.IndexByte(p.text[end:]+"\n", '\n')
	before := strings.Split(p.text[lineStart:lineEnd], "\n")
	after := strings.Split(p.text[lineStart:at]+c.New+p.text[end:lineEnd], "\n")
	first := strings.Count(p.text[:at], "\n") // the index of the line
	marks := repeated(edit, len(after))
	view.EachCommon(before, after, func(i, j int) {
		marks[j] = p.marks[first+i]
	})
	p.text = p.text[:at] + c.New + p.text[end:]
	p.marks = slices.Concat(p.marks[:first], marks, p.marks[first+len(before):])
}

// TestReplaceAll: the replacement of all places at once is that of one place after the other.
func TestReplaceAll(t *testing.T) {
	compared := 0
	for seed := range uint64(20_000) {
		random := rand.New(rand.NewPCG(seed, 0))
		word := func(most int) (text string) {
			for range random.IntN(most + 1) {
				text += string("ab\n\nc"[random.IntN(5)])
			}
			return text
		}
		text := word(30)
		c := Change{Old: word(3), New: word(4), All: true}
		if !strings.Contains(text, c.Old) || c.Old == "" {
			continue
		}
		marks := make([]int, strings.Count(text, "\n")+1)
		for i := range marks {
			marks[i] = i + 10
		}
		const edit, limit = 1, 1000
		want := &fragment{text: text, marks: marks}
		replaceEach(want, c, edit)
		got := &fragment{text: text, marks: marks}
		got.replace(c, edit, limit)
		require.Equal(t, want.text, got.text)
		require.Len(t, got.marks, len(want.marks))
		if isExact(text, c) {
			require.Equal(t, want.marks, got.marks, "%q %+v %q", text, c, got.text)
			compared++
		}
	}
	require.Greater(t, compared, 1000)
}

// isExact reports whether each line is compared as before: no two places are in one line, or each
// place is compared alone. Else a line may happen to be what another one was before.
func isExact(text string, c Change) bool {
	if strings.Contains(c.Old, "\n") && strings.Contains(c.New, "\n") {
		return true
	}
	between := strings.Split(text, c.Old)
	for _, part := range between[1 : len(between)-1] {
		if !strings.Contains(part, "\n") {
			return false
		}
	}
	return true
}

// TestReplaceAllWork: the replacement of all places costs one copy of the text, in any form of places.
func TestReplaceAllWork(t *testing.T) {
	for _, c := range []Change{
		{Old: "a", New: "b"}, {Old: "a", New: "aa"}, {Old: "a", New: "a\nb"}, {Old: "\n", New: "\n\n"}, {Old: "\n", New: " "},
		{Old: "a\na", New: "b\na"}, {Old: "a\na", New: ""}, {Old: "a", New: ""},
	} {
		c.All = true
		for _, line := range []string{"a", "a\n", "xaxa\n", "\n"} {
			if strings.Contains(line, c.Old) {
				sessiontest.LinearMemory(t, 3000, func(n int) int64 {
					changes := [][]Change{{{New: strings.Repeat(line, n), Whole: true}}, {c}}
					return sessiontest.WorkOf(func() { Lines("", changes) }).Sum()
				})
			}
		}
	}
}

// TestReplaceGrowth: edits that double a text again and again end with a text that is not known.
func TestReplaceGrowth(t *testing.T) {
	edits := [][]Change{{{New: "a\nb\n", Whole: true}}}
	for range 60 {
		edits = append(edits, []Change{{Old: "a", New: "aa", All: true}})
	}
	work := sessiontest.WorkOf(func() {
		require.Equal(t, []Line{{Nobody, false}, {Nobody, false}}, Lines("a\nb\n", edits))
	})
	require.Less(t, work.Sum(), int64(100<<20))
}

// TestEditsWork: edits cost as much as there are, also where nothing is known of the file, all make the
// same line, or none has a result.
func TestEditsWork(t *testing.T) {
	for name, edit := range map[string]func(i int) Change{
		"of unknown places": func(i int) Change {
			return Change{Old: fmt.Sprintf("old %d\nof %[1]d\n", i), New: fmt.Sprintf("new %d\nof %[1]d\n", i)}
		},
		"of one line":   func(i int) Change { return Change{Old: fmt.Sprint("old ", i), New: "alike"} },
		"of one place":  func(i int) Change { return Change{Old: fmt.Sprint("n = ", i), New: fmt.Sprint("n = ", i+1)} },
		"by numbers":    func(int) Change { return Change{New: "x\n", Lines: true, From: 3, To: 3} },
		"at the end":    func(int) Change { return Change{New: "x\n", Lines: true, From: atEnd} },
		"of all places": func(int) Change { return Change{Old: "alike", New: "alike", All: true} },
	} {
		t.Run(name, func(t *testing.T) {
			sessiontest.LinearMemory(t, 1000, func(n int) int64 {
				var edits [][]Change
				for i := range n {
					edits = append(edits, []Change{edit(i)})
				}
				file := strings.Repeat("alike\n", n)
				return sessiontest.WorkOf(func() { Lines(file, edits) }).Sum()
			})
		})
	}
}

// TestPatchWork: the lines of a patch are joined once.
func TestPatchWork(t *testing.T) {
	sessiontest.LinearMemory(t, 1000, func(n int) int64 {
		patch := "[/a.go#1A2B]\nPUT 1:\n" + strings.Repeat("+a line\n", n)
		return sessiontest.WorkOf(func() {
			list := sections(patch, func(string) bool { return true })
			require.Equal(t, strings.Repeat("a line\n", n), list[0].New)
		}).Sum()
	})
}
