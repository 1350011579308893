package forks

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
)

// textSource is the snapshot of a document that is a text.
type textSource struct{}

func (textSource) ReadAt([]byte, int64) (int, error)                                     { panic("a text is no range") }
func (textSource) Retain()                                                               {}
func (textSource) Release()                                                              {}
func (textSource) Changed() (now storage.Token, changed bool, err error)                 { return }
func (textSource) CheckRange([]byte, int64, storage.Token, *document.CheckedEntry) error { return nil }

// contextText returns a context with messages.
func contextText(messages []string, settings string) *document.Document {
	return document.OfText(textSource{}, []byte(`{"messages":[`+strings.Join(messages, ",")+`],`+settings+"}\n"))
}

// TestCompareMessages: contexts are the same where their messages are, but for the members that a client records
// later, and for messages behind those that are wanted.
func TestCompareMessages(t *testing.T) {
	const (
		prompt = `{"role":"user","content":"Go, \"usage\":1"}`
		answer = `{"role":"assistant","content":[{"type":"toolCall","arguments":{"a":1,"usage":{"n":1}}}],"usage":{"n":1},"stopReason":"stop"}`
	)
	counted := strings.Replace(answer, `,"usage":{"n":1},"stop`, `,"usage":{"n":22,"m":[1,"}"]},"stop`, 1)
	open := strings.Replace(answer, `,"usage":{"n":1},"stopReason":"stop"`, "", 1)
	called := strings.Replace(answer, `{"n":1}}}`, `{"n":2}}}`, 1)
	ending := func(member string) string { return `{"role":"assistant","content":[],` + member + "}" }
	for name, c := range map[string]struct {
		want, got []string
		differs   int // the number of the message that differs, 0 for none
	}{
		"same":             {want: []string{prompt, answer}, got: []string{prompt, answer}},
		"empty":            {},
		"more":             {want: []string{prompt}, got: []string{prompt, answer}},
		"less":             {want: []string{prompt, answer}, got: []string{prompt}, differs: 1},
		"nothing":          {want: []string{prompt}, differs: 1},
		"from nothing":     {got: []string{prompt}},
		"usage":            {want: []string{answer, prompt, answer}, got: []string{counted, prompt, counted}},
		"less members":     {want: []string{answer, prompt}, got: []string{open, prompt}},
		"more members":     {want: []string{open, prompt}, got: []string{counted, prompt}},
		"last":             {want: []string{prompt, open}, got: []string{prompt, counted}},
		"usage and more":   {want: []string{ending(`"usage":{"n":1}`)}, got: []string{ending(`"usage":{"n":1,"m":2}`)}},
		"a usage's number": {want: []string{ending(`"usage":1`)}, got: []string{ending(`"usage":12`)}},
		"an error":         {want: []string{ending(`"errorMessage":null`)}, got: []string{ending(`"errorMessage":"x"`)}},
		"another reason":   {want: []string{ending(`"stopReason":"a, b"`)}, got: []string{ending(`"stopReason":"a} b"`)}},
		"another number":   {want: []string{ending(`"timestamp":1`)}, got: []string{ending(`"timestamp":12`)}, differs: 1},
		"usage in a call":  {want: []string{prompt, answer}, got: []string{prompt, called}, differs: 2},
		"behind the usage": {want: []string{answer, prompt}, got: []string{counted, open}, differs: 2},
		"text":             {want: []string{answer, prompt}, got: []string{counted, strings.Replace(prompt, "Go", "No", 1)}, differs: 2},
		"length":           {want: []string{prompt}, got: []string{strings.Replace(prompt, "1", "12", 1)}, differs: 1},
	} {
		for _, settings := range []string{`"model":{"a":1,"b":2}`, `"model":{"a":1,"b":3}`} {
			err := compareMessages(contextText(c.want, `"model":{"a":1,"b":2}`), contextText(c.got, settings))
			if c.differs == 0 {
				require.NoError(t, err, name)
				continue
			}
			require.ErrorContains(t, err, fmt.Sprintf("differ in message %d of", c.differs), name)
		}
	}
}

// TestCompareLong compares long contexts with differences at any place with what a parser finds.
func TestCompareLong(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	found := map[bool]int{}
	for range 200 {
		var want []string
		for range 1 + rng.IntN(12) {
			want = append(want, randomMessage(rng))
		}
		got := slices.Clone(want)
		for range rng.IntN(5) {
			at := rng.IntN(len(got))
			got[at] = alter(rng, got[at])
		}
		if rng.IntN(3) == 0 {
			got = append(got, randomMessage(rng))
		}
		differs := firstOther(t, want, got)
		err := compareMessages(contextText(want, `"model":"a"`), contextText(got, `"model":"b"`))
		found[differs > 0]++
		if differs == 0 {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, fmt.Sprintf("differ in message %d of", differs))
	}
	require.Greater(t, min(found[true], found[false]), 40)
}

// randomMessage returns a message with a text that may be longer than a chunk.
func randomMessage(rng *rand.Rand) string {
	pieces := []string{`\\`, `\"`, `\u00e9`, `é`, `,`, `}`, `],`, `{`, "word ", `,\"usage\":{`}
	var text strings.Builder
	for range rng.IntN(1 << rng.IntN(16)) {
		text.WriteString(pieces[rng.IntN(len(pieces))])
	}
	message := fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"%s"},{"n":%d}]`, text.String(), rng.IntN(9))
	if rng.IntN(2) == 0 {
		message += fmt.Sprintf(`,"usage":{"input":%d,"cost":{"total":[1,2]}}`, rng.IntN(1000))
	}
	if rng.IntN(2) == 0 {
		message += `,"timestamp":1`
	}
	if rng.IntN(2) == 0 {
		message += `,"stopReason":"stop"`
	}
	return message + "}"
}

// alter returns a message with another usage, another end, or another character.
func alter(rng *rand.Rand, message string) string {
	switch rng.IntN(4) {
	case 0:
		return strings.Replace(message, `"input":`, `"input":1`, 1)
	case 1:
		return strings.Replace(message, `,"stopReason":"stop"`, "", 1)
	case 2:
		return strings.Replace(message, `"stopReason":"stop"`, `"stopReason":"error","errorMessage":"a, b"`, 1)
	}
	at := rng.IntN(len(message))
	return message[:at] + strings.Replace(message[at:], "word", "Word", 1)
}

// firstOther returns the number of the first message that differs in more than its later members, 0 for none.
func firstOther(t *testing.T, want, got []string) int {
	compared := func(message string) map[string]any {
		members := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(message), &members))
		for _, key := range []string{"usage", "stopReason", "errorMessage"} {
			delete(members, key)
		}
		return members
	}
	for i := range want {
		if !reflect.DeepEqual(compared(want[i]), compared(got[i])) {
			return i + 1
		}
	}
	return 0
}
