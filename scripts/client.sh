#!/usr/bin/env bash
# What scripts/interop, scripts/terminal and scripts/torture share; sourced, not run: it installs the real client and
# runs checks of it beside a mount. The script that sources it sets before:
#
#   needed          the commands that it needs, as scripts/need takes them
#   run_limit       how many seconds the checks of one version may take
#   pi_checks       what bun runs for the versions of pi, unless the script has nothing for them
#   codex_checks    the same for those of Codex
#   handover_checks the same for handovers among omp, Codex, Copilot, OpenCode and Claude Code
#   writers_checks  the same for Gemini CLI, GitHub Copilot CLI and Claude Code: their tools that write files, and forks
#   whole_clients   1 if the client is run itself, and not only its code
#   with_postgres   1 if the checks use scripts/postgresrun
set -euo pipefail
: "${needed[0]:?}" "${run_limit:?}"

readonly bun_version=1.4.5
readonly client=@oh-my-pi/pi-coding-agent
known_versions=(14.9.9 18.2.3)
[[ -n ${whole_clients:-} ]] || known_versions+=(18.3.4) # of which only the code for sessions can be installed
[[ -z ${pi_checks:-} ]] || known_versions+=(pi-0.73.1 pi-0.87.1 pi-1.6.0)
[[ -z ${codex_checks:-} ]] || known_versions+=(codex-0.104.0 codex-0.171.0)
[[ -z ${handover_checks:-} ]] || known_versions+=(handover)
[[ -z ${writers_checks:-} ]] || known_versions+=(gemini-0.61.0 copilot-1.0.102)
[[ -z ${writers_checks:-} || -z ${SESSIONFS_CLAUDE:-} ]] || known_versions+=(claude)
readonly known_versions
# install_limit is how many seconds npm may take for a package; a minute is usual.
readonly install_limit=300

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
script=${0##*/}
cache=${SESSIONFS_CLIENT_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sessionfs-interop}
[[ $cache == /* ]] || cache=$PWD/$cache
versions=()
tmp=''
runner=''
bun=''
why='' # get_client failed
build_flags=()
keep='' # not empty: what is in $tmp stays

# usage prints the comment at the head of the script.
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"; }

# skip ends the test before it began.
skip() {
	if [[ -n ${SESSIONFS_REQUIRE_FUSE:-} ]]; then
		printf '%s: %s\n' "$script" "$*" >&2
		exit 1
	fi
	printf '%s: SKIPPED: %s\n' "$script" "$*"
	exit 0
}

# take_versions ARGUMENT… sets versions.
take_versions() {
	local argument
	for argument in "$@"; do
		case $argument in
		-h | --help)
			usage
			exit
			;;
		*)
			if [[ " ${known_versions[*]} " != *" $argument "* ]]; then
				printf '%s: unknown version %s: there are %s\n' "$script" "$argument" "${known_versions[*]}" >&2
				exit 2
			fi
			versions+=("$argument")
			;;
		esac
	done
	((${#versions[@]})) || versions=("${known_versions[@]}")
}

# strays prints the processes whose home is below $tmp: the client, what it started, and its terminals' server,
# which leave the process group of the checks.
strays() {
	local environment pid
	for environment in /proc/[0-9]*/environ; do
		# A process may end, or be another user's, while we look.
		if { grep -qzF "HOME=$tmp/" "$environment"; } 2>/dev/null; then
			pid=${environment#/proc/}
			printf '%s\n' "${pid%/environ}"
		fi
	done
}

# end_strays ends them for good. What one of them started meanwhile is found the next time.
end_strays() {
	local pids round
	for ((round = 0; round < 50; round++)); do
		mapfile -t pids < <(strays)
		((${#pids[@]})) || return 0
		kill -KILL "${pids[@]}" 2>/dev/null || true
		sleep 0.1
	done
	printf '%s: these do not end: %s\n' "$script" "${pids[*]}" >&2
}

# clean_up ends what runs, unmounts what is left below $tmp, also dead mounts, and removes it. Whatever cannot
# be unmounted is not walked into: --one-file-system. That also ends the daemons.
# shellcheck disable=SC2317,SC2329 # the trap calls it
clean_up() {
	local status=$? at
	trap '' INT TERM HUP
	if [[ -n $runner ]]; then
		kill -TERM -- "-$runner" 2>/dev/null || true
		wait "$runner" 2>/dev/null || true
		kill -KILL -- "-$runner" 2>/dev/null || true
	fi
	end_strays
	while read -r _ at _; do
		[[ $at == "$tmp"/* ]] || continue
		"$tmp/sessionfs" -u -z "$at" 2>/dev/null || umount -l "$at" 2>/dev/null || fusermount3 -u -z "$at" || true
	done </proc/self/mounts
	[[ -n $keep ]] || rm -rf --one-file-system "$tmp"
	exit "$status"
}

# in_group COMMAND… runs it in a process group of its own, so that all of it can be ended.
in_group() {
	local status=0
	set -m
	"$@" &
	runner=$!
	set +m
	wait "$runner" || status=$?
	runner=''
	return "$status"
}

# siblings VERSION prints the packages of a client whose own versions are not in the registry, with the newest that are.
siblings() {
	[[ $1 != 18.3.4 ]] || jq -n '
		["omp-stats", "omptype", "pi-agent-core", "pi-ai", "pi-catalog", "pi-mnemopi", "pi-wire", "snapcompact"] as $later |
		[($later[] | {("@oh-my-pi/" + .): "18.2.11"})] | add +
		{"@oh-my-pi/pi-natives": "18.2.3", "@oh-my-pi/pi-tui": "18.2.9", "@oh-my-pi/pi-utils": "18.2.9"}'
}

# manifest PACKAGE VERSION prints what npm is to install. The newest linkedom that the older client takes needs a
# package that is not to be had everywhere.
manifest() {
	jq -n --arg package "$1" --arg version "$2" --argjson siblings "$(siblings "$2" | grep . || echo '{}')" '{
		name: "sessionfs-interop", private: true, dependencies: {($package): $version},
		overrides: ({linkedom: "0.18.12"} + $siblings)
	}'
}

# installed PACKAGE VERSION DIR: whether DIR holds it, whole. npm writes .package-lock.json last.
installed() {
	[[ -e $3/node_modules/.package-lock.json && $(jq -r .version "$3/node_modules/$1/package.json" 2>/dev/null) == "$2" ]] &&
		[[ $(<"$3/package.json") == "$(manifest "$1" "$2")" ]]
}

# install PACKAGE VERSION DIR gets it from npm, unless it is there. Two runs at once install one after the other.
install() {
	local package=$1 version=$2 dir=$3
	mkdir -p "$dir"
	(
		flock 9
		! installed "$@" || exit 0
		echo "Installing $package $version into $dir"
		rm -rf "$dir/node_modules"
		manifest "$package" "$version" >"$dir/package.json"
		cd "$dir" || exit
		PUPPETEER_SKIP_DOWNLOAD=1 timeout "$install_limit" npm install --legacy-peer-deps --ignore-scripts \
			--no-package-lock --no-audit --no-fund --no-update-notifier --loglevel=error </dev/null
		# What other systems and processors would load: half of it all.
		find node_modules/@oh-my-pi/pi-natives/native -name '*.node' ! -name "*.linux-$(node -p process.arch)*" \
			-delete 2>/dev/null || true
	) 9>"$dir/.lock"
	installed "$@"
}

# find_bun prints the runtime: of the builds that npm chose for this machine, the one that runs.
find_bun() {
	local candidate
	for candidate in "$cache/bun-$bun_version"/node_modules/@oven/*/bin/bun; do
		if [[ $("$candidate" --version 2>/dev/null) == "$bun_version" ]]; then
			printf '%s\n' "$candidate"
			return
		fi
	done
	return 1
}

# begin gets what every script needs, and makes $tmp.
begin() {
	[[ -r /dev/fuse && -w /dev/fuse ]] || skip '/dev/fuse cannot be opened'
	"$root/scripts/need" "${needed[@]}" || skip "these are needed: ${needed[*]%%:*}"

	tmp=$(mktemp -d "${TMPDIR:-/tmp}/sessionfs-$script.XXXXXX")
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
}

# get_pi VERSION gets a version of pi.
get_pi() {
	local pi=@earendil-works/pi-coding-agent
	[[ $1 != 0.73.1 ]] || pi=@mariozechner/pi-coding-agent
	install "$pi" "$1" "$cache/client-pi-$1"
}

# get_client VERSION… gets the client and its runtime, or sets why.
get_client() {
	local version
	why="npm cannot install bun $bun_version"
	install bun "$bun_version" "$cache/bun-$bun_version" || return
	why="bun $bun_version does not run on this machine"
	bun=$(find_bun) || return
	for version in "$@"; do
		why="npm cannot install $client $version"
		if [[ $version == pi-* ]]; then
			get_pi "${version#pi-}" || return
		elif [[ $version == handover ]]; then
			install "$client" 18.2.3 "$cache/client-18.2.3" || return
			install @openai/codex 0.171.0 "$cache/client-codex-0.171.0" || return
			why='npm cannot install GitHub Copilot CLI 1.0.102 or OpenCode 1.18.33'
			install @github/copilot 1.0.102 "$cache/client-copilot-1.0.102" || return
			install opencode-ai 1.18.33 "$cache/client-opencode-1.18.33" || return
		elif [[ $version == codex-* ]]; then
			install @openai/codex "${version#codex-}" "$cache/client-$version" || return
		elif [[ $version == gemini-* ]]; then
			install @google/gemini-cli "${version#gemini-}" "$cache/client-$version" || return
		elif [[ $version == copilot-* ]]; then
			install @github/copilot "${version#copilot-}" "$cache/client-$version" || return
		elif [[ $version != claude ]]; then
			install "$client" "$version" "$cache/client-$version" || return
		fi
	done
}

# build builds the command, with build_flags.
build() {
	local stamp=auto
	cd "$root"
	PATH=$(scripts/need --go):$PATH
	git status >/dev/null 2>&1 || stamp=false # no git, or a clone that belongs to somebody else
	go build "-buildvcs=$stamp" "${build_flags[@]}" -o "$tmp/sessionfs" ./cmd/sessionfs
	[[ -z ${with_postgres:-} ]] || go build -o "$tmp/postgresrun" ./scripts/postgresrun
}

# check_version CHECKS VERSION runs the checks of a version on a mount of its own; its lines go to the log too.
# The client sees a home, an agent directory and a project of its own, and no terminal.
check_version() {
	local checks=$1 version=$2 dir=$tmp/$2 agent=$tmp/$2/agent status=0 lines shown clients=$cache/client-$2 marks=(sessions)
	case $version in # marks are directories below agent by which it is known, which the client makes when it starts
	pi-*) checks=$root/$pi_checks agent=$dir/home/.pi/agent ;;
	codex-*) checks=$root/$codex_checks agent=$dir/home/.codex ;;
	gemini-*) checks=$root/$writers_checks agent=$dir/home/.gemini marks=(tmp/project/chats) ;;
	copilot-*) checks=$root/$writers_checks agent=$dir/home/.copilot marks=(session-state) ;;
	claude) checks=$root/$writers_checks agent=$dir/home/.claude marks=(projects) ;;
	handover) checks=$root/$handover_checks agent=$dir/home/.omp/agent marks+=(terminal-sessions) clients=$cache ;;
	*) marks+=(terminal-sessions) ;;
	esac
	mkdir -p "${marks[@]/#/$agent/}" "$dir"/{mnt,home,project,tmp}
	TMPDIR="$dir/tmp" "$tmp/sessionfs" -o prices=none "$agent" "$dir/mnt" # costs, and names of directories, as the client has them
	exec {lines}> >(tee -a "$tmp/log")
	shown=$!
	in_group timeout "$run_limit" env -i PATH="$PATH" HOME="$dir/home" TMPDIR="$dir/tmp" TZ=UTC LANG=C.UTF-8 \
		PI_CODING_AGENT_DIR="$agent" SESSIONFS_RECORD="${SESSIONFS_RECORD:-}" SESSIONFS_FOREIGN="${SESSIONFS_FOREIGN:-}" \
		SESSIONFS_REQUIRE_POSTGRES="${SESSIONFS_REQUIRE_POSTGRES:-}" SESSIONFS="$tmp/sessionfs" SESSIONFS_CLAUDE="${SESSIONFS_CLAUDE:-}" \
		"$bun" --no-install "$checks" "$clients" "$version" "$dir/mnt" "$dir/project" \
		</dev/null >&"$lines" 2>&1 || status=$?
	exec {lines}>&-
	end_strays
	wait "$shown"
	if ((status == 0)); then
		"$tmp/sessionfs" -u "$dir/mnt" || status=$?
	fi
	((status == 0)) || echo "FAIL $version: the run of the checks ended with status $status" | tee -a "$tmp/log"
}

# run_checks CHECKS ARGUMENT… is the whole test: CHECKS is what bun runs, the arguments are the script's. The
# result is 1 where a check failed.
run_checks() {
	local checks=$root/$1 version passed failed
	shift
	take_versions "$@"
	begin
	get_client "${versions[@]}" || skip "$why"
	build
	for version in "${versions[@]}"; do
		check_version "$checks" "$version"
	done
	passed=$(grep -c '^ok ' "$tmp/log" || true)
	failed=$(grep -c '^FAIL ' "$tmp/log" || true)
	echo "$passed passed, $failed failed"
	((failed == 0 && passed > 0))
}
