package report

import (
	"context"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/secrets"
)

// secretLine is a line of secrets.jsonl (docs/design.md section 1). It never has anything of the
// secret.
type secretLine struct {
	Line  int64  `json:"line,omitempty"`  // line number, from 1
	Entry string `json:"entry,omitempty"` // name of its file in entries/, without the suffix
	Where string `json:"where,omitempty"` // JSON pointer into the line
	Kind  string `json:"kind"`            // the rule that found it; "more" if some are left out
	Why   string `json:"why,omitempty"`
}

// masked is a file that masks its secrets, and finds them itself.
type masked interface {
	Search(ctx context.Context, scan *secrets.Scan, size int64) error
}

// Secrets returns secrets.jsonl: where keys and tokens are in the text of the session, in file
// order, a JSON object per line. The whole file is read.
func Secrets(ctx context.Context, s *sessioncore.Snapshot) (*document.Document, error) {
	found := secrets.Scan{Pointers: true}
	var err error
	if file, ok := s.File().(masked); ok {
		err = file.Search(ctx, &found, s.Stat().Size)
	} else {
		err = found.Extend(ctx, s.File(), s.Stat().Size)
	}
	more := secrets.IsTooMany(err)
	if err != nil && !more {
		return nil, err
	}
	err = s.Unchanged()
	if err != nil {
		return nil, err
	}
	return document.OfText(s, secretLines(s, &found, more)), nil
}

// secretLines returns secrets.jsonl: a line for each place, and a last one if there are more.
func secretLines(s *sessioncore.Snapshot, found *secrets.Scan, more bool) []byte {
	text := []byte{}
	for _, p := range found.Places {
		line := secretLine{Line: p.Line, Where: p.Where, Kind: p.Kind}
		e := s.EntryAt(p.Offset)
		if e != sessioncore.NoEntry {
			line.Entry = found.Clean(s.Name(e))
		}
		text = rawjson.AppendLine(text, line)
	}
	if more {
		text = rawjson.AppendLine(text, secretLine{Kind: "more", Why: "further places are not listed"})
	}
	return text
}
