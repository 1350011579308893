package jsonl

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
)

// mendedUnits returns the units of a file whose texts may have control characters.
func mendedUnits(t *testing.T, text string) (units []string, end Position) {
	return mendedUnitsFrom(t, text, Position{})
}

// mendedUnitsFrom returns the units from a position on, and the position for the next load. A unit is its line, offset,
// size, and text or the reason that it has none.
func mendedUnitsFrom(t *testing.T, text string, from Position) (units []string, end Position) {
	emit := func(u *Unit) error {
		content := string(u.Text)
		if u.Kind == SkippedUnit {
			content = u.Reason
		}
		units = append(units, fmt.Sprintf("%d %d+%d %s", u.Line, u.Off, u.Size, content))
		return nil
	}
	records := Records{RawControls: true}
	file := strings.NewReader(text)
	end, err := records.Load(context.Background(), file, from, file.Size(), emit)
	require.NoError(t, err)
	return units, end
}

func TestRawControls(t *testing.T) {
	for text, want := range map[string][]string{
		"{\"a\":\"x\ny\"}\n{\"b\":1}\n":       {`1 0+11 {"a":"x\ny"}`, `3 12+7 {"b":1}`},
		"{\"a\":\"x\r\n\n{}\n{\t}\n\"}\n{}\n": {`1 0+19 {"a":"x\r\n\n{}\n{\t}\n"}`, `6 20+2 {}`},
		"{\"a\":\"\x01\x1b\"}\n":              {`1 0+10 {"a":"\u0001\u001b"}`},
		" {\"a\":\"x\ny\"} more\n{}\n":        {`1 1+11 {"a":"x\ny"}`, `3 18+2 {}`},
		"{\"a\n\":\n1}\n":                     {`1 0+9 {"a\n":` + "\n1}"},
		"{\"a\":\"x\n{\"b\":1}\n":             {"1 0+7 a JSON value that is cut off", `2 8+7 {"b":1}`},
		"{\"a\":\"x\\\ny\"}\n{}\n":            {"1 0+8 not JSON", "2 9+3 not JSON", "3 13+2 {}"},
		"{\"a\":\"x\ny":                       {"1 0+7 a JSON value that is cut off", "2 8+1 not JSON"},
		"\"x\ny\"\n[\"\n\"]\n":                {"1 0+2 not JSON", "2 3+2 not JSON", "3 6+2 not JSON", "4 9+2 not JSON"},
	} {
		got, _ := mendedUnits(t, text)
		require.Equal(t, want, got, "%q", text)
	}
}

// TestRawControlsGrow: a value of several lines counts when its last line is there, from any length on.
func TestRawControlsGrow(t *testing.T) {
	text := "{\"a\":\"x\n\ny\"}\n{\"b\":\"\n\"}\n"
	want, _ := mendedUnits(t, text)
	for at := range text {
		_, end := mendedUnits(t, text[:at])
		rest, _ := mendedUnitsFrom(t, text, end)
		if end.MidLine || len(rest) == 0 {
			continue
		}
		require.Equal(t, want[len(want)-len(rest):], rest, "%d bytes", at)
	}
}

// TestRawControlsLinear: lines that seem to begin a long text are not read once more for each.
func TestRawControlsLinear(t *testing.T) {
	sessiontest.NotUnderRace(t)
	for _, form := range []string{"{\"a\":\"x\n", "{\"a\":\"x\ny\"}\n", "{\",\":\":\n", "{\"a\":\"\\\n", "{\"\n", "{\"a\":[\"\n"} {
		sessiontest.Linear(t, 5000, func(n int) int64 {
			text := strings.Repeat(form, n)
			scanned := rawjson.CountWork()
			mendedUnits(t, text)
			return scanned()
		})
	}
}
