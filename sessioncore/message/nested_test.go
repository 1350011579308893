package message

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// TestEachNested: the calls that results of pi's and omp's tools record.
func TestEachNested(t *testing.T) {
	sessiontest.Page(t, "testdata/nested.txt", func(t *testing.T, name, text, want string) {
		require.True(t, rawjson.IsValidObject(rawjson.Value(strings.TrimSpace(text))), name)
		m := Read(rawjson.Value(text))
		found := ""
		EachNested(&m, func(call *Members) {
			line := fmt.Sprintf("%s %s", call[Name], call[Arguments])
			if call[IsError].Truthy() {
				line += " failed"
			}
			if call[Truncated].Truthy() {
				line += " cut"
			}
			line += " " + string(call[ErrorMessage])
			found += strings.TrimSuffix(line, " ") + "\n"
		})
		require.Equal(t, want, found, name)
	})
}

// FuzzEachNested: whatever a result records, the calls have valid arguments, which are together no longer
// than the result, but for bytes that are no UTF-8: each becomes the three of U+FFFD.
func FuzzEachNested(f *testing.F) {
	f.Add(`{"nestedCalls":{"calls":[{"id":"1","name":"write"}]},"details":{"calls":[{"id":"1","args":"{\"path\":\"a\",\"con"}]}}`)
	f.Add(`{"nestedCalls":{"calls":[{"id":"1"},{"id":"1"},{"id":"1"}]},"details":{"calls":[{"id":"1","args":"{\"path\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}"}]}}`)
	f.Add(`{"details":{"statusEvents":[{"op":"read","path":"a","hasError":true,"error":7},7],"cells":[{"statusEvents":[{"op":"x"}]}]}}`)
	f.Add(`{"nestedCalls":{"calls":[{"id":"1"}]},"details":{"calls":[{"id":"1","args":"{\"path\":\"` + strings.Repeat("\xac", 200) + `\"}"}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if !rawjson.IsValidObject(rawjson.Value(text)) {
			t.Skip()
		}
		m := Read(rawjson.Value(text))
		all := 0
		EachNested(&m, func(call *Members) {
			arguments := call[Arguments]
			all += len(arguments)
			if arguments.IsObject() {
				require.True(t, rawjson.IsValidObject(arguments), "%s", arguments)
			}
		})
		wellFormed := string([]rune(text))
		require.LessOrEqual(t, all, len(wellFormed))
	})
}
