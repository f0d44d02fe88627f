"""Exports small families of transformers by torch.export and counts their ops: what an importer needs first.

    python bench/imports/histogram.py [FAMILY…]        wants bench/requirements.txt; a minute on two cores
"""
import collections
import sys

import families
import torch


def ops(name):
    """How often each op stands in the exported graph."""
    module, example = families.build(name)
    exported = torch.export.export(module, (), kwargs=example, strict=False)
    return collections.Counter(str(node.target).removeprefix("aten.") for node in exported.graph.nodes if node.op == "call_function")


def main():
    counts, users = collections.Counter(), collections.Counter()
    for name in sys.argv[1:] or families.FAMILIES:
        try:
            found = ops(name)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}")
            continue
        print(f"{name}: {sum(found.values())} ops of {len(found)} kinds")
        counts.update(found)
        users.update(found.keys())
    print(f"\n{'families':>8} {'uses':>6}  op")
    for op, families_of in sorted(users.items(), key=lambda item: (-item[1], -counts[item[0]])):
        print(f"{families_of:8} {counts[op]:6}  {op}")


if __name__ == "__main__":
    main()
