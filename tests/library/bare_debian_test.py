"""Installs the wheel that `make wheel` made on a bare Debian 12: a root of its own with Python and what Python needs, without a
compiler, without a network. There the package plans and makes ten steps, and the program runs; 20 s are allowed.

    python3 tests/library/bare_debian_test.py build [CACHE]

By hand, as root on Debian 12: apt-get downloads 70 packages (30 MB) and pip numpy into CACHE, a temporary folder by default.
Exit code 77: this machine cannot make such a root.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT = 20  # seconds
PACKAGES = ["apt", "python3", "python3-pip-whl", "dash", "coreutils", "base-files"]  # apt, as every Debian has it, with libstdc++
TRAINS = pathlib.Path(__file__).with_name("wheel_test.py").read_text().split('TRAINS = """')[1].split('"""')[0]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def download(cache):
    """The packages, as if nothing were installed, and numpy's wheel."""
    nothing = cache / "status"
    nothing.touch()
    listed = run("apt-get", "--yes", "--print-uris", "--no-install-recommends", "-o", f"Dir::State::status={nothing}", "install", *PACKAGES)
    files = re.findall(r"^'[^']*' (\S+\.deb)", listed, re.M)
    (cache / "debs").mkdir(exist_ok=True)
    missing = [file.split("_")[0] for file in files if not (cache / "debs" / file).exists()]
    if missing:
        run("apt-get", "download", *missing, cwd=cache / "debs")
    if not list(cache.glob("numpy-*.whl")):
        run(sys.executable, "-m", "pip", "download", "--only-binary", ":all:", "--no-deps", "--python-version", "3.11", "-d", cache, "numpy")
    return sorted((cache / "debs").glob("*.deb"))


def unpack(debs, root):
    for name in ("bin", "sbin", "lib", "lib64"):  # one /usr, as in any Debian 12
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for deb in debs:
        archive = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
        run("tar", "-C", root, "--keep-directory-symlink", "-x", stdin=archive.stdout)
        if archive.wait() != 0:
            raise SystemExit(f"{deb}: it cannot be unpacked")
    for name in ("proc", "tmp", "dev"):
        (root / name).mkdir(exist_ok=True)


def inside(root, command):
    script = f"mount -t proc proc {root}/proc && exec chroot {root} /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp {command}"
    return run("unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", script)


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
    if os.geteuid() != 0 or not all(map(shutil.which, ("apt-get", "dpkg-deb", "unshare", "chroot"))):
        print("[  SKIPPED ] BareDebian: it needs root and Debian's tools")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        cache = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else folder).resolve()
        cache.mkdir(parents=True, exist_ok=True)
        root = pathlib.Path(folder, "root")
        unpack(download(cache), root)
        wheels = root / "wheels"
        wheels.mkdir()
        for wheel in (next((build / "wheel").glob("*.whl")), next(cache.glob("numpy-*.whl"))):
            shutil.copy(wheel, wheels)
        (root / "trains.py").write_text(TRAINS)
        assert not list(root.glob("usr/bin/*g++*")) and not list(root.glob("usr/bin/*gcc*")), "the root has a compiler"
        start = time.monotonic()
        pip = next(root.glob("usr/share/python-wheels/pip-*.whl")).name
        inside(root, f"PYTHONPATH=/usr/share/python-wheels/{pip} python3 -m pip install --no-index --find-links /wheels --target /site "
               "plimsoll")
        installed = time.monotonic() - start
        said = inside(root, "PYTHONPATH=/site python3 /trains.py")
        assert said.strip().startswith("/site/"), said
        seconds = time.monotonic() - start
        version = inside(root, "PYTHONPATH=/site /site/bin/plimsoll --version")
        assert re.match(r"plimsoll \d+\.\d+", version), version
        print(f"bare Debian 12: pip install {installed:.1f} s, plan and ten steps {seconds - installed:.1f} s")
        return 0 if seconds <= LIMIT else f"{seconds:.1f} s, more than {LIMIT}"


if __name__ == "__main__":
    sys.exit(main())
