#!/usr/bin/env python3
"""Makes C++ of the CUDA backend's device sources, for the compiler of the host.

    make_twin.py SOURCES OUTPUT          SOURCES: src/backends/cuda, OUTPUT: a folder of the build
    make_twin.py SOURCES OUTPUT --list   the C++ files that it would make, one a line

Every .cu becomes OUTPUT/<path with _>.cpp: the text in a namespace without a name, behind
twin/cuda_builtins.h, and a list of its kernels. The text itself is changed in three places only: an `extern __shared__`
array becomes a pointer, inline assembly of one result and one operand becomes a call by the instruction's name, and
an #include of a file of SOURCES finds its changed copy. A file that stays the same is not written again.
"""
import argparse
import pathlib
import re

SHARED_ARRAY = re.compile(r"extern __shared__ (?:__align__\(\d+\) |alignas\(\d+\) )?([\w ]+?) (\w+)\[\];")
ASSEMBLY = re.compile(r'asm(?: volatile)?\s*\(\s*"([a-z0-9_.]+) %0, %1;"\s*:\s*"=\w"\((\w+)\)\s*:\s*"\w"\((\w+)\)\s*\);')
KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\(([^)]*)\)\s+)?(\w+)\s*\(')
COMMENT = re.compile(r"//[^\n]*")
MOST_THREADS = 1024


def as_host_text(text):
    def array(match):
        kind, name = match.groups()
        return f"{kind}* const {name} = static_cast<{kind}*>(twin::dynamic_shared());"

    def call(match):
        instruction, result, operand = match.groups()
        return f"twin::ptx_{instruction.replace('.', '_')}({result}, {operand});"

    return ASSEMBLY.sub(call, SHARED_ARRAY.sub(array, text))


def kernels(text):
    """(name, most threads) of each kernel."""
    return [(name, bounds.split(",")[0] if bounds else MOST_THREADS)
            for bounds, name in KERNEL.findall(COMMENT.sub("", text))]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


class Source:
    def __init__(self, root, file):
        self.path = file.relative_to(root)
        name = self.path.with_suffix("")
        self.name = "_".join(part for part in name.parts if part != "kernels")
        self.text = file.read_text()

    def cpp(self, includes):
        section = f"twin_shared_{self.name}"
        bounds = "\n".join(f'    {{"{name}", {most}, Call<::{name}>::sizes, Call<::{name}>::run, '
                           f"__start_{section}, __stop_{section}}}," for name, most in kernels(self.text))
        return f"""// Made of {self.path} by make_twin.py.
#define TWIN_SECTION "{section}"
#include <span>

#include "backends/cuda/twin/cuda_builtins.h"
#include "backends/cuda/twin/kernel.h"

extern "C" {{
extern char __start_{section}[] __attribute__((weak, visibility("hidden")));
extern char __stop_{section}[] __attribute__((weak, visibility("hidden")));
}}
namespace {{
namespace plimsoll::cuda {{}}
using namespace plimsoll::cuda;
{includes}
}}  // namespace
namespace twin {{
std::span<const Kernel> kernels_of_{self.name}() {{
  static const Kernel all[] = {{
{bounds}
  }};
  return all;
}}
}}  // namespace twin
"""


def table(sources):
    declared = "\n".join(f"std::span<const Kernel> kernels_of_{s.name}();" for s in sources)
    listed = ", ".join(f"kernels_of_{s.name}()" for s in sources)
    return f"""// Made by make_twin.py.
#include <cstring>
#include <initializer_list>
#include <span>

#include "backends/cuda/twin/kernel.h"

namespace twin {{
{declared}
const Kernel* find_kernel(const char* name) {{
  for (const std::span<const Kernel> part : {{{listed}}})
    for (const Kernel& kernel : part)
      if (std::strcmp(kernel.name, name) == 0) return &kernel;
  return nullptr;
}}
}}  // namespace twin
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    sources = [Source(given.sources, file) for file in sorted(given.sources.rglob("*.cu"))]
    sources = [source for source in sources if kernels(source.text)]
    if given.list:
        print("\n".join([source.name + ".cpp" for source in sources] + ["all_kernels.cpp"]))
        return
    for file in sorted(given.sources.rglob("*")):
        if file.suffix in (".cu", ".cuh", ".h"):
            write(given.output / "backends" / "cuda" / file.relative_to(given.sources), as_host_text(file.read_text()))
    shared = given.sources / "kernels" / "common.cuh"
    before = ['#include "backends/cuda/kernels/common.cuh"'] if shared.exists() else []
    for source in sources:
        includes = "\n".join([*before, f'#include "backends/cuda/{source.path}"'])
        write(given.output / (source.name + ".cpp"), source.cpp(includes))
    write(given.output / "all_kernels.cpp", table(sources))


if __name__ == "__main__":
    main()
