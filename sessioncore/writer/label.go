package writer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// SetLabel sets the label of the entry id, or removes it if label is empty, by appending one entry,
// which becomes the leaf as in the client. An unchanged label writes nothing. id and label are
// WTF-8. ErrNotFound: no entry has that id; then the label can only be removed.
func (w *Writer) SetLabel(ctx context.Context, s *sessioncore.Session, id, label string) error {
	sets := func(snap *sessioncore.Snapshot) (bool, error) {
		return changesLabel(snap, id, label)
	}
	return w.addLineIf(ctx, s, sets, func(b *batch) []byte {
		return b.labelLine(b.leaf, b.newID(), id, label)
	})
}

// changesLabel reports whether id has a label other than label, which may also be cut as the file labels
// shows it. The error wraps ErrNotFound if no entry has the id, unless its old label is removed.
func changesLabel(s *sessioncore.Snapshot, id, label string) (bool, error) {
	shown := s.LabelOf(id)
	old, err := s.WholeLabelOf(id)
	if err != nil {
		return false, err
	}
	isSame := label == old || label == shown
	if isSame && old != "" {
		return false, nil
	}
	_, err = s.Verify(id)
	clears := old != "" && label == ""
	if clears && errors.Is(err, sessioncore.ErrNotFound) {
		return true, nil // a label may have outlived its entry
	}
	if err != nil {
		return false, err
	}
	return old != label, nil
}

// labelLine returns a label entry as the client writes it; an empty label clears.
func (b *batch) labelLine(parent *string, id, target, label string) []byte {
	d := b.dialect
	line := b.entryPrefix(sessioncore.TypeLabel, id, parent)
	line = append(line, `,"`+d.TargetKey+`":`...)
	line = rawjson.AppendQuoted(line, target)
	switch {
	case label != "":
		line = append(line, `,"label":`...)
		line = rawjson.AppendQuoted(line, label)
	case d.NullLabel:
		line = append(line, `,"label":null`...)
	}
	return append(line, "}\n"...)
}

// ParseLabelLine parses a line for the file labels: an id, the first tab or else the first blank,
// and a label, with the escapes of that file.
func ParseLabelLine(line string) (id, label string, err error) {
	id, label, found := strings.Cut(line, "\t")
	if !found {
		id, label, _ = strings.Cut(line, " ")
	}
	id, err = unescapeLabelField(id)
	if err != nil {
		return "", "", err
	}
	label, err = unescapeLabelField(label)
	return id, label, err
}

// unescapeLabelField undoes the escapes of one field. Two surrogates become one character, so that
// each text has one form.
func unescapeLabelField(field string) (string, error) {
	_, rest, found := strings.Cut(field, `\`)
	for found {
		n := labelEscape(rest)
		if n == 0 {
			const want = `one of \\ \t \n \r, or \uXXXX for a control character or a surrogate`
			return "", &FieldError{Want: want, Got: fmt.Sprintf("%.6q", `\`+rest)}
		}
		_, rest, found = strings.Cut(rest[n:], `\`)
	}
	return string(rawjson.AppendDecoded(nil, []byte(field))), nil
}

// labelEscape returns the length of an escape, the backslash aside: of a backslash, a tab or a line
// break, or of a surrogate or a control character as uXXXX; 0 for anything else.
func labelEscape(text string) int {
	switch {
	case text == "":
		return 0
	case strings.IndexByte(`\tnr`, text[0]) >= 0:
		return 1
	}
	escape := `\` + text[:min(len(text), len(`uXXXX`))]
	n, st := rawjson.EscapeLen([]byte(escape))
	if st != rawjson.OK || n != len(`\uXXXX`) {
		return 0
	}
	unit := rawjson.Hex4([]byte(text[1:5]))
	if names.IsControl(unit) || utf16.IsSurrogate(unit) {
		return len(`uXXXX`)
	}
	return 0
}
