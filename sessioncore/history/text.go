package history

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/rawjson"
)

// maxRendering bounds an answer in bytes. 20,000 prompts of 270 bytes take a twelfth of it.
const maxRendering = 64 << 20

// PromptLines collects the JSON lines of an answer.
type PromptLines struct {
	// Hold accounts for the lines; it may be nil.
	Hold *budget.Hold

	text   bytes.Buffer
	isFull bool   // there was no memory for text
	line   []byte // the line being written
}

// Bytes returns the lines. They are valid until the next change.
func (l *PromptLines) Bytes() []byte { return l.text.Bytes() }

// IsEmpty reports whether there is no line.
func (l *PromptLines) IsEmpty() bool { return l.text.Len() == 0 }

// IsFull reports whether there was no memory for a line.
func (l *PromptLines) IsFull() bool { return l.isFull }

// Reset removes all lines.
func (l *PromptLines) Reset() { l.text.Reset() }

// grow makes room for n more bytes of text. The error is budget.ErrNoMemory; then IsFull reports true.
func (l *PromptLines) grow(n int) error {
	need := l.text.Len() + n
	if need <= l.text.Cap() {
		return nil
	}
	// The buffer at most doubles, or grows by n. Both are there while one is copied to the other.
	err := l.Hold.Resize(int64(3*l.text.Cap() + n))
	if err != nil {
		l.isFull = true
		return err
	}
	l.text.Grow(n)
	l.Hold.Set(int64(l.text.Cap()))
	return nil
}

// PromptRow is a prompt; its keys are the columns of the table of omp's client.
type PromptRow struct {
	ID        any  `json:"id"`
	Prompt    any  `json:"prompt"`
	CreatedAt any  `json:"created_at"`
	Cwd       any  `json:"cwd"`
	SessionID *any `json:"session_id,omitempty"` // nil if there is no such column
	UseCount  *any `json:"use_count,omitempty"`  // the same
}

// Put appends a line. Errors wrap ErrTooBig or budget.ErrNoMemory.
func (l *PromptLines) Put(v *PromptRow) error {
	l.line = rawjson.AppendLine(l.line[:0], v)
	return l.end()
}

// end appends the line in l.line to the text. The error wraps ErrTooBig or budget.ErrNoMemory.
func (l *PromptLines) end() error {
	if l.text.Len()+len(l.line) > maxRendering {
		return fmt.Errorf("%w: more than %d bytes", ErrTooBig, maxRendering)
	}
	err := l.grow(len(l.line))
	if err != nil {
		return err
	}
	l.text.Write(l.line)
	return nil
}

// Created converts seconds since the epoch to the form of times in sessions; other values stay.
func Created(v any) any {
	const lastSecond = 253402300799 // of the year 9999
	seconds, ok := v.(int64)
	if !ok || seconds < 0 || seconds > lastSecond {
		return v
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}

// WordsOf splits a text like the client's search: runs of letters and digits, in lower case.
func WordsOf(text string) []string {
	isSeparator := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}
	return strings.FieldsFunc(strings.ToLower(text), isSeparator)
}

// HasWords reports whether a prompt contains all words, ignoring ASCII case like SQLite's LIKE.
func HasWords(prompt []byte, words []string) bool {
	lower := bytes.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, prompt)
	return !slices.ContainsFunc(words, func(word string) bool {
		return !bytes.Contains(lower, []byte(word))
	})
}
