package search

import (
	"bytes"
	"context"
	"path"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file searches long results that another agent keeps in files beside a session
// (docs/format-claude.md). The entry that names the file is the hit.

const (
	outputsDir = "tool-results"
	// maxOutput bounds the searched bytes of such a file.
	maxOutput = 16 << 20
	// maxName bounds its name.
	maxName = 255
)

// outputsOf returns the directory of a session's long results, which its subagents share.
func outputsOf(file string) string {
	session, _, _ := strings.Cut(strings.TrimSuffix(file, sessioncore.FileEnding), "/subagents/")
	return path.Join(session, outputsDir)
}

// inOutputs reports whether one of a session's long results may have a hit. Results that cannot be read have none.
func (w *worker) inOutputs(ctx context.Context, file string, needle *Needle) (bool, error) {
	_, isQuery := w.m.(*Query)
	if !isQuery {
		return false, nil
	}
	if needle != nil {
		needle = needle.anywhere()
	}
	dir := outputsOf(file)
	items, _ := storage.List(w.s.Files, dir)
	for _, item := range items {
		if item.Kind != storage.KindFile {
			continue
		}
		if w.isInOutput(ctx, path.Join(dir, item.Name), needle) {
			return true, ctx.Err()
		}
	}
	return false, ctx.Err()
}

// isInOutput reports whether the needle is in the beginning of a long result.
func (w *worker) isInOutput(ctx context.Context, name string, needle *Needle) bool {
	obj, err := w.s.Files.Open(name)
	if err != nil {
		return false
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return false
	}
	lines, err := w.scanner.find(ctx, obj, min(st.Size, maxOutput), needle)
	return err == nil && len(lines) > 0
}

// orOutputs returns a needle that also finds the entries that name long results, nil for nil, which finds all.
func (n *Needle) orOutputs() *Needle {
	if n == nil {
		return nil
	}
	name := *newNeedle(newWord(outputsDir))
	name.or = n
	name.anyLine = n.anyLine
	return &name
}

// outputName returns the name of the first long result that a text names, and the text behind its directory,
// which is empty if the text does not name that. The name is "" if it is no name of a file there.
func outputName(text rawjson.Value) (string, rawjson.Value) {
	_, rest, _ := bytes.Cut(text, []byte(outputsDir))
	name := bytes.TrimLeft(rest, `/\`)
	isPath := len(name) < len(rest)
	end := bytes.IndexAny(name, `"\</`)
	if !isPath || end <= 0 || end > maxName {
		return "", rest
	}
	file := string(name[:end])
	if storage.CheckName(file) != nil {
		return "", rest
	}
	return file, rest
}

// output returns the long results that an entry with a text names, one after the other, at most maxOutput
// bytes. A name that is repeated at once counts once; a result that cannot be read is left out. file is the
// session's.
func (w *worker) output(file string, text rawjson.Value) (output []byte) {
	dir := outputsOf(file)
	before := ""
	for len(text) > 0 && len(output) < maxOutput {
		name, rest := outputName(text)
		text = rest
		if name != "" && name != before {
			left := int64(maxOutput - len(output))
			more, err := storage.ReadFile(w.s.Files, path.Join(dir, name), left)
			if err == nil {
				output = append(output, more...)
			}
		}
		before = name
	}
	return output
}
