package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// likeTheClient is a script: $1 is a session's directory in the mount, and $2 what the real client read of the session's
// file. It prints what differs. Ids that the client makes anew each time are #0, #1, ... there, by position. $3 is a key of
// contexts that is not looked at.
const likeTheClient = `set -eo pipefail; cd "$1"
for generated in header.json context.json; do [ "$(wc -l < $generated)" = 1 ]; done
branch=branches/current/entries.jsonl; [ -e $branch ] || branch=/dev/null
find tree -name entry.json | while read -r e; do [ "$(dirname "$(realpath "$e")")" = "$PWD/entries" ]; echo "$e"; done |
jq -rn --arg key "$3" --slurpfile want "$2" --slurpfile header header.json --slurpfile context context.json --rawfile labels labels \
    --slurpfile entries <(cd entries && ls -U | xargs -r cat) --slurpfile branch $branch --rawfile tree /dev/stdin --arg leaf "$(readlink leaf)" '
    ($want[0] | walk(if type == "object" and has("children") then {id, children} else . end)) as $want |
    (if $want.header.type == "session_header" then "parent_id" else "parentId" end) as $parent |
    [$entries[].id] as $ids | def id: if $want.idsNormalized and . then "#\(. as $id | $ids | index($id))" else . end;
    [$tree / "\n" | .[] | select(. != "") / "/" | .[1:-1]] as $paths |
    def below: . as $at | [$paths[] | select(.[:-1] == $at) | {id: .[-1] | id, children: below}];
    def context: del(.configuredThinkingLevel, .[$key]);
    def known: if $want.context.selectedMCPToolNames then . else del(.selectedMCPToolNames, .hasPersistedMCPToolSelection) end;
    def number: walk(if type == "number" and (. > 1e308 or . < -1e308) then null else . end);
    {header: $header[0], leafId: (if $leaf == "tree" then null else $leaf | ltrimstr("entries/") | rtrimstr(".json") | id end),
     branch: [$branch[].id | id], tree: [] | below,
     labels: [$labels / "\n" | .[] | select(. != "") / "\t" | {key: .[0], value: .[1]}] | from_entries,
     entries: [$entries[] | with_entries(select(.key | IN("id", $parent, "type")) | if .key == "type" then . else .value |= id end)],
     context: $context[0] | known | context} | number | to_entries[] | .key as $key |
    (if .key == "context" then $want.context | context else $want[.key] end) as $w | select(($want | has($key)) and .value != $w) |
    "\(.key): want \($w)\ngot \(.value)"'
if ! grep -q 'idsNormalized": *true\|hookMessage' "$2" "$1.jsonl"; then # of what is migrated the text is made
    (cd entries && ls -U | xargs -r cat) | while read -r text; do
        grep -aqF -- "$text" <(tr '\r\n' '  ' < "$1.jsonl") || echo "not the bytes of the file: $text"
    done
fi`

// TestOwnCases: every session of the project's own cases shows in the mount what the real client reads. Package sessioncore
// compares the model with these and with the cases of testdata/conformance.
func TestOwnCases(t *testing.T) {
	onceIsEnough(t)
	a := newAgent(t)
	require.NoError(t, os.CopyFS(a.path(""), os.DirFS("../testdata/cases")))
	require.NoError(t, os.Rename(a.path("blobs"), filepath.Join(a.dir, "blobs")))
	m := mountForTest(t, a.dir)
	wants, err := filepath.Glob(a.path("*.want.json"))
	require.NoError(t, err)
	require.NotEmpty(t, wants)
	for _, want := range wants {
		name := strings.TrimSuffix(filepath.Base(want), ".want.json")
		switch {
		case name == "odd-ids": // lone surrogates: TestNames
		case strings.HasPrefix(name, "refused-"):
			require.NoDirExists(t, m.session(name))
		default:
			require.Empty(t, shell(t, likeTheClient, m.session(name), want), name)
		}
	}
}
