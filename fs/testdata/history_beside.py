path, mount, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
def read(name):
    name = os.path.join(mount, name)
    with open(name) as f: text = f.read()
    assert os.stat(name).st_size == len(text.encode()), "size of %s" % name
    return [json.loads(line) for line in text.splitlines()]
db = open_history(path)
for n in range(rounds):
    add(db, "prompt number%d ü" % n, 1780000000 + n)
    if n % 5 == 0: db.execute("PRAGMA wal_checkpoint(%s)" % ["PASSIVE", "RESTART", "TRUNCATE"][n % 3])
    if n % 20 == 10: # the client ends, and another begins
        db.close()
        assert not os.path.exists(path + "-wal"), "the log was not tidied up"
        db = open_history(path)
    got = read("prompts.jsonl")
    assert len(got) == 4 + n and got[0]["prompt"] == "prompt number%d ü" % n, (n, got[:2])
    assert [p["id"] for p in read("search/number%d" % n)] == [got[0]["id"]], n
    add(db, "prompt number0 ü", 1790000000 + n) # asked again
    assert read("prompts.jsonl")[0]["prompt"] == "prompt number0 ü", n
    add(db, "prompt number0 ü", 1700000000)
check(db)