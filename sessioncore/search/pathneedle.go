package search

import (
	"bytes"
	"unicode/utf8"

	"sessionfs/sessioncore/internal/rawjson"
)

// maxPath is how many bytes of the file a path among the arguments of a call has at most. No system opens longer ones, and
// whether a string is one can be told from the bytes around any part of it.
const maxPath = 4096

// pathNeedle is a Needle of the last name in a path. It accepts only strings that name the path, or something below it: a
// name that many sessions mention is in few paths, and a session without one need not be indexed.
type pathNeedle struct {
	*Needle
	isWhole bool // the needle is all of the name, and begins where the name does
}

func newPathNeedle(base string) *pathNeedle {
	n := NeedleFor(base)
	if n == nil {
		return nil
	}
	return &pathNeedle{n, len(n.runes) == utf8.RuneCountInString(base) && base[0] != '"' && base[0] != '\\'}
}

// accepting returns a Needle for strings of which touches, given what they say, returns true. It is for one goroutine.
func (p *pathNeedle) accepting(touches func(string) bool) *Needle {
	n := *p.Needle
	var decoded []byte
	n.accept = func(b []byte, from, to int) bool {
		if p.isWhole && to > 0 && !(beginsName(b, from) && endsName(b, to)) {
			return false
		}
		body, ok := stringAround(b, from)
		if !ok {
			return false
		}
		decoded = rawjson.AppendDecoded(decoded[:0], body)
		return touches(string(decoded))
	}
	return &n
}

// beginsName reports whether what is before i separates names, or begins a string. A slash can be escaped.
func beginsName(b []byte, i int) bool {
	if i == 0 || b[i-1] == '"' || b[i-1] == '/' {
		return true
	}
	return i >= 6 && b[i-6] == '\\' && b[i-5] == 'u'
}

// endsName reports whether what is at i can separate names, or end a string. A slash or colon can be escaped.
func endsName(b []byte, i int) bool {
	if i == len(b) {
		return true
	}
	switch b[i] {
	case '"', '/', ':':
		return true
	case '\\':
		return i+1 == len(b) || b[i+1] == '/' || b[i+1] == 'u'
	}
	return false
}

// stringAround returns the body of the string of at most maxPath bytes that at is in. ok is false if there is none. Of a
// part of the text that is in no string it can return anything.
func stringAround(b []byte, at int) (body []byte, ok bool) {
	end := at
	for {
		n := bytes.IndexByte(b[end:min(len(b), at+maxPath+1)], '"')
		if n < 0 {
			return nil, false
		}
		if end += n; !isEscaped(b[:end]) {
			break
		}
		end++
	}
	start := at
	for least := max(0, end-maxPath-1); ; {
		n := bytes.LastIndexByte(b[least:start], '"')
		if n < 0 {
			return nil, false
		}
		if start = least + n; !isEscaped(b[:start]) {
			break
		}
	}
	var s rawjson.Scanner
	if after, st := s.SkipString(b[:end+1], start+1); st != rawjson.OK || after != end+1 {
		return nil, false
	}
	return b[start+1 : end], true
}

// isEscaped reports whether what follows text is escaped by its last byte.
func isEscaped(text []byte) bool {
	n := len(text)
	for n > 0 && text[n-1] == '\\' {
		n--
	}
	return (len(text)-n)%2 == 1
}
