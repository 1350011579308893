# Functions of the pages' own programs, which bash reads by BASH_ENV. A command that fails ends them, with its line.
set -eE -o pipefail
export LC_ALL=C.UTF-8
trap 'echo "line $LINENO fails: $BASH_COMMAND" >&2' ERR

# grep -q would end early, and by SIGPIPE the program that writes to it.
grep() {
    case $1 in
    -q*)
        local first=${1/q/s}
        shift
        command grep "$first" "$@" >/dev/null
        ;;
    *) command grep "$@" ;;
    esac
}

# message TEXT prints a user's message, and assistant TEXT an answer, as a line of append.
message() { printf '{"type":"message","message":{"role":"user","content":"%s"}}\n' "$1"; }
assistant() { printf '{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"%s"}]}}\n' "$1"; }

# header ID prints the first line of a session, entry N ID PARENT TEXT a line with a user's message at second N.
header() { printf '{"type":"session","version":3,"id":"%s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/home/dev/project"}\n' "$1"; }
entry() {
    local parent=null
    [[ -z $3 ]] || parent="\"$3\""
    printf '{"type":"message","id":"%s","parentId":%s,"timestamp":"2026-02-16T11:00:%02d.000Z","message":{"role":"user","content":"%s"}}\n' \
        "$2" "$parent" "$1" "$4"
}

# ask FILE LINE writes a line to a control file and prints the answer.
ask() {
    local answer
    exec 9<>"$1"
    printf '%s\n' "$2" >&9
    IFS= read -r answer <&9
    exec 9>&-
    printf '%s\n' "$answer"
}

# refused WORDS COMMAND requires that a command line fails and says the words.
refused() {
    local said
    if said=$(set +eE; trap - ERR; eval "$2" 2>&1); then
        echo "$2 succeeds" >&2
        return 1
    fi
    [[ $said == *"$1"* ]] || { echo "$2 says: $said" >&2; return 1; }
}

# is WANT GOT compares, has TEXT PART looks for a part.
is() { [[ $1 == "$2" ]] || { printf 'want: %s\ngot:  %s\n' "$1" "$2" >&2; return 1; }; }
has() { [[ $1 == *"$2"* ]] || { printf '%s\nis not in: %s\n' "$2" "$1" >&2; return 1; }; }

# await COMMAND... waits until a command succeeds, and looks less and less often.
await() {
    local end=$((SECONDS + 60)) hundredths=1
    while ((SECONDS < end)); do
        ! "$@" || return 0
        sleep $(printf 0.%02d $hundredths)
        ((hundredths >= 20)) || hundredths=$((hundredths + 1))
    done
    echo "in vain: $*" >&2
    return 1
}

# tells STATUS WORDS,WORDS ARGUMENT... requires that the program ends with a status and says the words.
tells() {
    local want=$1 words=$2 word code=0 said
    shift 2
    said=$(sessionfs "$@" 2>&1 >/dev/null) || code=$?
    is "sessionfs $*: status $want" "sessionfs $*: status $code"
    IFS=, read -ra words <<<"$words"
    for word in 'sessionfs: ' "${words[@]}"; do has "$said" "$word"; done
}

# pid prints the process that serves the mount at a path, by default at $MNT; gone looks whether one has ended.
pid() { sessionfs status --json "${1:-$MNT}" | jq '.[].pid'; }
gone() { [[ ! -e /proc/$1/exe ]]; }
