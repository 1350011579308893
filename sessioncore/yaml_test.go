package sessioncore

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func yamlOf(text string) (string, bool) {
	y := yamlText{excerpt: &excerpter{}, left: maxYAML}
	y.write(value(text), 0, 0)
	return string(y.out), y.cut
}

func TestYAML(t *testing.T) {
	got, cut := yamlOf(`{"path":"main.go","edits":[{"old":"a\n\tb\n","new":""},{"old":"  x\ny","new":"z: 1"}],"n":[1,true,null,"12"],"o":{},"l":[],
		"deep":[[{"k":[["v"]]}]],"odd key:":"ends:","\u001b":"\u001b[0m","multi":"\n\nx\n\n"}`)
	require.False(t, cut)
	require.Equal(t, `path: main.go
edits:
  - old: |
      a
      	b
    new: ""
  - old: |2-
        x
      y
    new: "z: 1"
n:
  - 1
  - true
  - null
  - "12"
o: {}
l: []
deep:
  - - k:
        - - v
"odd key:": "ends:"
␛: ␛[0m
multi: |2+


  x

`, got)
}

// TestYAMLMeansTheSame: a YAML parser reads what was written as what it was made from.
func TestYAMLMeansTheSame(t *testing.T) {
	for _, text := range []string{
		`{"command":"git add -A && git commit -qm 'x'","timeout":300,"ok":false,"none":null}`,
		`{"a":{"b":{"c":["x\ny","- z","# no","yes","No","~","1e3","0x1f","",".5","'q'","\"","a: b","a #b","@x","%y","!z","&w","*v","|","> x","[","{a}","? b",": c","-","--- ","...","é","\\n"]}}}`,
		`[["a",["b",["c"]]],[],{},[{}],{"x":[]},{"y":{"z":"1\n 2\n\n3\n"}}]`,
		`{"true":1,"null":2,"a b":3,"a: b":4,"":5,"-":6,"1":7}`,
		`{"t":"\tindented\n\t\tmore\n","s":"  two\n three\n","n":"\nfirst\n\n","w":"trail \n"}`,
	} {
		got, cut := yamlOf(text)
		require.False(t, cut)
		var want, have any
		require.NoError(t, json.Unmarshal([]byte(text), &want))
		require.NoError(t, yaml.Unmarshal([]byte(got), &have), "%s", got)
		asJSON, err := json.Marshal(have)
		require.NoError(t, err)
		var back any
		require.NoError(t, json.Unmarshal(asJSON, &back))
		require.Equal(t, want, back, "%s", got)
	}
}

func TestYAMLIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"deep": strings.Repeat(`{"k":[`, 5000) + strings.Repeat(`]}`, 5000),
		"wide": "[" + strings.Repeat(`"an element",`, 50_000) + "0]",
		"long": `{"content":"` + strings.Repeat(`line\n`, 100_000) + `"}`,
		"key":  `{"` + strings.Repeat(`k`, 100_000) + `":1}`,
	} {
		got, cut := yamlOf(text)
		require.Less(t, len(got), 2*maxYAML, name)
		require.Equal(t, name != "key", cut, name)
	}
}
