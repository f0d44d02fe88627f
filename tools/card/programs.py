"""The programs that a check of a card runs, and the libraries that they load."""
import json
import os
import pathlib
import re
import shutil
import site
import subprocess
import sys
import tarfile

CUDA_LIBRARIES = ("libnvrtc.so.1*", "libcublasLt.so.1*", "libnccl.so.2")
# What ldd says of a library that is not there, or is too old.
MISSING = re.compile(r"^\s*(\S+) => not found|/(\S+?): version `\S+' not found", re.M)


def unpack(bundle):
    """Where the binaries of the bundle are; None without a bundle."""
    archive, folder = bundle / "bundle.tar.xz", bundle / "unpacked"
    if archive.exists() and not (folder / "bundle.json").exists():
        shutil.rmtree(folder, ignore_errors=True)  # of a call that was cut off
        with tarfile.open(archive) as packed:
            packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder if (folder / "bundle.json").exists() else None


def link(expected, target):
    """Makes `expected` a link to `target` where there is nothing."""
    if expected.exists():
        return
    try:
        expected.parent.mkdir(parents=True, exist_ok=True)
        expected.symlink_to(target)
    except OSError as error:
        print(f"tests will not find {expected}: {error}", file=sys.stderr)


def cuda_folders():
    """Where CUDA's libraries lie: those that PyTorch of this Python loads, then the toolkit's."""
    places = [*site.getsitepackages(), site.getusersitepackages(), *sys.path]
    found = [folder for place in places for folder in sorted(pathlib.Path(place).glob("nvidia/*/lib"))]
    found += [*sorted(pathlib.Path("/usr/local").glob("cuda*/lib64")), *sorted(pathlib.Path("/usr/local").glob("cuda*/targets/*/lib"))]
    folders = {}
    for folder in found:
        if any(next(folder.glob(name), None) for name in CUDA_LIBRARIES):
            folders.setdefault(folder.resolve(), folder)
    return [str(folder) for folder in folders.values()]


def tool_folders(root=pathlib.Path("/")):
    """Where compute-sanitizer and ncu lie, which an installation does not always put on PATH."""
    return [str(folder) for place in ("usr/local/cuda*/bin", "opt/nvidia/nsight-compute/*") for folder in sorted(root.glob(place))]


def missing_libraries(programs, environment):
    names = set()
    for program in programs:
        told = subprocess.run(["ldd", str(program)], env=environment, capture_output=True, text=True, check=False)
        for first, second in MISSING.findall(told.stdout + told.stderr):
            names.add(pathlib.Path(first or second).name)
    return names


class Build:
    """Programs, their environment, and where the tests expect them to be."""

    def __init__(self, folder, bundle, cuda=None):
        self.folder = bundle / "build" if bundle else folder
        self.environment = dict(os.environ)
        if cuda is not None:
            self.environment["PLIMSOLL_CUDA_LIBRARIES"] = str(cuda)
        elif "PLIMSOLL_CUDA_LIBRARIES" not in self.environment and (folders := cuda_folders()):
            self.environment["PLIMSOLL_CUDA_LIBRARIES"] = ":".join(folders)
        self.environment["PATH"] = ":".join([self.environment.get("PATH", os.defpath), *tool_folders()])
        self.kernels = bundle / "cache" if bundle else None
        if bundle is None:
            return
        about = json.loads((bundle / "bundle.json").read_text())
        self.take_libraries(bundle)
        # Tests name their files and the program by the folders that they were built in.
        link(pathlib.Path(about["sources"]), pathlib.Path(__file__).resolve().parents[2])
        for program in self.folder.iterdir():
            link(pathlib.Path(about["build"]) / program.name, program.resolve())

    def take_libraries(self, bundle):
        """Of the bundle's libraries those that this machine has not: others' programs run beside ours, and want their own."""
        wanted = bundle / "lib-wanted"
        shutil.rmtree(wanted, ignore_errors=True)
        wanted.mkdir()
        before = self.environment.get("LD_LIBRARY_PATH", "")
        self.environment["LD_LIBRARY_PATH"] = ":".join(path for path in (str(wanted), before) if path)
        programs = [path for path in self.folder.rglob("*") if path.is_file() and os.access(path, os.X_OK)]
        while names := missing_libraries(programs, self.environment):
            taken = [name for name in names if (bundle / "lib" / name).exists() and not (wanted / name).exists()]
            for name in taken:
                (wanted / name).symlink_to(bundle / "lib" / name)
            if not taken:
                print(f"libraries that are not found: {' '.join(sorted(names))}", file=sys.stderr)
                return

    def resolve(self, word):
        own = self.folder / word
        return str(own) if own.exists() else shutil.which(word, path=self.environment["PATH"])
