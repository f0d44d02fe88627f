"""The machine code of kernels, as NVIDIA's disassembler writes it, and what it must have."""
import os
import pathlib
import re
import subprocess
import tempfile

FUNCTION = re.compile(r"^\.text\.(\w+):", re.MULTILINE)
WIDE_LOAD, WIDE_STORE = re.compile(r"\bLDG\.[\w.]*128"), re.compile(r"\bSTG\.[\w.]*128")
LOCAL = re.compile(r"\b(?:LDL|STL)\b")
# Instructions of the matrix kernels: products, fragments out of shared memory, copies that nobody waits for.
MATRIX = {"products on matrix units": re.compile(r"\bHMMA\."), "ldmatrix": re.compile(r"\bLDSM\."),
          "asynchronous copies": re.compile(r"\bLDGSTS\.")}
# griddepcontrol.wait and .launch_dependents, and what may stand before the first: what reads no memory of the card.
GRID_WAIT, NEXT_GRID, MEMORY = re.compile(r"\bACQBULK\b"), re.compile(r"\bPREEXIT\b"), re.compile(r"\b(?:LDG|STG|LD|ST|ATOMG|RED)\.")


def find_disassembler():
    """tools/sass-env says where it is; None: nobody has asked for it."""
    path = os.environ.get("PLIMSOLL_NVDISASM", "")
    return pathlib.Path(path) if path and pathlib.Path(path).exists() else None


def functions(disassembler, image):
    """The code of each kernel of an image."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(image)
        file.flush()
        text = subprocess.run([disassembler, "--print-code", file.name], check=True, capture_output=True, text=True).stdout
    starts = [(match.group(1), match.start()) for match in FUNCTION.finditer(text)]
    ends = [start for _, start in starts[1:]] + [len(text)]
    return {name: text[start:end] for (name, start), end in zip(starts, ends)}


def faults(name, code, *, wide, matrix, may_spill, waits):
    """What is wrong with a kernel's code. `waits`: it is for cards whose launches overlap."""
    if wide and not (WIDE_LOAD.search(code) and WIDE_STORE.search(code)):
        yield f"{name} does not move 16 bytes at once"
    for what, instruction in MATRIX.items() if matrix else ():
        if not instruction.search(code):
            yield f"{name} has no {what}"
    if not may_spill and LOCAL.search(code):
        yield f"{name} uses local memory"
    if not waits:
        return
    wait = GRID_WAIT.search(code)
    if wait is None or not NEXT_GRID.search(code):
        yield f"{name} does not wait for the grids before it"
    elif MEMORY.search(code[:wait.start()]):
        yield f"{name} touches memory before the grids before it have ended"
