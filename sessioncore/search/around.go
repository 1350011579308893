package search

import (
	"bytes"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// stringAround returns the body of the string of at most message.MaxPath bytes around at, if any.
// For a part of the text outside strings the result is arbitrary.
func stringAround(b []byte, at int) (body []byte, ok bool) {
	end := at
	for {
		n := bytes.IndexByte(b[end:min(len(b), at+message.MaxPath+1)], '"')
		if n < 0 {
			return nil, false
		}
		end += n
		if !rawjson.IsEscaped(b[:end]) {
			break
		}
		end++
	}
	start := at
	least := max(0, end-message.MaxPath-1)
	for {
		n := bytes.LastIndexByte(b[least:start], '"')
		if n < 0 {
			return nil, false
		}
		start = least + n
		if !rawjson.IsEscaped(b[:start]) {
			break
		}
	}
	var s rawjson.Scanner
	after, st := s.SkipString(b[:end+1], start+1)
	if st != rawjson.OK || after != end+1 {
		return nil, false
	}
	return b[start+1 : end], true
}

// listedAround returns the part around at of a list of paths in a string, up to a semicolon at one
// end at least and at most message.MaxPath bytes on each side, or nil.
func listedAround(b []byte, at int) []byte {
	start := at
	end := at
	for least := max(0, at-message.MaxPath); start > least && b[start-1] != '"' && b[start-1] != ';'; {
		start--
	}
	for most := min(len(b), at+message.MaxPath); end < most && b[end] != '"' && b[end] != ';'; {
		end++
	}
	if start > 0 && b[start-1] == ';' || end < len(b) && b[end] == ';' {
		return b[start:end]
	}
	return nil
}

// isPreview reports whether the body of a string in b is the JSON of a call's arguments
// (message.EachNested).
func isPreview(b, body []byte) bool {
	start := cap(b) - cap(body) // after the quote
	before := bytes.TrimRight(b[:start-1], " ")
	before, isValue := bytes.CutSuffix(before, []byte{':'})
	return isValue && bytes.HasSuffix(bytes.TrimRight(before, " "), []byte(`"args"`))
}
