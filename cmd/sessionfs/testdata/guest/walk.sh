# walk prints a checksum of each file, and each path, but of the sessions that are large.
walk() {
    find . \( -name '*_many' -o -name '*_big*' -o -name '*_many.jsonl' \) -prune -o -type f ! -name last-result ! -name last-error -print | sort |
        while read -r f; do md5sum "$f"; done
    find . \( -name '*_many' -o -name '*_big*' -o -name '*_many.jsonl' \) -prune -o -print | sed 's/^/path /' | sort
}
