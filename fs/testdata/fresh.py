import json, os, sys
raw, d, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
def header(): return '{"type":"session","version":3,"id":"fresh","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/"}\n'
def entry(id, parent, text):
    return json.dumps({"type":"message","id":id,"parentId":parent,"timestamp":"2026-02-16T11:00:00.000Z",
        "message":{"role":"user","content":text}}, separators=(",", ":"))+"\n"
def read(name):
    p = os.path.join(d, name)
    with open(p, "rb") as f: b = f.read()
    size = os.stat(p).st_size
    if size != len(b): raise SystemExit("size of %s: stat says %d, read %d" % (name, size, len(b)))
    return b.decode()
def same(what, want, got):
    if want != got: raise SystemExit("round %d: %s: want %.300r, got %.300r" % (round, what, want, got))
def replace(text):
    tmp = os.path.join(os.path.dirname(raw), ".fresh.jsonl.00ff.tmp")
    with open(tmp, "w") as f: f.write(text)
    os.rename(tmp, raw)
def look(ids, text, title=""):
    same("leaf", "entries/%s.json" % ids[-1], os.readlink(os.path.join(d, "leaf")))
    same("entries", [i + ".json" for i in ids], os.listdir(os.path.join(d, "entries")))
    same("context.json", text, json.loads(read("context.json"))["messages"][-1]["content"])
    with open(raw) as f: same("the raw file", f.read(), read("../fresh.jsonl"))
