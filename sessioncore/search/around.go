package search

import (
	"bytes"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// stringAround returns the body of the string around at, if it is one of at most message.MaxPath bytes. For an
// offset outside strings the result is arbitrary.
func stringAround(b []byte, at int) (body []byte, ok bool) {
	end, hasEnd := quoteBehind(b, at)
	if !hasEnd {
		return nil, false
	}
	least := max(0, end-message.MaxPath-1)
	start, hasStart := quoteBefore(b, at, least)
	if !hasStart {
		return nil, false
	}
	var s rawjson.Scanner
	after, st := s.SkipString(b[:end+1], start+1)
	if st != rawjson.OK || after != end+1 {
		return nil, false
	}
	return b[start+1 : end], true
}

// quoteBehind returns the offset of the first quote from at on that is not escaped, among message.MaxPath bytes.
func quoteBehind(b []byte, at int) (end int, ok bool) {
	most := min(len(b), at+message.MaxPath+1)
	end = at
	for {
		n := bytes.IndexByte(b[end:most], '"')
		if n < 0 {
			return 0, false
		}
		end += n
		if !rawjson.IsEscaped(b[:end]) {
			return end, true
		}
		end++
	}
}

// quoteBefore returns the offset of the last quote before at that is not escaped, from least on.
func quoteBefore(b []byte, at, least int) (start int, ok bool) {
	start = at
	for {
		n := bytes.LastIndexByte(b[least:start], '"')
		if n < 0 {
			return 0, false
		}
		start = least + n
		if !rawjson.IsEscaped(b[:start]) {
			return start, true
		}
	}
}

// listedAround returns the path around at in a list of paths in a string, with at most message.MaxPath bytes on
// each side, or nil. A semicolon must be at one end of it at least.
func listedAround(b []byte, at int) []byte {
	isEnd := func(c byte) bool {
		return c == '"' || c == ';'
	}
	least := max(0, at-message.MaxPath)
	start := at
	for start > least && !isEnd(b[start-1]) {
		start--
	}
	most := min(len(b), at+message.MaxPath)
	end := at
	for end < most && !isEnd(b[end]) {
		end++
	}
	isBehind := start > 0 && b[start-1] == ';'
	isBefore := end < len(b) && b[end] == ';'
	if !isBehind && !isBefore {
		return nil
	}
	return b[start:end]
}

// isPreview reports whether the body of a string in b is the JSON of a call's arguments
// (message.EachNested).
func isPreview(b, body []byte) bool {
	start := cap(b) - cap(body) // after the quote
	before := bytes.TrimRight(b[:start-1], " ")
	before, isValue := bytes.CutSuffix(before, []byte{':'})
	return isValue && bytes.HasSuffix(bytes.TrimRight(before, " "), []byte(`"args"`))
}
