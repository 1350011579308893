package sessiontest

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// AddSeeds calls add with every session of the cases and stores in testdata, and returns a pool of their lines and
// tokens.
func AddSeeds(f *testing.F, add func(data []byte)) (pool Pool) {
	files, err := filepath.Glob(filepath.Join(TestData(f), "cases/*.jsonl"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	files = append(files, StoreFiles(f)...)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		add(data)
		for line := range bytes.Lines(data) {
			pool.lines = append(pool.lines, bytes.TrimSuffix(line, []byte("\n")))
		}
		pool.tokens = append(pool.tokens, jsonToken.FindAll(data, -1)...)
	}
	return pool
}

// Pool holds the lines and the JSON tokens of all seeds, of which Mixed makes sessions.
type Pool struct{ lines, tokens [][]byte }

var jsonToken = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|[0-9.eE+-]+|true|false|null|[\[\]{},:]`)

// Mixed changes a session in ways that random bytes hardly would: lines are moved, repeated, cut and joined, and
// tokens are replaced by others. Seed 0 changes nothing.
func (p Pool) Mixed(data []byte, seed uint64) []byte {
	if seed == 0 {
		return data
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	lines := bytes.Split(data, []byte("\n"))
	for range rnd.IntN(8) {
		i := rnd.IntN(len(lines))
		j := rnd.IntN(len(lines))
		switch rnd.IntN(7) {
		case 0:
			lines[i], lines[j] = lines[j], lines[i]
		case 1:
			lines = slices.Insert(lines, i, lines[j])
		case 2:
			lines = slices.Insert(lines, i, p.lines[rnd.IntN(len(p.lines))])
		case 3: // torn, with another line joined to it
			lines[i] = slices.Concat(lines[i][:rnd.IntN(len(lines[i])+1)], lines[j])
		case 4: // split into two lines
			at := rnd.IntN(len(lines[i]) + 1)
			lines = slices.Insert(lines, i+1, lines[i][at:])
			lines[i] = lines[i][:at]
		default: // most often
			at := jsonToken.FindAllIndex(lines[i], -1)
			if len(at) > 0 {
				swap := at[rnd.IntN(len(at))]
				lines[i] = slices.Concat(lines[i][:swap[0]], p.tokens[rnd.IntN(len(p.tokens))], lines[i][swap[1]:])
			}
		}
	}
	return bytes.Join(lines, []byte("\n"))
}
