"""JSON in threads, a database in memory, regular expressions, compression, and cycles for the collector."""

import gc
import itertools
import json
import re
import sqlite3
import sys
import threading
import zlib

rounds = int(sys.argv[1])
base = sqlite3.connect(":memory:")
base.execute("create table t (k integer primary key, v text)")
base.executemany("insert into t values (?, ?)", ((i, "x" * (i % 300)) for i in range(20000 * rounds)))
found = {}


def work(n: int) -> None:
    """Make, write, compress and read back rows; many of them hold each other."""
    check = 0
    for turn in range(rounds):
        rows = [{"a": list(range(i % 50)), "b": str(i)} for i in range(2000)]
        text = json.dumps(rows)
        packed = zlib.compress(text.encode(), 1 + turn % 9)
        assert json.loads(zlib.decompress(packed)) == rows
        for row, following in itertools.pairwise(rows):
            row["next"], following["before"] = following, row
        check = zlib.crc32(re.sub(r"(\d+)9", r"<\1>", text).encode(), check)
    found[n] = check


threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
gc.collect()
print(sorted(found.items()), gc.garbage)
print(base.execute("select sum(k), sum(length(v)), count(distinct v) from t where v like '%xx'").fetchone())
