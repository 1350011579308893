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

// inOutputs reports whether one of a session's long results may have a hit.
func (w *worker) inOutputs(ctx context.Context, file string, needle *Needle) (found bool, err error) {
	_, ok := w.m.(*Query)
	if !ok {
		return false, nil
	}
	if needle != nil {
		needle = needle.anywhere()
	}
	dir := outputsOf(file)
	items, _ := storage.List(w.s.Files, dir) // after an error there are none, or none can be read
	for _, item := range items {
		if item.Kind != storage.KindFile || found {
			continue
		}
		obj, err := w.s.Files.Open(path.Join(dir, item.Name))
		if err != nil {
			continue
		}
		st, err := obj.Stat()
		if err == nil {
			lines, err := w.scanner.find(ctx, obj, min(st.Size, maxOutput), needle)
			found = err == nil && len(lines) > 0
		}
		_ = obj.Close()
	}
	return found, ctx.Err()
}

// orOutputs returns a needle that also finds the entries that name long results.
func (n *Needle) orOutputs() *Needle {
	if n == nil {
		return nil
	}
	name := *newNeedle(newWord(outputsDir))
	name.or = n
	name.anyLine = n.anyLine
	return &name
}

// outputName returns the file name of an entry's first long result, or "", and the text behind it.
func outputName(text rawjson.Value) (string, rawjson.Value) {
	_, rest, _ := bytes.Cut(text, []byte(outputsDir))
	name := bytes.TrimLeft(rest, `/\`)
	end := bytes.IndexAny(name, `"\</`)
	if len(name) == len(rest) || end <= 0 || end > maxName || storage.CheckName(string(name[:end])) != nil {
		return "", rest
	}
	return string(name[:end]), rest
}

// output returns the long results of an entry.
func (w *worker) output(file string, text rawjson.Value) (output []byte) {
	name := ""
	for before := ""; len(text) > 0 && len(output) < maxOutput; before = name {
		name, text = outputName(text)
		if name == "" || name == before {
			continue
		}
		more, err := storage.ReadFile(w.s.Files, path.Join(outputsOf(file), name), int64(maxOutput-len(output)))
		if err == nil {
			output = append(output, more...)
		}
	}
	return output
}
