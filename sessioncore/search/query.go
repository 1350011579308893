package search

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
)

// ErrQuery means that a text is not a query. Its message says why.
var ErrQuery = errors.New("not a search query")

// maxQuery is the longest query in bytes. A name in the mount has 255; the command line takes more.
const maxQuery = 4096

// Query says which entries are hits (docs/design.md section 5, search/). It is a Matcher, does not change, and is safe
// for concurrent use.
type Query struct {
	text    string
	words   []*word // each is in the entry's visible text
	without []*word // none is
	role    string  // "" for any
	tool    *word   // nil for any
	cwd     string  // "" for any
	after   time.Time
	before  time.Time // zero for any
	archive bool
	needle  *Needle
}

// roles are what role: takes, and the roles of messages for which it stands, in camelCase.
var roles = map[string][]string{"user": {"user"}, "assistant": {"assistant"}, "tool": {"toolResult", "tool"}}

// ParseQuery parses a query, in which nothing is percent-encoded. The error wraps ErrQuery.
func ParseQuery(text string) (*Query, error) {
	q := &Query{text: text}
	if len(text) > maxQuery {
		return nil, q.wrong("it has more than %d bytes", maxQuery)
	}
	if !utf8.ValidString(text) {
		return nil, q.wrong("it is not UTF-8")
	}
	given := map[string]bool{}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		var t term
		var err error
		if t, rest, err = q.cut(rest); err == nil {
			err = q.add(t, given)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(q.words) == 0 && len(given) == 0 {
		if len(q.without) > 0 {
			return nil, q.wrong("it only says what must not be there; add a word that must")
		}
		return nil, q.wrong("it is empty")
	}
	if !q.after.IsZero() && !q.before.IsZero() && !q.after.Before(q.before) {
		return nil, q.wrong("no time is after: and before: these dates")
	}
	q.needle = q.chooseNeedle()
	return q, nil
}

func (q *Query) wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrQuery, fmt.Sprintf(format, args...))
}

// term is a part of a query: text, or key:text.
type term struct {
	not  bool
	key  string
	text string
}

// keys are the words before a colon that have a meaning. Other words may have colons.
var keys = []string{"role", "tool", "cwd", "after", "before", "in"}

// cut returns the first term of a query that begins with it.
func (q *Query) cut(text string) (t term, rest string, err error) {
	if len(text) > 1 && text[0] == '-' {
		if r, _ := utf8.DecodeRuneInString(text[1:]); !unicode.IsSpace(r) {
			t.not, text = true, text[1:]
		}
	}
	for _, key := range keys {
		if after, ok := strings.CutPrefix(text, key+":"); ok {
			t.key, text = key, after
		}
	}
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexFunc(text, unicode.IsSpace)
		if end < 0 {
			end = len(text)
		}
		t.text = text[:end]
		return t, text[end:], nil
	}
	end := strings.IndexByte(text[1:], '"')
	if end < 0 {
		return t, "", q.wrong(`a phrase begins with a " and does not end with one`)
	}
	t.text, rest = text[1:1+end], text[end+2:]
	if r, _ := utf8.DecodeRuneInString(rest); rest != "" && !unicode.IsSpace(r) {
		return t, "", q.wrong(`what comes after a phrase needs a blank before it`)
	}
	if t.text == "" && t.key == "" {
		return t, "", q.wrong("a phrase is empty")
	}
	return t, rest, nil
}

// add adds a term; given are the keys that were there before.
func (q *Query) add(t term, given map[string]bool) error {
	switch {
	case t.key == "" && t.not:
		q.without = append(q.without, newWord(t.text))
		return nil
	case t.key == "":
		q.words = append(q.words, newWord(t.text))
		return nil
	case t.not:
		return q.wrong("-%s: cannot be excluded; words and phrases can", t.key)
	case t.text == "":
		return q.wrong("%s: needs a value right after the colon", t.key)
	case given[t.key]:
		return q.wrong("%s: is there twice", t.key)
	}
	given[t.key] = true
	return q.restrict(t)
}

// restrict adds what a key says.
func (q *Query) restrict(t term) (err error) {
	switch t.key {
	case "role":
		if roles[t.text] == nil {
			return q.wrong("role: is user, assistant or tool, not %q", t.text)
		}
		q.role = t.text
	case "tool":
		q.tool = newWord(t.text)
	case "cwd":
		if !path.IsAbs(t.text) {
			return q.wrong("cwd: needs an absolute path, not %q; in a name / is written %%2F", t.text)
		}
		q.cwd = path.Clean(t.text)
	case "after":
		q.after, err = q.date(t)
	case "before":
		q.before, err = q.date(t)
	case "in":
		if t.text != "archive" {
			return q.wrong("in: is archive, not %q", t.text)
		}
		q.archive = true
	}
	return err
}

// dateForms are what after: and before: take, without a zone in UTC.
var dateForms = []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339}

func (q *Query) date(t term) (time.Time, error) {
	for _, form := range dateForms {
		if at, err := time.Parse(form, t.text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, q.wrong("%s: needs a date such as 2026-01-31 or 2026-01-31T15:04, in UTC, not %q", t.key, t.text)
}

// Archive reports whether the query is about the archived sessions, which lie in another storage.
func (q *Query) Archive() bool { return q.archive }

// Key implements Matcher.
func (q *Query) Key() string { return q.text }

// Needle implements Matcher: it holds the header against cwd:.
func (q *Query) Needle(header func() (rawjson.Value, error)) (n *Needle, ok bool, err error) {
	if q.cwd == "" {
		return q.needle, true, nil
	}
	h, err := header()
	if err != nil {
		return nil, false, err
	}
	cwd, _ := h.Member("cwd").Text()
	return q.needle, isBelow(cwd, q.cwd), nil
}

// Checker implements Matcher.
func (q *Query) Checker(rawjson.Value) Checker {
	longest := 0
	for _, w := range append(q.words[:len(q.words):len(q.words)], q.without...) {
		longest = max(longest, len(w.text))
	}
	return &checker{q: q, found: make([]bool, len(q.words)), overlap: longestFold * longest}
}

// chooseNeedle returns the needle of the word that the fewest files should have, nil if no word has one.
func (q *Query) chooseNeedle() *Needle {
	words := q.words
	if q.tool != nil {
		words = append(words[:len(words):len(words)], q.tool)
	}
	var best *Needle
	for _, w := range words {
		if n := newNeedle(w); n != nil && (best == nil || n.score > best.score) {
			best = n
		}
	}
	return best
}

// word is a word or phrase of a query. Without a capital in it, it stands for every text of the same folding.
type word struct {
	text  string // folded unless exact
	exact bool
	// plain finds it in decoded text; nil if text has to be folded for that.
	plain *Needle
}

func newWord(text string) *word {
	isExact := strings.ContainsFunc(text, func(r rune) bool { return unicode.IsUpper(r) || unicode.IsTitle(r) })
	if !isExact {
		text = string(appendFolded(nil, []byte(text)))
	}
	w := &word{text: text, exact: isExact}
	if isExact || !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		w.plain = &Needle{}
		for _, r := range text {
			w.plain.add(r, isExact)
		}
		w.plain.choosePair()
	}
	return w
}

// fold returns the rune that stands for all that differ from r only in case: by Unicode's simple folding, but a
// character of ASCII only ever equals one of ASCII. So a k is not the sign for Kelvin, and words of ASCII can be found
// without decoding what is not ASCII.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	least := r
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		if o >= utf8.RuneSelf && o < least {
			least = o
		}
	}
	return least
}

// appendFolded appends WTF-8 text folded.
func appendFolded(dst, text []byte) []byte {
	for len(text) > 0 {
		r, n := rawjson.DecodeRune(text)
		if r < utf8.RuneSelf {
			dst = append(dst, byte(fold(r)))
		} else {
			dst = rawjson.AppendCodePoint(dst, fold(r))
		}
		text = text[n:]
	}
	return dst
}

// index returns where the word is in decoded text, -1 if it is not. scratch is memory for folding.
func (w *word) index(text []byte, scratch *[]byte) int {
	if w.plain != nil {
		return w.plain.index(text)
	}
	*scratch = appendFolded((*scratch)[:0], text)
	at := bytes.Index(*scratch, []byte(w.text))
	if at < 0 {
		return -1
	}
	plain := 0 // folding can change the length of characters
	for folded := 0; folded < at; {
		r, n := rawjson.DecodeRune(text[plain:])
		plain += n
		folded += len(rawjson.AppendCodePoint(nil, fold(r)))
	}
	return plain
}

// equals reports whether a text is the word as a whole.
func (w *word) equals(text []byte) bool {
	if w.exact {
		return string(text) == w.text
	}
	return string(appendFolded(nil, text)) == w.text
}

// Marks returns what matches the words of the query in a line, to highlight them; nil if it has none.
func (q *Query) Marks() *regexp.Regexp {
	var words []string
	for _, w := range q.words {
		pattern := regexp.QuoteMeta(w.text)
		if !w.exact {
			pattern = "(?i:" + pattern + ")"
		}
		words = append(words, pattern)
	}
	if len(words) == 0 {
		return nil
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // the longest that fits
	return regexp.MustCompile(strings.Join(words, "|"))
}
