"""The stubs say what the module has; the package is typed; everything public is documented."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import warmset as ws
from warmset import _native

STUB = Path(ws.__file__).with_name("_native.pyi")


def stubbed(body):
    """By name: arguments with their defaults, or for a class its members."""
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            names = [a.arg for a in arguments.posonlyargs + arguments.args]
            defaults = [ast.literal_eval(d) for d in arguments.defaults]
            found[node.name] = (names, defaults)
        elif isinstance(node, ast.ClassDef):
            found[node.name] = stubbed(node.body)
    return found


def actual(function):
    parameters = inspect.signature(function).parameters.values()
    defaults = [p.default for p in parameters if p.default is not inspect.Parameter.empty]
    return [p.name for p in parameters], defaults


def public(of):
    return {name for name in vars(of) if not name.startswith("_")}


def test_the_stub_has_every_name_and_signature():
    tree = stubbed(ast.parse(STUB.read_text()).body)
    assert set(tree) == public(_native)
    for name, said in tree.items():
        real = getattr(_native, name)
        if not isinstance(said, dict):
            assert said == actual(real), name
            continue
        kept = {member for member in said if not member.startswith("_")}
        assert kept == public(real), name
        for member, (names, defaults) in said.items():
            value = inspect.getattr_static(real, member)
            if inspect.isgetsetdescriptor(value):
                assert names == ["self"], f"{name}.{member}"
            elif member != "__len__":
                assert (names, defaults) == actual(getattr(real, member)), f"{name}.{member}"


def test_the_package_is_typed():
    package = Path(ws.__file__).parent
    assert (package / "py.typed").exists()
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-warn-return-any",
         "--ignore-missing-imports", "--untyped-calls-exclude=distributed", "-p", "warmset", "--cache-dir", "/dev/null"],
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def members(of):
    for name, value in vars(of).items():
        value = getattr(value, "__func__", value)
        if not name.startswith("_") and (callable(value) or isinstance(value, property)):
            yield f"{of.__name__}.{name}", value


def test_everything_public_is_documented():
    for name in ws.__all__:
        thing = getattr(ws, name)
        assert inspect.getdoc(thing), name
        if inspect.isclass(thing):
            for member, value in members(thing):
                assert inspect.getdoc(value), member
    for name in public(_native):
        assert inspect.getdoc(getattr(_native, name)), name
        assert ws.__version__
