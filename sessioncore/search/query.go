package search

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// ErrQuery means that a text is not a query. Its message has the reason.
var ErrQuery = errors.New("not a search query")

// maxQuery bounds a query, in bytes. A name in the mount has 255; the command line takes more.
const maxQuery = 4096

// Query decides which entries are hits (docs/design.md section 5, search/). It is an immutable
// Matcher.
type Query struct {
	text    string
	parser  Parser
	words   []*word // all are in the entry's visible text
	without []*word // none is in it
	role    string  // "" for any
	tool    *word   // nil for any
	model   *word   // is in PROVIDER/NAME of its model; nil for any
	title   *word   // is in the session's title, else in its first prompt; nil for any
	agent   string  // "" for any
	cwd     string  // "" for any
	after   time.Time
	before  time.Time // zero for any
	// relative says that after or before depends on the day on which the query was parsed.
	relative bool
	archive  bool
	needle   *Needle
}

// roles are the values of role:, and the matching roles of messages in camelCase.
var roles = map[string][]string{"user": {"user"}, "assistant": {"assistant"}, "tool": {"toolResult", "tool"}}

// ParseQuery parses a query without percent-encoding. The error wraps ErrQuery.
func ParseQuery(text string) (*Query, error) { return Parser{}.Query(text) }

// Parser parses queries. The zero value knows no relative directories.
type Parser struct {
	Dir  string // the directory in which relative paths begin; "" for none
	Home string // the home directory, which ~ stands for; "" for none
}

// Query parses a query without percent-encoding. The error wraps ErrQuery.
func (p Parser) Query(text string) (*Query, error) {
	q := &Query{text: text, parser: p}
	return q.parse(text)
}

// Regexp parses a query, which may be empty, and a regular expression in the syntax of Go that
// a single text of an entry must match. ^ and $ match the ends of lines.
func (p Parser) Regexp(pattern, text string) (*Query, error) {
	q := &Query{text: text + "\x00" + pattern, parser: p}
	_, err := regexp.Compile(pattern)
	if err != nil {
		return nil, q.wrong("%s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	pattern = "(?m)" + pattern
	q.words = append(q.words, &word{
		text:      pattern,
		pattern:   pattern,
		regex:     regexp.MustCompile(pattern),
		exact:     true,
		isPattern: true,
	})
	return q.parse(text)
}

// parse parses the text of the query. Regexp has added the word of its regular expression before.
func (q *Query) parse(text string) (*Query, error) {
	if len(text) > maxQuery {
		return nil, q.wrong("it has more than %d bytes", maxQuery)
	}
	if !utf8.ValidString(text) {
		return nil, q.wrong("it is not UTF-8")
	}
	used := map[string]bool{} // the keys so far
	err := q.addTerms(strings.TrimSpace(text), used)
	if err != nil {
		return nil, err
	}
	if len(q.words) == 0 && len(used) == 0 {
		if len(q.without) > 0 {
			return nil, q.wrong("it only says what must not be there; add a word that must")
		}
		return nil, q.wrong("it is empty")
	}
	hasSpan := !q.after.IsZero() && !q.before.IsZero()
	if hasSpan && !q.after.Before(q.before) {
		return nil, q.wrong("no time is after: and before: these dates")
	}
	q.needle = q.chooseNeedle()
	return q, nil
}

// addTerms adds the terms of a text, and their keys to used.
func (q *Query) addTerms(text string, used map[string]bool) error {
	isFirst := true
	for text != "" {
		isPhrase := text[0] == '"'
		t, behind, err := q.cut(text)
		if err != nil {
			return err
		}
		isWord := t.key == "" && !t.not && !isPhrase
		if isWord && !isFirst {
			err = q.checkOperator(t.text, behind)
			if err != nil {
				return err
			}
		}
		err = q.add(t, used)
		if err != nil {
			return err
		}
		isFirst = false
		text = strings.TrimSpace(behind)
	}
	return nil
}

// wrong returns an error that wraps ErrQuery.
func (q *Query) wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrQuery, fmt.Errorf(format, args...))
}

// checkOperator refuses a word that other programs have for the relation of those around it. rest is the text
// behind it: the last word relates nothing.
func (q *Query) checkOperator(word, rest string) error {
	if strings.TrimSpace(rest) == "" {
		return nil
	}
	const asWord = `; to find it as a word, put it into quotes: "%[1]s"`
	switch word {
	case "OR":
		return q.wrong("%q does not join words: search for each of them by itself, or type "+
			"sessionfs search -E '(?i)this|that'"+asWord, word)
	case "AND":
		return q.wrong("%q is not needed: all words must be there; leave it out"+asWord, word)
	case "NOT":
		return q.wrong("%q does not exclude a word: write -word"+asWord, word)
	}
	return nil
}

// term is a part of a query: text, or key:text.
type term struct {
	not  bool
	key  string
	text string
}

// keys are the words with a meaning before a colon. Other words may have colons.
var keys = []string{"role", "tool", "model", "title", "cwd", "agent", "after", "before", "in"}

// meantKey returns the key that a word before a colon and a value is or misspells, or "" for text.
// Misspellings of in: are common in text, as in id:7, so that only archive behind it makes a key of one.
func meantKey(word, value string) string {
	for _, key := range keys {
		if word == key {
			return key
		}
		isLikely := key != "in" || value == "archive"
		if isLikely && isSlip(word, key) {
			return key
		}
	}
	return ""
}

// isSlip reports whether two words differ in one letter, or in two neighbours that changed places: rol and
// role, rloe and role. It compares the parts between the common beginning and the common end.
func isSlip(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a = a[1:]
		b = b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a = a[:len(a)-1]
		b = b[:len(b)-1]
	}
	if max(len(a), len(b)) == 1 {
		return true
	}
	if len(a) != 2 || len(b) != 2 {
		return false
	}
	return a[0] == b[1] && a[1] == b[0]
}

// cut cuts the first term off the text of a query, which is not empty and does not begin with a blank. rest may
// begin with one. A - before a blank, or at the end, is a word.
func (q *Query) cut(text string) (t term, rest string, err error) {
	if len(text) > 1 && text[0] == '-' {
		r, _ := utf8.DecodeRuneInString(text[1:])
		if !unicode.IsSpace(r) {
			t.not = true
			text = text[1:]
		}
	}
	end := strings.IndexFunc(text, unicode.IsSpace)
	if end < 0 {
		end = len(text)
	}
	word, value, hasColon := strings.Cut(text[:end], ":")
	if hasColon && text[0] != '"' {
		t.key = meantKey(word, value)
	}
	if t.key != "" {
		if t.key != word {
			const why = "%q is not a key; these are: %s:. Put a word into quotes that is to be found as it is"
			return t, "", q.wrong(why, word+":", strings.Join(keys, ": "))
		}
		text = value + text[end:]
		end = len(value)
	}
	isPhrase := strings.HasPrefix(text, `"`)
	if !isPhrase {
		t.text = text[:end]
		return t, text[end:], nil
	}
	t.text, rest, err = q.cutPhrase(text)
	if err != nil {
		return t, rest, err
	}
	if t.text == "" && t.key == "" {
		return t, rest, q.wrong("a phrase is empty")
	}
	return t, rest, nil
}

// cutPhrase cuts a phrase off a text that begins with its quote.
func (q *Query) cutPhrase(text string) (phrase, rest string, err error) {
	phrase, rest, isClosed := strings.Cut(text[1:], `"`)
	if !isClosed {
		return "", "", q.wrong(`a phrase begins with a " and does not end with one`)
	}
	behind, _ := utf8.DecodeRuneInString(rest)
	if rest != "" && !unicode.IsSpace(behind) {
		return "", "", q.wrong(`what comes after a phrase needs a blank before it`)
	}
	return phrase, rest, nil
}

// add adds a term; used are the keys before it.
func (q *Query) add(t term, used map[string]bool) error {
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
	case used[t.key]:
		return q.wrong("%s: is there twice", t.key)
	}
	used[t.key] = true
	return q.restrict(t)
}

// restrict adds the condition of a key, with a value that is not empty. The error wraps ErrQuery.
func (q *Query) restrict(t term) (err error) {
	switch t.key {
	case "role":
		if roles[t.text] == nil {
			return q.wrong("role: is user, assistant or tool, not %q", t.text)
		}
		q.role = t.text
	case "tool":
		q.tool = newWord(t.text)
	case "model":
		q.model = newWord(t.text)
	case "title":
		q.title = newWord(t.text)
	case "agent":
		q.agent = t.text
	case "cwd":
		q.cwd = foldedPath(q.parser.absolute(t.text))
		if q.cwd == "" {
			return q.wrong("cwd: needs an absolute path, not %q; in a name / is written %%2F", t.text)
		}
	case "after":
		q.after, err = q.beginning(t)
	case "before":
		q.before, err = q.beginning(t)
	case "in":
		if t.text != "archive" {
			return q.wrong("in: is archive, not %q", t.text)
		}
		q.archive = true
	}
	return err
}

// absolute returns a path below the home directory if it begins with ~, below the directory of the parser if it
// is relative, and else as it is. It is relative still where the parser knows no directory.
func (p Parser) absolute(path string) string {
	_, _, isAbs := names.AbsPath(path)
	isInHome := path == "~" || strings.HasPrefix(path, "~/")
	switch {
	case isAbs:
		return path
	case isInHome && p.Home != "":
		return p.Home + path[1:]
	case p.Dir != "":
		return filepath.Join(p.Dir, path)
	}
	return path
}

// beginning returns the beginning of the day, week, month or moment that a term names, in local
// time. It notes whether that is relative.
func (q *Query) beginning(t term) (time.Time, error) {
	s, err := ParseSpan(t.text, time.Now())
	if err != nil {
		return time.Time{}, q.wrong("%s: needs %w", t.key, err)
	}
	if s.Relative {
		q.relative = true
	}
	return s.Begin, nil
}

// Archive reports whether the query is for archived sessions, which are in another storage.
func (q *Query) Archive() bool { return q.archive }

// isOver reports whether a file was last modified before after:, by more than clocks may differ, so that it can
// have no hits.
func (q *Query) isOver(modified time.Time) bool {
	return modified.Add(storage.ClockMargin).Before(q.after)
}

// Key implements Matcher.
func (q *Query) Key() string { return q.text }

// Agent returns the agent of the query's sessions, "" for any.
func (q *Query) Agent() string { return q.agent }

// Needle implements Matcher. It checks the session against agent: and cwd:.
func (q *Query) Needle(agent string, header func() (rawjson.Value, error)) (n *Needle, ok bool, err error) {
	if q.agent != "" && q.agent != agent {
		return nil, false, nil
	}
	if q.cwd == "" {
		return q.needle, true, nil
	}
	h, err := header()
	if err != nil {
		return nil, false, err
	}
	cwd, _ := h.Member("cwd").Text()
	return q.needle, isBelow(foldedPath(cwd), q.cwd), nil
}

// Checker implements Matcher. It checks the session against title:.
func (q *Query) Checker(_ rawjson.Value, title string) Checker {
	if q.title != nil && !q.title.isIn([]byte(title)) {
		return nil
	}
	return &checker{
		q:       q,
		found:   make([]bool, len(q.words)),
		overlap: q.overlap(),
	}
}

// overlap returns the overlap of a checker's windows in bytes: the longest match of a word, -1 for a regular
// expression, which may match any length.
func (q *Query) overlap() int {
	overlap := 0
	for _, w := range slices.Concat(q.words, q.without) {
		if w.isPattern {
			return -1
		}
		overlap = max(overlap, longestFold*len(w.text))
	}
	return overlap
}

// chooseNeedle returns the needle of the rarest word or tool; if none has a needle, the title's, which may be on
// any line; or nil.
func (q *Query) chooseNeedle() *Needle {
	words := q.words
	if q.tool != nil {
		words = append(slices.Clip(words), q.tool) // Clip keeps it out of q.words
	}
	var best *Needle
	for _, w := range words {
		best = better(best, w.needle())
	}
	if best != nil || q.title == nil {
		return best
	}
	best = newNeedle(q.title)
	if best != nil {
		best.anyLine = true
	}
	return best
}

// Marks returns a pattern of the query's words, to highlight them in a line, or nil.
func (q *Query) Marks() *regexp.Regexp {
	var words []string
	for _, w := range q.words {
		words = append(words, "(?:"+w.pattern+")")
	}
	if len(words) == 0 {
		return nil
	}
	marks := regexp.MustCompile(strings.Join(words, "|"))
	marks.Longest()
	return marks
}
