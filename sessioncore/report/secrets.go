package report

import (
	"context"
	"encoding/json"
	"errors"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/secrets"
)

// secretPlace is a line of secrets.jsonl (docs/design.md section 1). It never has anything of the secret.
type secretPlace struct {
	Line  int64  `json:"line"`            // line number, from 1
	Entry string `json:"entry,omitempty"` // name of its file in entries/, without the suffix
	Where string `json:"where,omitempty"` // JSON pointer into the line
	Kind  string `json:"kind"`            // the rule that found it
}

// moreSecrets is the last line of secrets.jsonl if a session has more than are listed.
type moreSecrets struct {
	Kind string `json:"kind"`
	Why  string `json:"why"`
}

// secretsKey is the key of the text of secrets.jsonl in Snapshot.Shared.
type secretsKey struct{}

// secretsText is the last text of secrets.jsonl, as a reader looks up the file before it opens it.
type secretsText struct {
	turn chan struct{} // holds a value while one of them searches
	size int64         // of the part of the file that text is about
	text []byte
}

// maxKeptSecrets is the longest text of secrets.jsonl that is kept, in bytes. Nearly all sessions have a few lines.
const maxKeptSecrets = 64 << 10

// Secrets returns secrets.jsonl: where keys and tokens are in the text of the session, in file order, a JSON
// object per line. The whole file is read.
func Secrets(ctx context.Context, s *sessioncore.Snapshot) (*document.Document, error) {
	last := s.Shared(secretsKey{}, func() any { return &secretsText{turn: make(chan struct{}, 1)} }).(*secretsText)
	select {
	case last.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-last.turn }()
	if last.text != nil && last.size == s.Stat().Size {
		return document.OfText(s, last.text), nil
	}
	found := secrets.Scan{Pointers: true}
	err := found.Extend(ctx, s.File(), s.Stat().Size)
	more := errors.Is(err, secrets.ErrTooMany)
	if err != nil && !more {
		return nil, err
	}
	if err := s.Unchanged(); err != nil {
		return nil, err
	}
	text := secretLines(s, &found, more)
	if last.text = nil; len(text) <= maxKeptSecrets {
		last.text, last.size = text, s.Stat().Size
	}
	return document.OfText(s, text), nil
}

func secretLines(s *sessioncore.Snapshot, found *secrets.Scan, more bool) []byte {
	text := []byte{}
	add := func(line any) {
		b, _ := json.Marshal(line) // numbers and texts, which cannot fail
		text = append(append(text, b...), '\n')
	}
	for _, p := range found.Places {
		line := secretPlace{Line: p.Line, Where: p.Where, Kind: p.Kind}
		if e := s.EntryAt(p.Offset); e != sessioncore.NoEntry {
			line.Entry = found.Clean(s.Name(e))
		}
		add(line)
	}
	if more {
		add(moreSecrets{"more", "further places are not listed"})
	}
	return text
}
