package jsonl

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
)

// TestLongRecordIsReleased: after a load, no memory that is kept for the next one refers to a long record.
func TestLongRecordIsReleased(t *testing.T) {
	text := strings.Repeat("x", 2*KeepBuffer)
	for _, record := range []string{`{"outer":%q}`, `{"inner":{"text":%q}}`} {
		data := fmt.Appendf(nil, "{}\n"+record+"\n{}\n", text)
		var long weak.Pointer[byte]
		emit := func(u *Unit) error {
			if u.Size > KeepBuffer {
				long = weak.Make(&u.Text[0])
			}
			return nil
		}
		records := Records{Inner: "inner"}
		file := bytes.NewReader(data)
		_, err := records.Load(t.Context(), file, Position{}, file.Size(), emit)
		require.NoError(t, err)
		require.NotZero(t, long)
		runtime.GC()
		require.Nil(t, long.Value(), record)
	}
}
