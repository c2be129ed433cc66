"""Says where the server's modules come from, without importing any of them.

Runs inside the server's own interpreter, working directory and environment.
argv[1] is a JSON question; the answer is one line after a marker, because code
in .pth files may print to standard output too.
"""
import importlib.machinery
import importlib.util
import json
import os
import sys


def spec_of(top):
    # Of the top-level name only: asking for "a.b" would import a.
    try:
        return importlib.util.find_spec(top), None
    except Exception as error:
        return None, "%s: %s" % (type(error).__name__, error)


def package(top):
    spec, error = spec_of(top)
    if spec is None:
        return {"found": False, "error": error or ""}
    locations = [os.path.abspath(p) for p in spec.submodule_search_locations or []]
    return {
        "found": True,
        "origin": spec.origin or "",
        "locations": locations,
        "namespace": bool(locations) and not spec.has_location,
        "loader": type(spec.loader).__name__ if spec.loader else "",
    }


def module(name, top):
    """The files that the name may mean, in the order of the import system."""
    parts = name.split(".")
    if not top["found"]:
        return []
    if len(parts) == 1:
        origin = top["origin"]
        return [{"path": os.path.abspath(origin), "compiled": not origin.endswith(".py")}] if os.path.exists(origin) else []
    found = []
    for location in top["locations"]:
        stem = os.path.join(location, *parts[1:])
        inits = [os.path.join(stem, "__init__" + s) for s in importlib.machinery.EXTENSION_SUFFIXES + [".py"]]
        files = [stem + s for s in importlib.machinery.EXTENSION_SUFFIXES + [".py"]]
        for path in inits + files:
            if os.path.isfile(path) or os.path.islink(path):
                found.append({"path": path, "compiled": not path.endswith(".py")})
    return found


def caches(path):
    """Where bytecode of a source file is looked for, at every level of optimization."""
    try:
        levels = [importlib.util.cache_from_source(path, optimization=o) for o in ("", 1, 2)]
    except NotImplementedError:
        return []
    return [os.path.abspath(p) for p in levels]


def distribution(name):
    try:
        from importlib import metadata

        found = metadata.distribution(name)
    except Exception:
        return {"found": False}
    return {
        "found": True,
        "version": found.version or "",
        "root": os.path.abspath(str(found.locate_file(""))),
        "record": found.read_text("RECORD") or "",
        "direct_url": found.read_text("direct_url.json") or "",
        "installer": (found.read_text("INSTALLER") or "").strip(),
    }


def main():
    ask = json.loads(sys.argv[1])
    if sys.path and sys.path[0] == "":
        del sys.path[0]
    if ask["path0"]:
        sys.path.insert(0, ask["path0"])
    packages = {top: package(top) for top in ask["packages"]}
    modules = {name: module(name, packages[name.partition(".")[0]]) for name in ask["modules"]}
    sources = ask["files"] + [f["path"] for found in modules.values() for f in found if not f["compiled"]]
    answer = {
        "executable": sys.executable,
        "version": "%d.%d.%d" % sys.version_info[:3],
        "prefix": sys.prefix,
        "packages": packages,
        "modules": modules,
        "caches": {path: caches(path) for path in sources},
        "distributions": {name: distribution(name) for name in ask["distributions"]},
    }
    sys.stdout.write("\n\x1e" + json.dumps(answer) + "\n")
    sys.stdout.flush()


main()
