#!/usr/bin/env python3
"""Writes the Parquet and Arrow files beside it, as datasets and pyarrow write theirs (pyarrow of
tools/columns-requirements.txt): `.venv-columns/bin/python tests/data/text/columns/make.py`."""
import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

here = pathlib.Path(__file__).parent
message = pa.struct([("role", pa.string()), ("content", pa.string()), ("weight", pa.float64())])
chats = pa.table({
    "messages": pa.array([[{"role": "user", "content": "hello"}, {"role": "assistant", "content": "w \"q\"\n"}],
                          [{"role": "user", "content": "\u00e9"}, {"role": "assistant", "content": "ok"}]],
                         pa.list_(message)),
    "picture": pa.array([b"\x00\x01", None], pa.binary()),
    "score": pa.array([0.5, 2.0])})
pq.write_table(chats, here / "chats.parquet")
# Row groups and dictionary pages; zstd where the default is snappy.
many = pa.table({"text": pa.array([f"line {i % 7} {i}" if i % 5 else None for i in range(900)]),
                 "label": pa.array([i % 3 for i in range(900)], pa.int8())})
pq.write_table(many, here / "many.parquet", compression="zstd", row_group_size=400)


def write_stream(path, table, rows=2):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)


texts = pa.table({"prompt": ["say ", "a", "b"], "completion": pa.array(["hello", "c", "d"], pa.large_string()),
                  "kind": pa.array(["x", "y", "x"]).dictionary_encode()})
write_stream(here / "saved" / "data-00000-of-00002.arrow", texts)
write_stream(here / "saved" / "data-00001-of-00002.arrow", texts.slice(1, 1))
(here / "saved" / "state.json").write_text(json.dumps(
    {"_data_files": [{"filename": f"data-0000{i}-of-00002.arrow"} for i in range(2)], "_fingerprint": "0", "_split": None}))
(here / "splits" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
with pa.OSFile(str(here / "file.arrow"), "wb") as sink, pa.ipc.new_file(sink, texts.schema) as writer:
    writer.write_table(texts)
