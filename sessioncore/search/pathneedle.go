package search

import (
	"bytes"

	"sessionfs/sessioncore/internal/rawjson"
)

// maxPath is how many bytes of the file a path among the arguments of a call has at most. No system opens longer ones, and
// whether a string is one can be told from the bytes around any part of it.
const maxPath = 4096

// pathNeedle is a Needle of the last name in a path. It accepts only strings that name the path, or something below it: a
// name that many sessions mention is in few paths, and a session without one need not be indexed.
type pathNeedle struct{ *Needle }

func newPathNeedle(base string) *pathNeedle {
	n := newNeedle(&word{text: base, exact: true})
	if n == nil {
		return nil
	}
	return &pathNeedle{n}
}

// accepting returns a Needle for strings of which touches, given what they say, returns true. It is for one goroutine.
func (p *pathNeedle) accepting(touches func(string) bool) *Needle {
	n := *p.Needle
	var decoded []byte
	n.accept = func(b []byte, at int) bool {
		body, ok := stringAround(b, at)
		if !ok {
			return false
		}
		decoded = rawjson.AppendDecoded(decoded[:0], body)
		return touches(string(decoded))
	}
	return &n
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
		if end += n; !rawjson.IsEscaped(b[:end]) {
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
		if start = least + n; !rawjson.IsEscaped(b[:start]) {
			break
		}
	}
	var s rawjson.Scanner
	if after, st := s.SkipString(b[:end+1], start+1); st != rawjson.OK || after != end+1 {
		return nil, false
	}
	return b[start+1 : end], true
}
