package search

import (
	"bytes"
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file searches long results that another agent keeps in files beside a session
// (docs/format.md, Claude Code). The entry that names the file is the hit.

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

// outputs returns the names of a session's long results that may have a hit.
func (w *worker) outputs(ctx context.Context, file string, needle *Needle) (names []string, err error) {
	if _, ok := w.m.(*Query); !ok {
		return nil, nil
	}
	if needle != nil {
		needle = needle.anywhere()
	}
	dir := outputsOf(file)
	items, err := storage.List(w.s.Files, dir)
	if err != nil {
		return nil, ctx.Err() // there are none, or none can be read
	}
	for _, item := range items {
		if item.Kind != storage.KindFile {
			continue
		}
		obj, err := w.s.Files.Open(path.Join(dir, item.Name))
		if err != nil {
			continue
		}
		var lines []candidate
		st, err := obj.Stat()
		if err == nil {
			lines, err = w.scanner.find(ctx, obj, min(st.Size, maxOutput), needle)
		}
		_ = obj.Close()
		if err == nil && len(lines) > 0 {
			names = append(names, item.Name)
		}
	}
	return names, ctx.Err()
}

// withOutputs adds the lines of entries that name one of some long results.
func withOutputs(
	ctx context.Context, snap *sessioncore.Snapshot, lines []candidate, names []string,
) ([]candidate, error) {
	if len(names) == 0 {
		return lines, nil
	}
	lines = slices.Clip(lines)
	r := sessioncore.NewEntryReader(snap)
	for e := range sessioncore.Entry(snap.Len()) {
		if snap.Role(e) != sessioncore.RoleToolResult {
			continue
		}
		text, err := r.Read(e)
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		if slices.Contains(names, outputName(text)) {
			at, _ := snap.EntryRange(e)
			lines = append(lines, candidate{at.Offset, at.Offset + at.Size})
		}
	}
	slices.SortFunc(lines, func(a, b candidate) int { return cmp.Compare(a.from, b.from) })
	return lines, nil
}

// outputName returns the file name of an entry's long result, or "".
func outputName(text rawjson.Value) string {
	_, rest, _ := bytes.Cut(text, []byte(outputsDir))
	name := bytes.TrimLeft(rest, `/\`)
	end := bytes.IndexAny(name, `"\</`)
	if len(name) == len(rest) || end <= 0 || end > maxName || storage.CheckName(string(name[:end])) != nil {
		return ""
	}
	return string(name[:end])
}

// output returns the long result of an entry, or nil.
func (w *worker) output(file string, text rawjson.Value) []byte {
	name := outputName(text)
	if name == "" {
		return nil
	}
	output, err := storage.ReadFile(w.s.Files, path.Join(outputsOf(file), name), maxOutput)
	if err != nil {
		return nil
	}
	return output
}
