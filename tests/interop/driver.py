"""Builds the small programs that let a comparison call into the library."""
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


def build_driver(build, source, folder, modules=("corpora", "datasets", "templates", "tokenizers", "io", "base"), more=()):
    """Compiles `source` of this folder with the modules built in `build`; returns the program's path."""
    binary = folder / "driver"
    modules = [str(build / "src" / f"libplimsoll_{module}.a") for module in modules]
    libraries = [*more, "-lfmt", "-lutf8proc", "-lyaml-cpp", "-lxxhash", "-lz", "-lzstd", "-lpthread"]
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O2", f"-I{HERE.parent.parent / 'src'}",
                    str(HERE / source), *modules, *libraries, "-o", str(binary)], check=True)
    return binary
