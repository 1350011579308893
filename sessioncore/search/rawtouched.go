package search

import (
	"bytes"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/names"
)

// This file finds paths in the bytes of an agent's file, before the session is converted. A wrong
// match costs a conversion; a path that is missed costs a hit.

// maxEscapes bounds how often a path in a file is escaped: arguments are JSON in strings, and may
// have a program with strings.
const maxEscapes = 3

// breaks separate a path from other text in a string. No path with one of them, or with a backslash,
// is searched for.
const breaks = "\"<>;\r\n"

// inRaw returns a needle in the bytes of each session that may have a call with the file, or that has its
// directory at or below the path. It is nil if any session may. cwd is the session's directory if the bytes
// do not have it, and header reads the header.
func (t *Touched) inRaw(cwd string, header func() (rawjson.Value, error)) (n *Needle) {
	for _, at := range t.paths() {
		own := at.pathInRaw(cwd, header)
		if own == nil {
			return nil
		}
		n = own.orElse(n)
	}
	return n
}

// pathInRaw is inRaw for the path alone, without the earlier ones.
func (t *Touched) pathInRaw(cwd string, header func() (rawjson.Value, error)) *Needle {
	mayBeAnywhere := t.pathsIn(cwd).isEverywhere()
	hasBreak := strings.ContainsAny(t.path, breaks+`\`)
	if mayBeAnywhere || hasBreak || !t.needle.isInRaw() {
		return nil
	}
	n := t.needle.inRaw()
	if n.or == nil { // alternatives are names of records, which have no path around them
		r := &rawPaths{Touched: t, header: header}
		n.accept = r.accept
	}
	return n
}

// rawPaths decides whether the bytes of a session may have a path. It reads the header only for
// paths that are relative.
type rawPaths struct {
	*Touched
	header  func() (rawjson.Value, error)
	session *paths    // nil if it was not read
	decoded [2][]byte // buffers for text that is decoded from the other one
}

// accept reports whether an occurrence of the needle at an offset may be in a path of the file.
func (r *rawPaths) accept(b []byte, at int) bool {
	r.occurs.Store(true)
	if message.MayBePatched(b, at) {
		return true
	}
	text := unquotedAround(b, at)
	for level := range maxEscapes {
		buffer := level % 2 // text is in the other one
		decoded := rawjson.AppendDecoded(r.decoded[buffer][:0], text)
		r.decoded[buffer] = decoded
		isPlain := len(decoded) == len(text)
		if level > 0 && isPlain {
			return false // it is the same text as before
		}
		text = decoded
		if r.isIn(string(text)) {
			return true
		}
	}
	return false
}

// unquotedAround returns the text around an offset up to the next quotes, escaped or not, and at most
// message.MaxPath bytes on each side.
func unquotedAround(b []byte, at int) []byte {
	least := max(0, at-message.MaxPath)
	most := min(len(b), at+message.MaxPath)
	start := least + bytes.LastIndexByte(b[least:at], '"') + 1
	end := bytes.IndexByte(b[at:most], '"')
	if end < 0 {
		return b[start:most]
	}
	return bytes.TrimRight(b[start:at+end], `\`)
}

// isIn reports whether a text is a path of the file, or has it as a line or as a part between breaks,
// perhaps behind a colon or a bullet.
func (r *rawPaths) isIn(text string) bool {
	if r.mayName(text) {
		return true
	}
	isBreak := func(c rune) bool {
		return strings.ContainsRune(breaks, c)
	}
	for part := range strings.FieldsFuncSeq(text, isBreak) {
		part = strings.TrimSpace(part)
		_, behindColon, _ := strings.Cut(part, ": ")
		behindBullet := strings.TrimPrefix(part, "- ")
		if r.mayName(part) || r.mayName(behindColon) || r.mayName(behindBullet) {
			return true
		}
	}
	return false
}

// mayName reports whether a path in a call may be the file's, or below it. It reads the header of the session for
// a relative path alone, and only if that has a part of the file's path or leads up.
func (r *rawPaths) mayName(name string) bool {
	rest := strings.TrimPrefix(name, "file://")
	if len(rest) < len(name) && strings.Contains(rest, "%") {
		return true // escaped as in a URL
	}
	_, _, isAbs := names.AbsPath(strings.TrimPrefix(rest, "@"))
	if isAbs {
		return r.pathsIn("").isNamed(name)
	}
	if name == "" {
		return false
	}
	first := strings.TrimLeft(rest, "@~./\\")
	end := strings.IndexAny(first, `/\:`)
	if end >= 0 {
		first = first[:end]
	}
	goesUp := strings.Contains(rest, "..")
	if !goesUp && !r.hasPart(first) {
		return false
	}
	if r.session == nil {
		h, err := r.header()
		if err != nil {
			return true // the caller reads it again
		}
		r.session = r.pathsOf(h)
	}
	return r.session.isNamed(name)
}

// hasPart reports whether a text is a part of the path.
func (t *Touched) hasPart(text string) bool {
	if t.windows {
		text = strings.ToLower(text)
	}
	return strings.Contains(t.path, text)
}
