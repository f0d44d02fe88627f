"""Builds the wheel of a source distribution (tools/package-sdist), as pip asks for it (PEP 517): nothing is downloaded.

What the build needs is Debian's: without it the build stops before it compiles anything, with the packages' names.
"""
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def _package_wheel():
    path = str(ROOT / "tools/package-wheel")
    loader = importlib.machinery.SourceFileLoader("package_wheel", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("package_wheel", loader))
    loader.exec_module(module)
    return module


def _check():
    missing = [tool for tool in ("cmake", "ninja", "g++", "pkg-config") if shutil.which(tool) is None]
    said = subprocess.run([ROOT / "tools/install-deps", "--check"], capture_output=True, text=True)
    lines = [line.removeprefix("install-deps: ") for line in said.stderr.splitlines()] if said.returncode else []
    if missing or said.returncode:
        raise SystemExit("\n".join(["plimsoll: this machine cannot compile Plimsoll."]
                                   + [f"plimsoll: {tool} is not installed" for tool in missing]
                                   + [f"plimsoll: {line}" for line in lines]
                                   + ["plimsoll: install these Debian packages, or the wheel, which needs no compiler"]))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The wheel for this machine; its file name."""
    _check()
    package = _package_wheel()
    with tempfile.TemporaryDirectory() as folder:
        build, tree = pathlib.Path(folder, "build"), pathlib.Path(folder, "tree")
        tree.mkdir()
        package.run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DPLIMSOLL_TESTS=OFF",
                    "-DPLIMSOLL_BENCH=OFF", "-DPLIMSOLL_JOIN_SOURCES=ON", "-DPLIMSOLL_WERROR=OFF")
        package.run("cmake", "--build", build, "--target", "library", "wheel_program")
        package.record(tree, package.stage(build, tree))
        name = f"plimsoll-{package.version()}-py3-none-linux_{os.uname().machine}.whl"
        package.pack(tree, pathlib.Path(wheel_directory, name))
    return name


def build_sdist(sdist_directory, config_settings=None):
    """A source distribution is made of a checkout alone."""
    raise SystemExit("plimsoll: tools/package-sdist makes the source distribution, of a checkout")
