#!/usr/bin/env python3
"""Writes the Parquet and Arrow files beside it, as datasets and pyarrow write theirs (pyarrow of
tools/columns-requirements.txt): `.venv-columns/bin/python tests/corpora/columns/make.py`."""
import datetime
import decimal
import json
import pathlib
import uuid

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

# One conversation whose last message has a member of each type that is read.
utc = datetime.timezone.utc
last = {
    "role": pa.array(["assistant"]), "content": pa.array(["ok"]),
    "whole": pa.array([3.0]), "large": pa.array([1e16]), "single": pa.array([0.1], pa.float32()),
    "half": pa.array([1.5], pa.float16()), "small": pa.array([1e-7]), "none": pa.array([None]),
    "money": pa.array([decimal.Decimal("1.50")]), "bytes": pa.array([b'a"b'], pa.binary()),
    "map": pa.array([[("x", 1.0), ("y", None)]], pa.map_(pa.string(), pa.float64())),
    "view": pa.array([[1, 2]], pa.list_view(pa.int64())),
    "day": pa.array([datetime.date(2024, 1, 2)]), "time": pa.array([datetime.time(3, 4, 5)]),
    "at": pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5, 60)]),
    "utc": pa.array([datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=utc)]),
    "uuid": pa.array([uuid.UUID(int=5).bytes], pa.uuid()),
    "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([2], pa.int8())),
    "json": pa.array(['{"a":\n 3.0, "b": [null, "\\n"]}'], pa.json_())}
messages = pa.ListArray.from_arrays([0, 1], pa.StructArray.from_arrays(list(last.values()), list(last)))
tools = pa.array(['[{"name": "f"}]'], pa.json_())
types = pa.table({"messages": messages, "tools": tools})
pq.write_table(types, here / "types.parquet")
write_stream(here / "types.arrow", types)
write_stream(here / "broken_json.arrow", pa.table({"text": ["a", "b", "c"], "tools": pa.array(
    [None, '1, "text": "other"', "[]"], pa.json_())}))
write_stream(here / "unread.arrow", pa.table({"text": ["a"], "tools": pa.array(
    [[{"a": datetime.timedelta(1)}]])}))

# datasets' Image feature: bytes with or without a path, and a path alone.
pictures = here.parent.parent / "images" / "pictures"
images = [{"bytes": (pictures / "rgb.png").read_bytes(), "path": "a.png"}, {"bytes": (pictures / "lossless.webp").read_bytes(), "path": None},
          {"bytes": None, "path": "../../images/pictures/usual.jpg"}, None]
table = pa.table({"id": pa.array([1, 2, 3, 4]), "image": pa.array(images, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
                  "label": pa.array([1, 0, 2, 0])})
pq.write_table(table, here / "images.parquet")
# As datasets describes its features.
features = {"info": {"features": {"image": {"_type": "Image"}, "label": {"names": ["worm", "ant", "bee"], "_type": "ClassLabel"}}}}
named = table.slice(0, 3).replace_schema_metadata({"huggingface": json.dumps(features)})
pq.write_table(named, here / "named_images.parquet")
write_stream(here / "named_images.arrow", named)
